//! Workloads that figures need and that are no published mixes by themselves.
//!
//! Owns the list. Each is a file of `papers/workloads`, whose head says what is published and what is ours.

/// A file's name without its ending, and its text.
pub(super) const BESIDE: [(&str, &str); 19] = [
    ("auto-mixed", include_str!("../../papers/workloads/auto-mixed.toml")),
    ("fcs-eight-jobs", include_str!("../../papers/workloads/fcs-eight-jobs.toml")),
    ("fcs-gridmix", include_str!("../../papers/workloads/fcs-gridmix.toml")),
    ("fcs-map-heavy-calibrated", include_str!("../../papers/workloads/fcs-map-heavy-calibrated.toml")),
    ("fcs-reduce-heavy-calibrated", include_str!("../../papers/workloads/fcs-reduce-heavy-calibrated.toml")),
    ("hfsp-fb-calibrated", include_str!("../../papers/workloads/hfsp-fb-calibrated.toml")),
    ("hfsp-fb-maps-only", include_str!("../../papers/workloads/hfsp-fb-maps-only.toml")),
    ("hfsp-fb-placed", include_str!("../../papers/workloads/hfsp-fb-placed.toml")),
    ("hfsp-preemption", include_str!("../../papers/workloads/hfsp-preemption.toml")),
    ("natjam-deadlines-calibrated", include_str!("../../papers/workloads/natjam-deadlines-calibrated.toml")),
    ("natjam-hour", include_str!("../../papers/workloads/natjam-hour.toml")),
    ("natjam-hour-deadlines", include_str!("../../papers/workloads/natjam-hour-deadlines.toml")),
    ("natjam-hour-2000", include_str!("../../papers/workloads/natjam-hour-2000.toml")),
    ("natjam-two-deadlines", include_str!("../../papers/workloads/natjam-two-deadlines.toml")),
    ("os-two-hungry", include_str!("../../papers/workloads/os-two-hungry.toml")),
    ("os-two-tasks", include_str!("../../papers/workloads/os-two-tasks.toml")),
    ("yarn-pace", include_str!("../../papers/workloads/yarn-pace.toml")),
    ("yarn-three-queues", include_str!("../../papers/workloads/yarn-three-queues.toml")),
    ("yarn-two-applications", include_str!("../../papers/workloads/yarn-two-applications.toml")),
];

//! Workloads that figures need and that are no published mixes by themselves.
//!
//! Owns the list. Each is a file of `papers/workloads`, whose head says what is published and what is ours.

/// A file's name without its ending, and its text.
pub(super) const BESIDE: [(&str, &str); 6] = [
    ("hfsp-fb-calibrated", include_str!("../../papers/workloads/hfsp-fb-calibrated.toml")),
    ("hfsp-fb-maps-only", include_str!("../../papers/workloads/hfsp-fb-maps-only.toml")),
    ("hfsp-preemption", include_str!("../../papers/workloads/hfsp-preemption.toml")),
    ("natjam-deadlines-calibrated", include_str!("../../papers/workloads/natjam-deadlines-calibrated.toml")),
    ("natjam-two-deadlines", include_str!("../../papers/workloads/natjam-two-deadlines.toml")),
    ("os-two-tasks", include_str!("../../papers/workloads/os-two-tasks.toml")),
];

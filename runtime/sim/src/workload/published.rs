//! The job mixes of the papers, by name.
//!
//! Owns the list. Each is a workload file of its own in `workloads/`, whose comments name every parameter
//! that its paper does not give. Does not own the schedulers that the papers compare on them.

use super::file::{WorkloadError, WorkloadFile};

/// A published mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    pub name: &'static str,
    /// Its workload file.
    pub text: &'static str,
}

pub const PUBLISHED: [Published; 8] = [
    Published { name: "natjam-xl-s", text: include_str!("../../workloads/natjam-xl-s.toml") },
    Published { name: "natjam-xl-l", text: include_str!("../../workloads/natjam-xl-l.toml") },
    Published { name: "natjam-m-m-s", text: include_str!("../../workloads/natjam-m-m-s.toml") },
    Published { name: "natjam-l-s-s", text: include_str!("../../workloads/natjam-l-s-s.toml") },
    Published { name: "natjam-deadlines", text: include_str!("../../workloads/natjam-deadlines.toml") },
    Published { name: "fcs-map-heavy", text: include_str!("../../workloads/fcs-map-heavy.toml") },
    Published { name: "fcs-reduce-heavy", text: include_str!("../../workloads/fcs-reduce-heavy.toml") },
    Published { name: "hfsp-fb-dataset", text: include_str!("../../workloads/hfsp-fb-dataset.toml") },
];

/// The published mix of a name, if there is one.
///
/// # Errors
/// Never for a name of the list: their files are tested.
pub fn published(name: &str) -> Option<Result<WorkloadFile, WorkloadError>> {
    let known = PUBLISHED.iter().find(|known| known.name == name)?;
    Some(WorkloadFile::read(known.name, known.text))
}

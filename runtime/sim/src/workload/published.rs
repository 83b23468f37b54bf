//! The published job mixes of the papers. Each is a workload file in `workloads/`, whose comments name the
//! parameters that its paper does not specify.

use super::file::{WorkloadError, WorkloadFile};

/// A published job mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    pub name: &'static str,
    /// The content of its workload file.
    pub text: &'static str,
}

pub const PUBLISHED: [Published; 8] = [
    Published {
        name: "natjam-xl-s",
        text: include_str!("../../workloads/natjam-xl-s.toml"),
    },
    Published {
        name: "natjam-xl-l",
        text: include_str!("../../workloads/natjam-xl-l.toml"),
    },
    Published {
        name: "natjam-m-m-s",
        text: include_str!("../../workloads/natjam-m-m-s.toml"),
    },
    Published {
        name: "natjam-l-s-s",
        text: include_str!("../../workloads/natjam-l-s-s.toml"),
    },
    Published {
        name: "natjam-deadlines",
        text: include_str!("../../workloads/natjam-deadlines.toml"),
    },
    Published {
        name: "fcs-map-heavy",
        text: include_str!("../../workloads/fcs-map-heavy.toml"),
    },
    Published {
        name: "fcs-reduce-heavy",
        text: include_str!("../../workloads/fcs-reduce-heavy.toml"),
    },
    Published {
        name: "hfsp-fb-dataset",
        text: include_str!("../../workloads/hfsp-fb-dataset.toml"),
    },
];

/// Returns the published mix of a name.
///
/// # Errors
/// Never fails for a listed name; the files are tested.
pub fn published(name: &str) -> Option<Result<WorkloadFile, WorkloadError>> {
    let known = PUBLISHED.iter().find(|known| known.name == name)?;
    Some(WorkloadFile::read(known.name, known.text))
}

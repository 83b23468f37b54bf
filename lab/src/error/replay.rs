//! Why a workload cannot be replayed.
//!
//! Owns what is said of plans that make no sense on one machine. What goes wrong on a cluster belongs to the
//! lab's other errors.

use std::io;
use std::path::PathBuf;

use napreduce_engine::TaskKind;
use napreduce_sim::{PUBLISHED, SwimError, WorkloadError};

/// A workload cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadReplayError {
    #[error("{flag} {value} makes no plan; give a number from 0.001 to 1000000, such as 20")]
    Scale { flag: &'static str, value: f64 },
    #[error("cannot read {path}: {source}; give a file, or one of {}", published())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error(transparent)]
    Trace(#[from] SwimError),
    #[error(
        "job {job} has a {kind} of {} ms at this scale, and one shorter than 100 ms says little; choose a --time-scale of at \
         most {}", *micros as f64 / 1e3, rounded(*most)
    )]
    TooShort {
        job: String,
        kind: TaskKind,
        micros: u64,
        /// With it the task would be long enough.
        most: f64,
    },
    #[error("the workload has no job; give it one")]
    NoJobs,
    #[error(
        "job {job} has no map, and every job of a cluster has one; give it one of no work: maps = {{ count = 1, seconds = 0 }}"
    )]
    NoMaps { job: String },
    #[error("job {job} is submitted by a trigger, which only the simulator can do; give it a time")]
    Triggered { job: String },
    #[error("the workload names no cluster; give --workers, --map-slots and --reduce-slots")]
    NoCluster,
    #[error(
        "{0} map slots and {1} reduce slots do not run these jobs; give more with --map-slots and --reduce-slots"
    )]
    NoSlots(u32, u32),
    #[error("the policy cannot be set up at this scale: {0}")]
    Policy(String),
    #[error(
        "{scheduler} serves reduces by the bytes that maps write for them, and no job of {workload} says how many those are; \
         give output-bytes in the maps of its jobs"
    )]
    Blind { scheduler: String, workload: String },
    #[error("the plan cannot be simulated at its scale: {0}")]
    Simulation(String),
    #[error("cannot write {path}: {what}")]
    Write { path: PathBuf, what: String },
    #[error("{0} has a report already; name another folder with --report")]
    Exists(PathBuf),
}

fn published() -> String {
    PUBLISHED.map(|known| known.name).join(", ")
}

fn rounded(scale: f64) -> String {
    if scale >= 10.0 { format!("{}", scale.floor()) } else { format!("{scale:.2}") }
}

impl WorkloadReplayError {
    /// Whether other arguments could help.
    pub fn is_usage(&self) -> bool {
        !matches!(self, WorkloadReplayError::Write { .. })
    }
}

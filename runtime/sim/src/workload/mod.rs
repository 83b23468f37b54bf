//! Workloads: streams of jobs with submit times. Jobs are generated lazily, so that only active ones are in
//! memory.

mod arrivals;
mod chain;
mod cluster;
mod compressed;
mod distribution;
mod file;
mod published;
mod sizes;
mod skew;
mod swim;

pub use arrivals::Arrivals;
pub use chain::ChainEntry;
pub use cluster::ClusterShape;
pub use compressed::{decompressed, read_workload_text};
pub use distribution::Distribution;
pub use file::{JobEntry, MapsEntry, ReducesEntry, WorkloadError, WorkloadFile};
pub use published::{PUBLISHED, Published, published};
pub use sizes::{Replicas, SizeModel};
pub use skew::Skew;
pub use swim::{SwimError, SwimJob, SwimTrace};

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::job::SimulatedJob;

/// Jobs in order of submission, and jobs submitted by triggers.
pub struct Workload {
    pub(crate) timed: Box<dyn Iterator<Item = SimulatedJob>>,
    pub(crate) triggered: BTreeMap<Arc<str>, SimulatedJob>,
}

impl Workload {
    /// Creates a workload from jobs.
    pub fn of(mut jobs: Vec<SimulatedJob>) -> Workload {
        jobs.sort_by_key(|job| job.submit);
        Workload::stream(jobs.into_iter())
    }

    /// Creates a workload from a lazy stream, which must be ordered by submit time.
    pub fn stream(jobs: impl Iterator<Item = SimulatedJob> + 'static) -> Workload {
        Workload {
            timed: Box::new(jobs),
            triggered: BTreeMap::new(),
        }
    }

    /// Returns all jobs: timed ones in order, then triggered ones.
    pub fn into_jobs(self) -> Vec<SimulatedJob> {
        self.timed.chain(self.triggered.into_values()).collect()
    }

    /// Adds a job that the policy submits by name.
    #[must_use]
    pub fn with_triggered(mut self, job: SimulatedJob) -> Workload {
        self.triggered.insert(job.name.clone(), job);
        self
    }
}

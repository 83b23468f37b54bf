//! Workloads: which jobs come, and when.
//!
//! Owns the stream of jobs that a simulation draws from, lazily, so that only unfinished work is in memory.
//! Does not own how a job runs.

mod arrivals;
mod chain;
mod cluster;
mod distribution;
mod file;
mod published;
mod sizes;
mod skew;
mod swim;

pub use arrivals::Arrivals;
pub use chain::ChainEntry;
pub use cluster::ClusterShape;
pub use distribution::Distribution;
pub use file::{JobEntry, MapsEntry, ReducesEntry, WorkloadError, WorkloadFile};
pub use published::{PUBLISHED, Published, published};
pub use sizes::{Replicas, SizeModel};
pub use skew::Skew;
pub use swim::{SwimError, SwimJob, SwimTrace};

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::job::SimulatedJob;

/// Jobs in the order of their submission, and jobs that are submitted by a trigger.
pub struct Workload {
    pub(crate) timed: Box<dyn Iterator<Item = SimulatedJob>>,
    pub(crate) triggered: BTreeMap<Arc<str>, SimulatedJob>,
}

impl Workload {
    /// These jobs, each at its time.
    pub fn of(mut jobs: Vec<SimulatedJob>) -> Workload {
        jobs.sort_by_key(|job| job.submit);
        Workload::stream(jobs.into_iter())
    }

    /// Jobs that are made when they are needed. They must come in the order of their times.
    pub fn stream(jobs: impl Iterator<Item = SimulatedJob> + 'static) -> Workload {
        Workload { timed: Box::new(jobs), triggered: BTreeMap::new() }
    }

    /// All jobs at once: those with a time in its order, then those that wait for a trigger.
    pub fn into_jobs(self) -> Vec<SimulatedJob> {
        self.timed.chain(self.triggered.into_values()).collect()
    }

    /// The same with one more job, which is submitted when the policy wants it, by its name.
    #[must_use]
    pub fn with_triggered(mut self, job: SimulatedJob) -> Workload {
        self.triggered.insert(job.name.clone(), job);
        self
    }
}

//! The settings of a worker, in a cluster or embedded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use napreduce_engine::WorkerId;

use super::configuration::{SuspendRules, TASK_SILENCE_MAX};
use super::environment::Environment;
use super::segment_memory::SegmentMemory;
use crate::process::Processes;
use crate::world::World;

/// A worker's place in a cluster.
#[derive(Debug, Clone)]
pub struct Membership {
    pub environment: Arc<dyn Environment>,
    /// The worker's own number.
    pub worker: WorkerId,
}

/// The settings of a worker.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// Its surroundings.
    pub world: World,
    /// Interval of progress reports.
    pub heartbeat: Duration,
    /// A task process that is silent for this time is killed.
    pub task_silence_max: Duration,
    /// The processes of this machine.
    pub processes: Arc<dyn Processes>,
    /// Only in a cluster.
    pub membership: Option<Membership>,
    /// Memory for segments.
    pub segment_memory: Arc<SegmentMemory>,
    /// The rules for suspending attempts.
    pub suspend: SuspendRules,
    /// Number of attempts with a process.
    pub running: Arc<AtomicUsize>,
}

impl WorkerSettings {
    /// Returns the settings of an embedded worker.
    pub(crate) fn embedded(
        world: World,
        heartbeat: Duration,
        processes: Arc<dyn Processes>,
    ) -> WorkerSettings {
        WorkerSettings {
            world,
            heartbeat,
            task_silence_max: TASK_SILENCE_MAX,
            membership: None,
            segment_memory: SegmentMemory::new(None, Arc::clone(&processes)),
            processes,
            suspend: SuspendRules::default(),
            running: Arc::default(),
        }
    }

    /// Returns the surroundings of a worker of a cluster.
    pub(super) fn environment(&self) -> Option<&Arc<dyn Environment>> {
        match &self.membership {
            Some(membership) => Some(&membership.environment),
            None => None,
        }
    }

    pub(super) fn note_running(&self, attempts: usize) {
        self.running.store(attempts, Ordering::Relaxed);
    }
}

//! How a worker works, in a cluster and in one process with its coordinator.
//!
//! Owns the values. Does not own where they come from (`configuration`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use napreduce_engine::WorkerId;

use super::configuration::{SuspendRules, TASK_SILENCE_MAX};
use super::environment::Environment;
use super::segment_memory::SegmentMemory;

/// How a worker works.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// How often it says how far its attempts are.
    pub heartbeat: Duration,
    /// A task process that says nothing for so long is ended.
    pub task_silence_max: Duration,
    /// In a cluster: the worker's surroundings and its number.
    pub environment: Option<(Arc<dyn Environment>, WorkerId)>,
    /// Where segments are kept as long as there is room.
    pub segment_memory: Arc<SegmentMemory>,
    /// How attempts are suspended.
    pub suspend: SuspendRules,
    /// How many attempts have a process, for whoever decides whether there is work to be saved.
    pub running: Arc<AtomicUsize>,
}

impl WorkerSettings {
    /// A worker in one process with its coordinator.
    pub(crate) fn embedded(heartbeat: Duration) -> WorkerSettings {
        WorkerSettings {
            heartbeat,
            task_silence_max: TASK_SILENCE_MAX,
            environment: None,
            segment_memory: SegmentMemory::new(None),
            suspend: SuspendRules::default(),
            running: Arc::default(),
        }
    }
}

impl WorkerSettings {
    pub(super) fn note_running(&self, attempts: usize) {
        self.running.store(attempts, Ordering::Relaxed);
    }
}

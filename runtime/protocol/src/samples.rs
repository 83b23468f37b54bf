//! Samples of a cluster's state over time: queues and workers.

use napreduce_engine::{TaskKind, WorkerId};
use serde::{Deserialize, Serialize};

use crate::queues::{QueueSlots, QueueSummary};
use crate::summaries::{WorkerPhase, WorkerSummary};

/// The slots of a queue, of one kind, at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSample {
    /// In milliseconds since 1970.
    pub at_millis: u64,
    pub queue: String,
    pub kind: TaskKind,
    pub slots: QueueSlots,
}

impl QueueSample {
    /// Both kinds of each queue, at a moment.
    pub fn from_queues(at_millis: u64, queues: &[QueueSummary]) -> Vec<QueueSample> {
        let of_kind = |queue: &QueueSummary, kind, slots| {
            let queue = queue.name.clone();
            QueueSample {
                at_millis,
                queue,
                kind,
                slots,
            }
        };
        let both = |queue: &QueueSummary| {
            [
                of_kind(queue, TaskKind::Map, queue.map),
                of_kind(queue, TaskKind::Reduce, queue.reduce),
            ]
        };
        queues.iter().flat_map(both).collect()
    }
}

/// A change of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSample {
    /// In milliseconds since 1970; for a worker that is gone, when it went.
    pub at_millis: u64,
    pub worker: WorkerId,
    pub name: String,
    pub host: String,
    pub state: WorkerPhase,
    /// Why it was lost, drained or excluded, if known.
    pub reason: Option<String>,
    pub map_slots: u32,
    pub reduce_slots: u32,
}

impl WorkerSample {
    pub fn from_worker(at_millis: u64, worker: &WorkerSummary) -> WorkerSample {
        let remarks = (!worker.remarks.is_empty()).then(|| worker.remarks.join("; "));
        WorkerSample {
            at_millis: worker.gone_millis.unwrap_or(at_millis),
            worker: worker.worker,
            name: worker.name.clone(),
            host: worker.host.clone(),
            state: worker.state,
            reason: worker.reason.clone().or(remarks),
            map_slots: worker.map_slots.0,
            reduce_slots: worker.reduce_slots.0,
        }
    }

    /// Whether it is equal apart from its time.
    pub fn equals_except_time(&self, other: &WorkerSample) -> bool {
        WorkerSample {
            at_millis: 0,
            ..self.clone()
        } == WorkerSample {
            at_millis: 0,
            ..other.clone()
        }
    }
}

/// The changes that a sample records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterSample {
    pub at_millis: u64,
    /// All queues, or none if unchanged.
    pub queues: Vec<QueueSample>,
    /// The changed workers.
    pub workers: Vec<WorkerSample>,
}

/// The states of a cluster in a time window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClusterWindow {
    /// By time; includes the last sample before the window if it is of the same day.
    pub queues: Vec<QueueSample>,
    /// By time.
    pub workers: Vec<WorkerSample>,
    /// Unreadable or omitted data.
    pub remarks: Vec<String>,
}

impl ClusterWindow {
    /// The most samples of each kind that fit into a message.
    const SAMPLES_MAX: usize = 100_000;

    /// Keeps the latest samples, with a remark if some were dropped.
    #[must_use]
    pub fn bounded(mut self) -> ClusterWindow {
        let too_many = |length: usize| length.saturating_sub(ClusterWindow::SAMPLES_MAX);
        let queues = too_many(self.queues.len());
        let workers = too_many(self.workers.len());
        self.queues.drain(..queues);
        self.workers.drain(..workers);
        if queues + workers > 0 {
            self.remarks.push(format!(
                "the first {queues} samples of queues and {workers} of workers are omitted"
            ));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_window_keeps_latest_samples_with_remark() {
        let queue = |at_millis: u64| QueueSample {
            at_millis,
            queue: "default".to_owned(),
            kind: TaskKind::Map,
            slots: QueueSlots::default(),
        };
        let most = ClusterWindow::SAMPLES_MAX as u64;
        let window = |count| ClusterWindow {
            queues: (0..count).map(queue).collect(),
            ..Default::default()
        };
        assert_eq!(window(most).bounded(), window(most));
        let bounded = window(most + 3).bounded();
        assert_eq!(
            (bounded.queues[0].at_millis, bounded.queues.len() as u64),
            (3, most)
        );
        assert_eq!(
            bounded.remarks,
            ["the first 3 samples of queues and 0 of workers are omitted"]
        );
    }
}

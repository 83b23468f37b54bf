//! How a cluster was at moments: its queues, and what became of its workers.
//!
//! Owns this form. Does not own when one looks (the coordinator), nor files.

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
    pub fn of(at_millis: u64, queues: &[QueueSummary]) -> Vec<QueueSample> {
        let of_kind = |queue: &QueueSummary, kind, slots| {
            let queue = queue.name.clone();
            QueueSample { at_millis, queue, kind, slots }
        };
        let both = |queue: &QueueSummary| {
            [of_kind(queue, TaskKind::Map, queue.map), of_kind(queue, TaskKind::Reduce, queue.reduce)]
        };
        queues.iter().flat_map(both).collect()
    }
}

/// A worker that is another one than it was, at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSample {
    /// In milliseconds since 1970; of one that is gone, when it went.
    pub at_millis: u64,
    pub worker: WorkerId,
    pub name: String,
    pub host: String,
    pub state: WorkerPhase,
    /// Why it was lost, is drained or excluded, as far as that is known.
    pub reason: Option<String>,
    pub map_slots: u32,
    pub reduce_slots: u32,
}

impl WorkerSample {
    pub fn of(at_millis: u64, worker: &WorkerSummary) -> WorkerSample {
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

    /// Whether it says the same, whenever it was said.
    pub fn says_as(&self, other: &WorkerSample) -> bool {
        WorkerSample { at_millis: 0, ..self.clone() } == WorkerSample { at_millis: 0, ..other.clone() }
    }
}

/// What is to be kept of a look at a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterSample {
    pub at_millis: u64,
    /// All of them, or none if they are as they were.
    pub queues: Vec<QueueSample>,
    /// Those that are others than they were.
    pub workers: Vec<WorkerSample>,
}

/// How a cluster was in a window of time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClusterWindow {
    /// By time; the last look before the window, too, as far as it is of the same day.
    pub queues: Vec<QueueSample>,
    /// By time.
    pub workers: Vec<WorkerSample>,
    /// What could not be read, and what is left out.
    pub remarks: Vec<String>,
}

impl ClusterWindow {
    /// So many of each fit into a message, with names of some length.
    const SAMPLES_MAX: usize = 100_000;

    /// The latest ones of too many, and a remark that there were more.
    #[must_use]
    pub fn bounded(mut self) -> ClusterWindow {
        let too_many = |length: usize| length.saturating_sub(ClusterWindow::SAMPLES_MAX);
        let (queues, workers) = (too_many(self.queues.len()), too_many(self.workers.len()));
        self.queues.drain(..queues);
        self.workers.drain(..workers);
        if queues + workers > 0 {
            self.remarks.push(format!("the first {queues} of queues and {workers} of workers are left out"));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_samples_the_latest_are_told_and_that_there_were_more() {
        let queue = |at_millis: u64| QueueSample {
            at_millis,
            queue: "default".to_owned(),
            kind: TaskKind::Map,
            slots: QueueSlots::default(),
        };
        let most = ClusterWindow::SAMPLES_MAX as u64;
        let window = |count| ClusterWindow { queues: (0..count).map(queue).collect(), ..Default::default() };
        assert_eq!(window(most).bounded(), window(most));
        let bounded = window(most + 3).bounded();
        assert_eq!((bounded.queues[0].at_millis, bounded.queues.len() as u64), (3, most));
        assert_eq!(bounded.remarks, ["the first 3 of queues and 0 of workers are left out"]);
    }
}

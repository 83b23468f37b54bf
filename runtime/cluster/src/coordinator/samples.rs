//! Samples the cluster every few seconds for the history; records changes only.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use napreduce_engine::WorkerId;
use napreduce_local::clock::now;
use napreduce_protocol::{ClusterSample, QueueSample, WorkerSample};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::ClusterCoordinator;

/// The sampling interval.
const EVERY: Duration = Duration::from_secs(10);
/// Interval at which unchanged values are repeated, which distinguishes an idle cluster from an absent
/// coordinator. Readers depend on it.
const REPEAT: Duration = Duration::from_secs(600);

/// The last sample.
#[derive(Debug, Default)]
pub(super) struct Samples {
    looked: Option<Instant>,
    queues: Vec<QueueSample>,
    /// When all values were last recorded.
    recorded: Option<Instant>,
    workers: BTreeMap<WorkerId, WorkerSample>,
    /// A sample being written.
    writing: Option<JoinHandle<()>>,
}

impl Samples {
    /// Returns the changes since the last sample.
    fn news(
        &mut self,
        now: Instant,
        at_millis: u64,
        queues: Vec<QueueSample>,
        workers: Vec<WorkerSample>,
    ) -> Option<ClusterSample> {
        let is_due = match self.recorded {
            Some(recorded) => now.duration_since(recorded) >= REPEAT,
            None => true,
        };
        let are_same = queues.len() == self.queues.len()
            && queues.iter().zip(&self.queues).all(|(one, other)| {
                (&one.queue, one.kind, one.slots) == (&other.queue, other.kind, other.slots)
            });
        let mut news = ClusterSample {
            at_millis,
            ..ClusterSample::default()
        };
        if is_due || !are_same {
            self.recorded = Some(now);
            self.queues.clone_from(&queues);
            news.queues = queues;
        }
        // Workers that are no longer listed never return.
        let known = std::mem::take(&mut self.workers);
        for worker in workers {
            let is_known = match known.get(&worker.worker) {
                Some(last) => last.equals_except_time(&worker),
                None => false,
            };
            if !is_known {
                news.workers.push(worker.clone());
            }
            self.workers.insert(worker.worker, worker);
        }
        if news.queues.is_empty() && news.workers.is_empty() {
            return None;
        }
        Some(news)
    }

    /// Waits until the last sample is written: the directory may be removed when the coordinator has ended.
    pub(super) async fn end(&mut self) {
        if let Some(writing) = self.writing.take() {
            // A panic has been printed.
            let _ = writing.await;
        }
    }
}

impl ClusterCoordinator {
    /// Records changes if a sample is due. Skips samples while the disk is busy.
    pub(super) fn sample(&mut self) {
        if let Some(writing) = &self.samples.writing
            && !writing.is_finished()
        {
            return;
        }
        if let Some(looked) = self.samples.looked
            && looked.elapsed() < EVERY
        {
            return;
        }
        let history = Arc::clone(&self.history);
        let now = now();
        let at_millis = self.configuration.world.clock.unix_micros() / 1_000;
        let queues =
            QueueSample::from_queues(at_millis, &self.list_queues().queues.unwrap_or_default());
        let workers = self.list_workers();
        let workers = workers
            .iter()
            .map(|worker| WorkerSample::from_worker(at_millis, worker))
            .collect();
        let samples = &mut self.samples;
        samples.looked = Some(now);
        let Some(news) = samples.news(now, at_millis, queues, workers) else {
            return;
        };
        let tasks = &self.configuration.world.tasks;
        samples.writing = Some(tasks.blocking(move || {
            if let Err(error) = history.note(&news) {
                // The changes are lost; jobs do not depend on them.
                tracing::warn!(%error, "cannot record the state of the cluster");
            }
        }));
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::TaskKind;
    use napreduce_protocol::{QueueSlots, WorkerPhase};

    use super::*;

    fn queue(used: u64) -> QueueSample {
        let slots = QueueSlots {
            used,
            ..QueueSlots::default()
        };
        QueueSample {
            at_millis: used,
            queue: "default".to_owned(),
            kind: TaskKind::Map,
            slots,
        }
    }

    fn worker(at_millis: u64, state: WorkerPhase) -> WorkerSample {
        let name = "left-hand".to_owned();
        let host = "ada".to_owned();
        let map_slots = 2;
        let reduce_slots = 1;
        let reason = None;
        WorkerSample {
            at_millis,
            worker: WorkerId(1),
            name,
            host,
            state,
            reason,
            map_slots,
            reduce_slots,
        }
    }

    #[test]
    fn unchanged_samples_are_recorded_rarely() {
        let mut samples = Samples::default();
        let began = Instant::now();
        let mut look = |seconds, used, state| {
            let now = began + Duration::from_secs(seconds);
            let news = samples.news(
                now,
                seconds,
                vec![queue(used)],
                vec![worker(seconds, state)],
            );
            news.map(|news| (news.queues.len(), news.workers.len()))
        };
        assert_eq!(look(0, 1, WorkerPhase::Up), Some((1, 1)));
        assert_eq!(look(10, 1, WorkerPhase::Up), None);
        assert_eq!(look(20, 2, WorkerPhase::Up), Some((1, 0)));
        assert_eq!(look(30, 2, WorkerPhase::Draining), Some((0, 1)));
        assert_eq!(look(610, 2, WorkerPhase::Draining), None);
        assert_eq!(look(620, 2, WorkerPhase::Draining), Some((1, 0)));
    }
}

//! Faults and commands: cut links, crashes of workers and the coordinator, drains and kills.

use napreduce_engine::{AttemptId, Event, JobId, Span, WorkerId};
use rand::Rng;

use crate::model::world::World;

impl World {
    pub(crate) fn cut_or_heal(&mut self) {
        let Some(id) = self.any_worker() else { return };
        if !self.network.cut.remove(&id) {
            self.network.note("link cut");
            self.network.cut.insert(id);
            self.connected.remove(&id);
        }
    }

    pub(crate) fn crash_a_worker(&mut self) {
        let Some(id) = self.any_worker() else { return };
        self.network.note("worker crashed");
        self.workers.remove(&id);
        self.connected.remove(&id);
        if self.rng.random_bool(0.5) {
            self.join();
        }
    }

    /// Declares a silent worker lost, whether it is running or not.
    pub(crate) fn declare_lost(&mut self) {
        let silent: Vec<WorkerId> = self.silent();
        if silent.is_empty() {
            return;
        }
        let worker = silent[self.rng.random_range(0..silent.len())];
        self.network.note("worker declared lost");
        let crashed = self.rng.random_bool(0.5);
        self.handle(Event::WorkerLost { worker, crashed }, None);
    }

    pub(crate) fn silent(&self) -> Vec<WorkerId> {
        let view = self.coordinator.engine.view();
        view.present_workers()
            .map(|(id, _)| id)
            .filter(|id| !self.connected.contains(id))
            .collect()
    }

    /// Kills and restarts the coordinator. Its connections end; journaled events survive.
    pub(crate) fn recover(&mut self) {
        self.network.note("coordinator crashed");
        if self.coordinator.has_snapshot() {
            self.network.note("recovered from a snapshot");
        }
        self.network.lose_some(&mut self.rng);
        self.connected.clear();
        let (first, effects) = self.coordinator.recover();
        assert_eq!(
            first + effects.len(),
            self.events,
            "the journal lost something"
        );
        for (number, effects) in (first..).zip(effects) {
            self.enter(number, &effects);
        }
    }

    pub(crate) fn take_snapshot(&mut self) {
        self.network.note("snapshot taken");
        self.coordinator.snapshot();
    }

    pub(crate) fn drain(&mut self) {
        if let Some(worker) = self.any_worker().filter(|id| self.coordinator.knows(*id)) {
            let hand_back = self.rng.random_bool(0.5);
            let grace = self
                .rng
                .random_bool(0.5)
                .then(|| Span::from_millis(self.rng.random_range(0..100)));
            self.handle(
                Event::WorkerDrainRequested {
                    worker,
                    hand_back,
                    grace,
                },
                None,
            );
        }
    }

    pub(crate) fn kill_an_attempt(&mut self) {
        let live: Vec<AttemptId> = self
            .coordinator
            .engine
            .view()
            .attempts()
            .map(|one| one.id())
            .collect();
        if !live.is_empty() {
            self.network.note("attempt killed by an operator");
            let attempt = live[self.rng.random_range(0..live.len())];
            self.handle(
                Event::AttemptKillRequested {
                    attempt,
                    reason: "why not".to_owned(),
                },
                None,
            );
        }
    }

    pub(crate) fn kill_a_job(&mut self) {
        let job = JobId(self.rng.random_range(1..=self.jobs));
        self.handle(
            Event::JobKillRequested {
                job,
                reason: "enough".to_owned(),
            },
            None,
        );
    }
}

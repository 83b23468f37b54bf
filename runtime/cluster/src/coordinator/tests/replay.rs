//! Replays of a journal that a coordinator wrote: the same events have the same effects under every policy.

use std::sync::Arc;
use std::time::Duration;

use napreduce_engine::{Effect, FailureClass, FaultPlace, Order, Record, Report, TaskKind};
use napreduce_local::coordinator::{Recording, ReplayedBatch};
use napreduce_protocol::{CounterValues, PartOutput, ToWorker};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg32;

use super::{Running, Scene, Worker};
use crate::coordinator::replay_journal;

/// A worker that answers every order, sometimes with a failure.
struct Answering {
    worker: Worker,
    random: Pcg32,
}

impl Answering {
    /// Answers all received messages; returns false if there were none.
    fn answer_all(&mut self) -> bool {
        let mut any = false;
        while let Ok(message) = self.worker.messages.try_recv() {
            any = true;
            if let ToWorker::Ordered { number, order, .. } = message {
                self.worker.hello.received = number;
                self.answer(&order);
            }
        }
        any
    }

    fn answer(&mut self, order: &Order) {
        match order {
            Order::Launch { attempt, .. } => {
                self.worker.started(*attempt);
                if self.random.random_bool(0.1) {
                    let class = FailureClass::Task;
                    let place = FaultPlace::UserCode;
                    let report = Report::Failed {
                        class,
                        place,
                        reason: "bad luck".into(),
                        lost_outputs: Vec::new(),
                        disk_need: None,
                    };
                    self.worker.happened(*attempt, report);
                } else if attempt.task.kind == TaskKind::Map {
                    self.worker
                        .finished(*attempt, CounterValues::default(), None);
                } else {
                    self.worker.happened(*attempt, Report::CommitRequested);
                }
            }
            Order::Commit { attempt } => {
                let part = Some(PartOutput {
                    records: 1,
                    bytes: 5,
                    digest: 1,
                    ..PartOutput::default()
                });
                self.worker
                    .finished(*attempt, CounterValues::default(), part);
            }
            Order::Kill { attempt } => self.worker.happened(*attempt, Report::Killed),
            _ => {}
        }
    }
}

/// Submits six jobs of different kinds in succession, so that they compete for slots.
async fn submit_jobs(scene: &Scene, coordinator: &Running, random: &mut Pcg32) {
    for number in 1..=6_u32 {
        let mut submission = scene.submission(
            u128::from(number),
            random.random_range(1..8),
            random.random_range(1..4),
        );
        submission.plan.output = scene.path(&format!("out{number}"));
        submission.plan.queue =
            ["production", "research", "default"][random.random_range(0..3)].to_owned();
        submission.plan.priority = random.random_range(0..3);
        submission.plan.attempts_max = 20;
        submission.plan.deadline = Some(Duration::from_secs(random.random_range(1..100)));
        submission.user = ["ada", "bob"][random.random_range(0..2)].to_owned();
        coordinator.submit(submission).await;
    }
}

async fn live_and_again(scheduler: SchedulerName, seed: u64) {
    let mut scene = Scene::new();
    scene.configuration.scheduler = Arc::new(SchedulerConfiguration::named(scheduler));
    scene.configuration.queues = ["production", "research"].map(str::to_owned).to_vec();
    let recording = Recording::default();
    let coordinator = scene.start_recorded(Some(Recording::clone(&recording)));
    let mut random = Pcg32::seed_from_u64(seed);
    let mut workers = Vec::new();
    for name in ["a", "b", "c"] {
        let worker = Worker::join(&coordinator, name, 2).await;
        workers.push(Answering {
            worker,
            random: Pcg32::seed_from_u64(random.random()),
        });
    }
    submit_jobs(&scene, &coordinator, &mut random).await;
    let events = || recording.lock().expect("nobody panicked").len();
    let mut rounds = 0;
    while rounds < 200 && workers.iter_mut().any(Answering::answer_all) || rounds < 20 {
        rounds += 1;
        let before = events();
        tokio::task::yield_now().await;
        if events() == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let again = {
        coordinator.kill().await;
        replay_journal(&scene.configuration.directory, SchedulerConfiguration::read)
            .expect("a journal")
    };
    let live = recording.lock().expect("nobody panicked").clone();
    let launches = |batch: &ReplayedBatch| {
        batch
            .effects
            .iter()
            .filter(|effect| matches!(effect, Effect::Record(Record::AttemptLaunched { .. })))
            .count()
    };
    let launched: usize = live.iter().map(launches).sum();
    assert!(
        launched >= 10,
        "{scheduler}, seed {seed}: only {launched} launches happened"
    );
    assert!(
        again.len() <= live.len(),
        "what was not journaled was not carried out either"
    );
    for (number, (again, live)) in again.iter().zip(&live).enumerate() {
        assert_eq!(again, live, "{scheduler}, seed {seed}: batch {number}");
    }
    assert!(
        live.len() - again.len() <= 1,
        "{scheduler}, seed {seed}: {} of {} batches",
        again.len(),
        live.len()
    );
}

#[tokio::test]
async fn replayed_journal_has_same_effects() {
    for scheduler in SchedulerName::ALL {
        for seed in 0..5 {
            live_and_again(scheduler, seed).await;
        }
    }
}

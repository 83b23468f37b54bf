//! Random events by seed. Checks every invariant after every event, the engine's state against the process
//! model, one commit per task, and that every job ends once workers behave. `world` is the model of workers,
//! `policy` decides at random, `ledger` checks the effects.

mod hands;
mod keeping;
mod ledger;
mod policy;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{
    AttemptId, Effect, Engine, EngineSettings, EngineSnapshot, Event, FailureClass, FaultPlace,
    JobId, MapSpec, Order, Report, Scheduler, Slots, Span, Tally, TaskId, TaskKind, Time, WorkerId,
};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg32;

use self::ledger::Ledger;
use self::world::Daemon;
use crate::scenarios::script::spec;

pub use self::keeping::Keeping;
pub use self::policy::RandomPolicy;

const EVENTS: u32 = 150;

/// Creates identical policies, which become calm when the flag is set.
pub type Policy = Arc<dyn Fn(Arc<AtomicBool>) -> Box<dyn Scheduler>>;

/// An engine, its simulated workers, and the log of all events.
pub struct RandomRun {
    engine: Engine,
    policy: Policy,
    /// An engine restored from a snapshot; it must behave identically.
    twin: Option<Engine>,
    seed: u64,
    settings: EngineSettings,
    rng: Pcg32,
    now: Time,
    wake: Option<Time>,
    calm: Arc<AtomicBool>,
    daemons: BTreeMap<WorkerId, Daemon>,
    workers: u32,
    jobs: u32,
    ledger: Ledger,
    keeping: Keeping,
    /// Whether reports may be false and actions illegal.
    hostile: bool,
    /// The expected warning if an operator's request is not possible.
    refusal: String,
    pub events: Vec<(Time, Event)>,
    /// The number of events when workers began to behave.
    calm_since: usize,
    pub effects: Vec<Vec<Effect>>,
}

impl RandomRun {
    pub fn new(seed: u64, hostile: bool) -> RandomRun {
        RandomRun::under(
            seed,
            hostile,
            Arc::new(move |calm| Box::new(RandomPolicy::new(seed, hostile, calm))),
        )
    }

    /// Creates a run under another policy than the random one.
    pub fn under(seed: u64, hostile: bool, policy: Policy) -> RandomRun {
        let calm = Arc::new(AtomicBool::new(false));
        let settings = hands::settings(seed, hostile);
        RandomRun {
            engine: Engine::new(policy(Arc::clone(&calm)), settings),
            policy,
            twin: None,
            seed,
            settings,
            rng: Pcg32::seed_from_u64(seed),
            now: Time(0),
            wake: None,
            calm,
            daemons: BTreeMap::new(),
            workers: 0,
            jobs: 0,
            ledger: Ledger::default(),
            keeping: Keeping::new(settings.preemption.suspended_max),
            hostile,
            refusal: String::new(),
            events: Vec::new(),
            calm_since: 0,
            effects: Vec::new(),
        }
    }

    pub fn play(&mut self) {
        self.begin(EVENTS);
        self.calm_down();
    }

    fn begin(&mut self, events: u32) {
        for _ in 0..3 {
            self.join();
        }
        self.submit();
        for _ in 0..events {
            self.disturb();
        }
    }

    fn handle(&mut self, event: Event) {
        self.events.push((self.now, event.clone()));
        self.ledger.note(&event);
        let by_twin = self
            .twin
            .as_mut()
            .map(|twin| twin.handle(self.now, event.clone()));
        let effects = self.engine.handle(self.now, event.clone());
        let engine = &self.engine;
        self.keeping
            .follow(&event, &effects, |id| engine.view().attempt(id).is_some());
        assert_eq!(
            by_twin.as_ref().unwrap_or(&effects),
            &effects,
            "the restored engine does something else"
        );
        if self.events.len() % 16 == (self.seed % 16) as usize {
            self.part_with_twin();
        }
        if let Err(broken) = self.engine.check() {
            panic!("{broken}");
        }
        for effect in &effects {
            self.ledger.enter(effect);
            match effect {
                Effect::Send { worker, order } => {
                    let (commits, maps) = match order {
                        Order::Launch { attempt, .. } => self.ledger.duties(attempt.task),
                        _ => (false, 0),
                    };
                    let daemon = self
                        .daemons
                        .get_mut(worker)
                        .expect("orders go to workers that are up");
                    daemon.receive(order.clone(), commits, maps);
                }
                Effect::WakeAt(time) => {
                    self.wake = Some(self.wake.map_or(*time, |before| before.min(*time)))
                }
                Effect::Warn { message } => {
                    let about_workers = message.contains("is excluded")
                        || message.contains("cannot be suspended and continues");
                    let about_maps = message.contains("is not deterministic");
                    assert!(
                        self.hostile || about_workers || about_maps || message == &self.refusal,
                        "{message}"
                    )
                }
                Effect::WorkerMayLeave { worker } => {
                    let daemon = self.daemons.remove(worker).expect("a worker leaves once");
                    assert!(
                        self.hostile || daemon.is_empty(),
                        "{worker} leaves while it runs something"
                    );
                }
                Effect::Record(_) | Effect::SubmitWanted { .. } | Effect::JobEnded { .. } => {}
            }
        }
        self.effects.push(effects);
    }

    /// Checks that the restored engine has the same state, and restores another one.
    fn part_with_twin(&mut self) {
        let snapshot = self.engine.snapshot();
        assert_eq!(
            self.twin
                .as_ref()
                .map_or(snapshot.clone(), Engine::snapshot),
            snapshot
        );
        let text = serde_json::to_string(&snapshot).expect("a snapshot is plain data");
        let read = serde_json::from_str(&text).expect("JSON keeps it");
        let policy = (self.policy)(Arc::clone(&self.calm));
        self.twin = Some(Engine::restore(read, policy, self.settings).expect("it was just taken"));
    }

    /// Replays all events in a new engine.
    pub fn replay(&self) -> (Vec<Vec<Effect>>, EngineSnapshot) {
        let calm = Arc::new(AtomicBool::new(false));
        let mut engine = Engine::new((self.policy)(Arc::clone(&calm)), self.settings);
        let mut effects = Vec::new();
        for (number, (now, event)) in self.events.iter().enumerate() {
            calm.store(number >= self.calm_since, Ordering::Relaxed);
            effects.push(engine.handle(*now, event.clone()));
        }
        (effects, engine.snapshot())
    }

    pub fn tally(&self) -> Tally {
        self.engine.view().tally()
    }

    pub fn snapshot(&self) -> EngineSnapshot {
        self.engine.snapshot()
    }

    /// Causes one random event.
    fn disturb(&mut self) {
        match self.rng.random_range(0..100) {
            0..3 => self.submit(),
            3..6 => self.join(),
            6 => self.lose(),
            7 => self.stop_a_job(),
            8 if self.rng.random_bool(0.5) => self.drain(),
            9 => self.kill_an_attempt(),
            30..36 => self.operate_on_an_attempt(),
            36 => self.operate_on_a_job(),
            37 => self.change_shortage(),
            10..20 => self.pass_time(),
            20..23 => self.repeat_old_news(),
            23..30 if self.hostile => self.lie(),
            _ => self.move_a_worker(),
        }
    }

    fn join(&mut self) {
        self.workers += 1;
        let worker = WorkerId(self.workers);
        let slots = Slots {
            map: self.rng.random_range(0..4),
            reduce: self.rng.random_range(0..3),
        };
        self.daemons.insert(
            worker,
            Daemon::new(slots, self.engine.view().shares_slots(), !self.hostile),
        );
        let host = ["", "ada", "bob"][self.rng.random_range(0..3)].to_owned();
        let rack = ["", "/a", "/b"][self.workers as usize % 3].to_owned();
        self.handle(Event::WorkerJoined {
            worker,
            slots,
            host,
            rack,
        });
    }

    fn lose(&mut self) {
        if let Some(worker) = self.any_worker() {
            self.daemons.remove(&worker);
            let crashed = self.rng.random_bool(0.5);
            self.handle(Event::WorkerLost { worker, crashed });
        }
    }

    fn drain(&mut self) {
        if let Some(worker) = self.any_worker() {
            let hand_back = self.rng.random_bool(0.5);
            let grace = self
                .rng
                .random_bool(0.5)
                .then(|| Span::from_millis(self.rng.random_range(0..100)));
            self.handle(Event::WorkerDrainRequested {
                worker,
                hand_back,
                grace,
            });
        }
    }

    fn kill_an_attempt(&mut self) {
        let live: Vec<AttemptId> = self
            .engine
            .view()
            .attempts()
            .map(|attempt| attempt.id())
            .collect();
        if !live.is_empty() {
            let attempt = live[self.rng.random_range(0..live.len())];
            self.handle(Event::AttemptKillRequested {
                attempt,
                reason: "it looks slow".to_owned(),
            });
        }
    }

    fn submit(&mut self) {
        self.jobs += 1;
        let rng = &mut self.rng;
        let mut spec = spec(rng.random_range(0..6), rng.random_range(0..4));
        spec.priority = rng.random_range(0..3);
        spec.outputs_move = !self.jobs.is_multiple_of(3);
        spec.attempts_max = rng.random_range(1..5);
        spec.slowstart_permille = [0, 300, 500, 1000, 1000][rng.random_range(0..5)];
        let held = WorkerId(rng.random_range(1..4));
        spec.maps = vec![
            MapSpec {
                bytes: 7,
                preferred: vec![held; rng.random_range(0..2)]
            };
            spec.maps.len()
        ];
        let job = JobId(self.jobs);
        spec.queue = ["research", "production", "research.ada"][self.jobs as usize % 3].to_owned();
        spec.deadline =
            (!self.jobs.is_multiple_of(4)).then_some(self.now + Span::from_millis(self.seed % 50));
        self.ledger.open(job, &spec);
        self.handle(Event::JobSubmitted { job, spec });
    }

    fn stop_a_job(&mut self) {
        let job = JobId(self.rng.random_range(1..=self.jobs));
        self.handle(Event::JobKillRequested {
            job,
            reason: "enough".to_owned(),
        });
    }

    fn pass_time(&mut self) {
        self.now = self.now + Span::from_millis(self.rng.random_range(0..5));
        if self.wake.is_some_and(|wake| wake <= self.now) || self.rng.random_bool(0.1) {
            self.wake = None;
            self.handle(Event::Woken);
        }
    }

    /// Repeats a report about an attempt that has ended.
    fn repeat_old_news(&mut self) {
        let Some(attempt) = self.ledger.over(&mut self.rng) else {
            return;
        };
        let (Some(worker), report) = (self.any_worker(), any_report(&mut self.rng)) else {
            return;
        };
        self.handle(Event::Reported {
            worker,
            attempt,
            report,
        });
    }

    /// Reports an event that did not happen, or one about an unknown attempt.
    fn lie(&mut self) {
        let live: Vec<(WorkerId, AttemptId)> = self
            .engine
            .view()
            .attempts()
            .map(|attempt| (attempt.worker(), attempt.id()))
            .collect();
        let report = any_report(&mut self.rng);
        let invented = AttemptId {
            task: TaskId {
                job: JobId(1),
                kind: TaskKind::Map,
                index: self.rng.random_range(0..9),
            },
            number: 1,
        };
        let choice = if live.is_empty() {
            None
        } else {
            live.get(self.rng.random_range(0..live.len()))
        };
        let &(worker, attempt) = choice.unwrap_or(&(WorkerId(1), invented));
        self.handle(Event::Reported {
            worker,
            attempt,
            report,
        });
    }

    fn move_a_worker(&mut self) {
        let Some(worker) = self.any_worker() else {
            return self.join();
        };
        let daemon = self.daemons.get_mut(&worker).expect("just chosen");
        match self.rng.random_range(0..3) {
            0 => daemon.obey(),
            1 => daemon.step(&mut self.rng, true),
            _ => {
                if let Some((attempt, report)) = daemon.next_report() {
                    self.handle(Event::Reported {
                        worker,
                        attempt,
                        report,
                    });
                }
            }
        }
    }

    fn any_worker(&mut self) -> Option<WorkerId> {
        let all = self.daemons.len();
        if all == 0 {
            None
        } else {
            self.daemons
                .keys()
                .nth(self.rng.random_range(0..all))
                .copied()
        }
    }

    /// Makes workers behave from now on; every job must end.
    fn calm_down(&mut self) {
        self.calm_since = self.events.len();
        self.calm.store(true, Ordering::Relaxed);
        self.release_everything();
        self.end_shortages();
        while self.hostile && !self.daemons.is_empty() {
            self.lose();
        }
        self.workers += 1;
        let worker = WorkerId(self.workers);
        let slots = Slots { map: 2, reduce: 2 };
        self.daemons.insert(
            worker,
            Daemon::new(slots, self.engine.view().shares_slots(), !self.hostile),
        );
        let host = String::new();
        let rack = "/a".to_owned();
        self.handle(Event::WorkerJoined {
            worker,
            slots,
            host,
            rack,
        });
        for _ in 0..10_000 {
            let ids: Vec<WorkerId> = self.daemons.keys().copied().collect();
            for worker in ids {
                // A drained worker may have left.
                let Some(daemon) = self.daemons.get_mut(&worker) else {
                    continue;
                };
                daemon.obey();
                daemon.step(&mut self.rng, false);
                if let Some((attempt, report)) = daemon.next_report() {
                    self.handle(Event::Reported {
                        worker,
                        attempt,
                        report,
                    });
                }
            }
            self.now = self.now + Span::from_millis(1);
            match self.wake {
                Some(wake) if wake <= self.now => {
                    self.wake = None;
                    self.handle(Event::Woken);
                }
                None if self.daemons.values().all(Daemon::is_idle) => break,
                _ => {}
            }
        }
        self.ledger.close();
        assert_eq!(self.engine.view().jobs().count(), 0);
        assert_eq!(self.engine.view().attempts().count(), 0);
    }
}

fn any_report(rng: &mut Pcg32) -> Report {
    match rng.random_range(0..13) {
        0 => Report::Started,
        1 => Report::Progressed {
            bytes_done: 1,
            bytes_total: 1,
        },
        2 => Report::CommitRequested,
        3 => Report::Done {
            output_bytes: 0,
            output_digest: Some(rng.random_range(0..2)),
        },
        4 => {
            let place = FaultPlace::ALL[rng.random_range(0..FaultPlace::ALL.len())];
            let class = FailureClass::Task;
            let reason = "no".to_owned();
            Report::Failed {
                class,
                place,
                reason,
                lost_outputs: Vec::new(),
                disk_need: None,
            }
        }
        5 => Report::Killed,
        6 => Report::Suspended,
        7 => Report::Resumed,
        10 => Report::OutputMoved,
        11 => Report::SuspendedAtWork,
        9 => Report::SuspendRefused {
            reason: "no".to_owned(),
        },
        8 => {
            let task = TaskId {
                job: JobId(1),
                kind: TaskKind::Map,
                index: rng.random_range(0..4),
            };
            let outputs = vec![AttemptId {
                task,
                number: rng.random_range(1..3),
            }];
            Report::InputsLost {
                outputs,
                place: FaultPlace::Path,
                reason: "no".to_owned(),
            }
        }
        _ => Report::Checkpointed,
    }
}

/// Plays a seed; prints the seed on stderr if it panics.
pub fn play(seed: u64, hostile: bool) -> RandomRun {
    play_out(RandomRun::new(seed, hostile))
}

/// Plays a run; prints its seed on stderr if it panics.
pub fn play_out(mut run: RandomRun) -> RandomRun {
    struct Seed(u64, bool);
    impl Drop for Seed {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("this was seed {}, hostile: {}", self.0, self.1);
            }
        }
    }
    let _printed_on_panic = Seed(run.seed, run.hostile);
    run.play();
    run
}

/// Plays the beginning of a run.
pub fn play_until(seed: u64, events: u32) -> RandomRun {
    let mut run = RandomRun::new(seed, false);
    run.begin(events);
    run
}

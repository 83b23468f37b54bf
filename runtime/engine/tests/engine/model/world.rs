//! The whole model: clock, random choices, faults, and a final phase without faults in which every job must
//! end. The coordinator learns of the world only from messages, registrations, and its timeout for silent
//! workers.

use std::collections::{BTreeMap, BTreeSet};

use napreduce_engine::{
    AttemptId, Effect, Event, JobId, JobOutcome, JobSpec, MapOutput, MapSpec, Record, Slots, Span,
    Time, WorkerId,
};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg32;

use crate::model::books::Books;
use crate::model::coordinator::Coordinator;
use crate::model::network::Network;
use crate::model::process::Surroundings;
use crate::model::worker::Worker;

const STEPS: u32 = 600;
const JOBS: u32 = 4;
const WORKERS: usize = 5;

pub struct World {
    pub(crate) rng: Pcg32,
    pub(crate) now: Time,
    pub(crate) coordinator: Coordinator,
    pub(crate) network: Network,
    pub(crate) workers: BTreeMap<WorkerId, Worker>,
    /// Workers with a working connection.
    pub(crate) connected: BTreeSet<WorkerId>,
    pub(crate) joined: u32,
    pub(crate) books: Books,
    pub(crate) jobs: u32,
    /// The number of journaled events.
    pub(crate) events: usize,
}

/// The parts of the world that one process can access.
struct Reach<'a> {
    own: WorkerId,
    /// Map outputs of all running workers, except those behind cut links.
    held: &'a BTreeSet<MapOutput>,
    network: &'a mut Network,
    parts: &'a mut BTreeSet<AttemptId>,
    moved: &'a mut BTreeSet<AttemptId>,
}

impl Surroundings for Reach<'_> {
    fn can_read(&self, output: MapOutput) -> bool {
        let reachable = [self.own, WorkerId::STORAGE].contains(&output.worker)
            || !(self.network.cut.contains(&output.worker) || self.network.cut.contains(&self.own));
        reachable && self.held.contains(&output)
    }

    fn promote(&mut self, attempt: AttemptId) {
        self.parts.insert(attempt);
    }

    fn outlive(&mut self, attempt: AttemptId) {
        self.moved.insert(attempt);
    }

    fn note(&mut self, what: &'static str) {
        self.network.note(what);
    }

    fn is_calm(&self) -> bool {
        self.network.calm
    }
}

impl World {
    pub fn new(seed: u64) -> World {
        World {
            rng: Pcg32::seed_from_u64(seed),
            now: Time(0),
            coordinator: Coordinator::new(),
            network: Network::default(),
            workers: BTreeMap::new(),
            connected: BTreeSet::new(),
            joined: 0,
            books: Books::default(),
            jobs: 0,
            events: 0,
        }
    }

    pub fn play(&mut self) {
        (0..3).for_each(|_| self.join());
        self.submit();
        for _ in 0..STEPS {
            self.disturb();
        }
        self.calm_down();
    }

    pub fn journal_digest(&self) -> u64 {
        self.books.digest()
    }

    /// Returns how often each kind of event occurred.
    pub fn happened(&self) -> BTreeMap<&'static str, u64> {
        let mut happened = self.network.happened.clone();
        happened.insert(
            "part that does not count",
            self.books.parts_that_do_not_count(),
        );
        for outcome in self.books.ended.values() {
            let what = match outcome {
                JobOutcome::Succeeded => "job succeeded",
                JobOutcome::Failed { .. } => "job failed",
                JobOutcome::Killed { .. } => "job killed",
            };
            *happened.entry(what).or_default() += 1;
        }
        happened
    }

    /// Performs one random step.
    fn disturb(&mut self) {
        self.now = self.now + Span(self.rng.random_range(0..400));
        match self.rng.random_range(0..200) {
            0..70 => self.arrive(),
            70..140 => self.move_a_worker(),
            140..150 => self.acknowledge(),
            150..160 => self.pass_time(),
            160..172 => self.connect_somebody(),
            172..175 => self.submit(),
            175..178 => self.cut_or_heal(),
            178 => self.crash_a_worker(),
            179..182 => self.declare_lost(),
            182..184 if self.workers.len() < WORKERS => self.join(),
            184 => self.recover(),
            185 => self.take_snapshot(),
            186 if self.rng.random_bool(0.6) => self.drain(),
            187 => self.kill_an_attempt(),
            188 if self.rng.random_bool(0.3) => self.kill_a_job(),
            189..192 => self.coordinator_reports_what_it_holds(),
            _ => self.pass_time(),
        }
    }

    /// Journals an event and then handles it; a crash may occur in between.
    pub(crate) fn handle(&mut self, event: Event, number: Option<u64>) {
        let entry = self.coordinator.journal(self.now, event, number);
        self.events += 1;
        if !self.network.calm && self.rng.random_bool(0.005) {
            self.network.note("coordinator crashed before it acted");
            return self.recover();
        }
        let effects = self.coordinator.handle(entry);
        self.enter(self.events - 1, &effects);
    }

    /// Records the effects of an event, whether it is handled for the first time or replayed.
    pub(crate) fn enter(&mut self, event: usize, effects: &[Effect]) {
        let new = self.books.enter(event, effects);
        if let Err(broken) = self.coordinator.engine.check() {
            panic!("{broken}");
        }
        for effect in effects.iter().filter(|_| new) {
            match effect {
                Effect::Record(Record::AttemptLaunched {
                    duplicate_of: Some(_),
                    ..
                }) => {
                    self.network.note("attempt duplicated");
                }
                Effect::Record(Record::AttemptEnded(_, why))
                    if why.contains("did the task first") =>
                {
                    self.network.note("attempt superseded");
                }
                Effect::Record(Record::WorkerExcluded { .. }) => {
                    self.network.note("worker excluded")
                }
                Effect::WorkerMayLeave { .. } => self.network.note("worker left"),
                Effect::Record(Record::OutputMoved(_)) => self.network.note("output moved"),
                Effect::JobEnded { job, .. } => self.check_nothing_runs(*job),
                _ => {}
            }
        }
        self.send_new(effects);
    }

    /// Checks that an ended job has no processes, except on workers that were declared lost.
    fn check_nothing_runs(&self, job: JobId) {
        for worker in self
            .workers
            .values()
            .filter(|worker| self.coordinator.knows(worker.id))
        {
            let left = worker.attempts().find(|attempt| attempt.task.job == job);
            assert_eq!(left, None, "{job} is over, but runs on {}", worker.id);
        }
    }

    fn move_a_worker(&mut self) {
        if let Some(id) = self.any_worker() {
            self.step(id);
        }
    }

    fn step(&mut self, id: WorkerId) {
        let on_workers = self.workers.values().flat_map(|worker| {
            worker.held.iter().map(|&attempt| MapOutput {
                attempt,
                worker: worker.id,
            })
        });
        let moved = self.books.moved.iter();
        let moved = moved.map(|&attempt| MapOutput {
            attempt,
            worker: WorkerId::STORAGE,
        });
        let held: BTreeSet<MapOutput> = on_workers.chain(moved).collect();
        let Books { parts, moved, .. } = &mut self.books;
        let mut reach = Reach {
            own: id,
            held: &held,
            network: &mut self.network,
            parts,
            moved,
        };
        let worker = self
            .workers
            .get_mut(&id)
            .expect("the caller chose one that runs");
        let Some(number) = worker.step(&mut self.rng, &mut reach) else {
            return;
        };
        if self.connected.contains(&id) {
            self.send_reports_from(id, number);
        }
    }

    /// Registers a new worker. If the answer is lost, the coordinator lists a worker that does not exist.
    pub(crate) fn join(&mut self) {
        self.joined += 1;
        let worker = WorkerId(self.joined);
        let slots = Slots {
            map: self.rng.random_range(1..4),
            reduce: self.rng.random_range(0..3),
        };
        if self.network.calm || !self.rng.random_bool(0.1) {
            self.workers.insert(worker, Worker::new(worker, slots));
            self.connected.insert(worker);
        } else {
            self.network.note("registration lost");
        }
        let host = ["", "ada", "bob"][self.rng.random_range(0..3)].to_owned();
        let rack = ["", "/a", "/b"][self.joined as usize % 3].to_owned();
        self.handle(
            Event::WorkerJoined {
                worker,
                slots,
                host,
                rack,
            },
            None,
        );
    }

    fn submit(&mut self) {
        if self.jobs == JOBS {
            return;
        }
        self.jobs += 1;
        let rng = &mut self.rng;
        let mut spec = spec(rng.random_range(0..7), rng.random_range(0..4));
        spec.attempts_max = rng.random_range(2..6);
        spec.slowstart_permille = [0, 500, 1000, 1000][rng.random_range(0..4)];
        spec.priority = rng.random_range(0..2);
        spec.outputs_move = rng.random_bool(0.7);
        let job = JobId(self.jobs);
        self.books.specs.insert(job, spec.clone());
        self.handle(Event::JobSubmitted { job, spec }, None);
    }

    fn pass_time(&mut self) {
        self.now = self.now + Span(self.rng.random_range(0..2_000));
        if self.coordinator.wake.is_some_and(|wake| wake <= self.now) {
            self.handle(Event::Woken, None);
        }
    }

    pub(crate) fn any_worker(&mut self) -> Option<WorkerId> {
        let all = self.workers.len();
        if all == 0 {
            None
        } else {
            self.workers
                .keys()
                .nth(self.rng.random_range(0..all))
                .copied()
        }
    }

    /// Ends all faults: every submitted job must end, and nothing may remain.
    fn calm_down(&mut self) {
        self.network.calm = true;
        self.network.cut.clear();
        // A worker that lost a message without noticing reconnects.
        self.connected.clear();
        self.join();
        while self.jobs < JOBS {
            self.submit();
        }
        for _ in 0..5_000 {
            if self.books.ended.len() == self.jobs as usize && self.network.is_empty() {
                break;
            }
            self.calm_round();
        }
        let view = self.coordinator.engine.view();
        let stuck: Vec<_> = view
            .jobs()
            .map(|job| (job.id(), view.explain_job(job.id())))
            .collect();
        assert!(stuck.is_empty(), "{stuck:#?}");
        assert_eq!(
            self.books.ended.len(),
            self.jobs as usize,
            "not every job ended"
        );
        assert_eq!(
            self.coordinator.engine.view().attempts().count(),
            0,
            "attempts are left over"
        );
    }

    fn calm_round(&mut self) {
        self.now = self.now + Span::from_millis(1);
        while !self.network.is_empty() {
            self.arrive();
        }
        let ids: Vec<WorkerId> = self.workers.keys().copied().collect();
        for id in &ids {
            if !self.connected.contains(id) {
                self.connect(*id);
            }
        }
        let gone: Vec<WorkerId> = self.silent();
        gone.into_iter().for_each(|worker| {
            self.handle(
                Event::WorkerLost {
                    worker,
                    crashed: true,
                },
                None,
            )
        });
        if !self
            .coordinator
            .engine
            .view()
            .workers()
            .any(|(_, worker)| worker.slots(napreduce_engine::TaskKind::Reduce) > 0)
        {
            self.join();
        }
        for id in ids {
            if self.workers.contains_key(&id) {
                self.step(id);
            }
        }
        if self.coordinator.wake.is_some_and(|wake| wake <= self.now) {
            self.handle(Event::Woken, None);
        }
    }
}

pub fn spec(maps: u32, reduces: u32) -> JobSpec {
    JobSpec {
        name: "job".to_owned(),
        user: "ada".to_owned(),
        queue: "default".to_owned(),
        priority: 0,
        deadline: None,
        maps: vec![
            MapSpec {
                bytes: 7,
                preferred: Vec::new()
            };
            maps as usize
        ],
        reduces,
        attempts_max: 4,
        slowstart_permille: 1000,
        unsaved: Vec::new(),
        memory: 0,
        outputs_move: false,
    }
}

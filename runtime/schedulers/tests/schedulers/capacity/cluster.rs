//! A test cluster of one engine under the capacity policy. Workers start, suspend and kill immediately; tasks
//! run until the test ends them.

use std::collections::VecDeque;

use napreduce_engine::{
    AttemptId, AttemptState, Effect, Engine, EngineSettings, Event, JobId, JobSpec, MapSpec, Order,
    PreemptionSettings, Primitive, Record, Report, Scheduler, Slots, Span, SuspendedMax, TaskKind,
    Time, WorkerId,
};
use napreduce_schedulers::capacity::CapacityConfiguration;

/// The engine, its clock, and what happened.
pub struct Cluster {
    pub engine: Engine,
    pub now: Time,
    /// Victims in the order requested, with primitive and beneficiary.
    pub asked: Vec<(AttemptId, Primitive, Option<JobId>)>,
    pub reasons: Vec<String>,
    pub killed: u32,
    next_job: u32,
    slots: Slots,
    workers: u32,
}

/// A job to submit.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    pub queue: &'a str,
    pub user: &'a str,
    pub priority: i32,
    pub maps: u32,
    pub reduces: u32,
}

/// A job of maps in a queue.
pub fn maps(queue: &str, maps: u32) -> Ask<'_> {
    Ask {
        queue,
        user: "ada",
        priority: 0,
        maps,
        reduces: 0,
    }
}

/// Parses a configuration.
pub fn configuration(text: &str) -> CapacityConfiguration {
    toml::from_str(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Unlimited suspended attempts: one worker with many slots stands for a cluster.
pub fn settings() -> EngineSettings {
    let preemption = PreemptionSettings {
        suspended_max: SuspendedMax::Unlimited,
        ..PreemptionSettings::default()
    };
    EngineSettings {
        strict: true,
        exclusion: None,
        preemption,
        ..EngineSettings::default()
    }
}

impl Cluster {
    /// Creates a cluster with one worker.
    pub fn new(policy: Box<dyn Scheduler>, map: u32, reduce: u32) -> Cluster {
        let engine = Engine::new(policy, settings());
        let slots = Slots { map, reduce };
        let mut cluster = Cluster {
            engine,
            now: Time(0),
            asked: Vec::new(),
            reasons: Vec::new(),
            killed: 0,
            next_job: 1,
            slots,
            workers: 0,
        };
        cluster.join();
        cluster
    }

    /// Adds a worker of the same size.
    pub fn join(&mut self) {
        self.workers += 1;
        self.handle(Event::WorkerJoined {
            worker: WorkerId(self.workers),
            slots: self.slots,
            host: String::new(),
            rack: String::new(),
        });
    }

    pub fn submit(&mut self, ask: Ask<'_>) -> JobId {
        let job = JobId(self.next_job);
        self.next_job += 1;
        let spec = JobSpec {
            name: "job".to_owned(),
            user: ask.user.to_owned(),
            queue: ask.queue.to_owned(),
            priority: ask.priority,
            deadline: None,
            maps: vec![
                MapSpec {
                    bytes: 1,
                    preferred: Vec::new()
                };
                ask.maps as usize
            ],
            reduces: ask.reduces,
            attempts_max: 4,
            slowstart_permille: 0,
            unsaved: Vec::new(),
            memory: 0,
            outputs_move: false,
        };
        self.handle(Event::JobSubmitted { job, spec });
        job
    }

    /// Kills a job.
    pub fn stop(&mut self, job: JobId) {
        self.handle(Event::JobKillRequested {
            job,
            reason: "no longer wanted".to_owned(),
        });
    }

    /// Ends `count` running tasks of a job successfully, those launched first.
    pub fn finish(&mut self, job: JobId, count: usize) {
        let ended: Vec<AttemptId> = self.running_attempts(job).take(count).collect();
        assert_eq!(ended.len(), count, "{job} runs fewer than {count} tasks");
        for attempt in ended {
            let worker = self
                .engine
                .view()
                .attempt(attempt)
                .expect("the attempt runs")
                .worker();
            let commits = Event::Reported {
                worker,
                attempt,
                report: Report::CommitRequested,
            };
            self.handle(commits);
            self.handle(Event::Reported {
                worker,
                attempt,
                report: Report::Done {
                    output_bytes: 0,
                    output_digest: None,
                },
            });
        }
    }

    /// Returns the number of running tasks of a job.
    pub fn running(&self, job: JobId) -> usize {
        self.running_attempts(job).count()
    }

    fn running_attempts(&self, job: JobId) -> impl Iterator<Item = AttemptId> + '_ {
        let view = self.engine.view();
        let attempts = view.job(job).into_iter().flat_map(|job| job.attempts());
        attempts.filter(move |id| {
            view.attempt(*id)
                .is_some_and(|one| one.state() == AttemptState::Running)
        })
    }

    /// Advances time, waking the engine whenever it asks.
    pub fn pass(&mut self, seconds: u64) {
        let until = self.now + Span::from_secs(seconds);
        while let Some(at) = self
            .engine
            .next_wake()
            .filter(|&at| at > self.now && at <= until)
        {
            self.now = at;
            self.handle(Event::Woken);
        }
        self.now = until;
        self.handle(Event::Woken);
    }

    pub fn holds(&self, job: JobId) -> u32 {
        self.holds_of(TaskKind::Map, job)
    }

    pub fn holds_of(&self, kind: TaskKind, job: JobId) -> u32 {
        self.engine
            .view()
            .job(job)
            .map_or(0, |job| job.holding(kind))
    }

    pub fn suspended(&self, job: JobId) -> u32 {
        self.engine
            .view()
            .job(job)
            .map_or(0, |job| job.suspended(TaskKind::Map))
    }

    /// Returns why the map slots of the first worker are empty.
    pub fn declined(&self) -> String {
        let worker = self
            .engine
            .view()
            .worker(WorkerId(1))
            .expect("worker 1 joined");
        worker
            .declined(TaskKind::Map)
            .unwrap_or_default()
            .to_owned()
    }

    /// Handles an event and all reports that follow from it.
    fn handle(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for effect in self.engine.handle(self.now, event) {
                match effect {
                    Effect::Send { worker, order } => events.extend(self.answer(worker, &order)),
                    Effect::Record(Record::PreemptRequested {
                        attempt,
                        primitive,
                        beneficiary,
                        reason,
                        ..
                    }) => {
                        self.asked.push((attempt, primitive, beneficiary));
                        self.reasons.push(reason);
                    }
                    Effect::Warn { message } => panic!("{message}"),
                    _ => {}
                }
            }
            assert_eq!(self.engine.check(), Ok(()));
        }
    }

    fn answer(&mut self, worker: WorkerId, order: &Order) -> Option<Event> {
        let (attempt, report) = match *order {
            Order::Launch { attempt, .. } => (attempt, Report::Started),
            Order::Suspend { attempt } => (attempt, Report::Suspended),
            Order::Resume { attempt } => (attempt, Report::Resumed),
            Order::Checkpoint { attempt } => (attempt, Report::Checkpointed),
            Order::Kill { attempt } => {
                self.killed += 1;
                (attempt, Report::Killed)
            }
            _ => return None,
        };
        Some(Event::Reported {
            worker,
            attempt,
            report,
        })
    }
}

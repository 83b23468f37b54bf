//! The coordinator of a simulated cluster: the loop of `napreduce-local` with several workers, and an operator.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use napreduce_engine::{
    AttemptId, AttemptState, DEFAULT_RACK, Engine, EngineSettings, Event, JobId, Pause, PauseKind,
    Primitive, Slots, WorkerId,
};
use napreduce_local::coordinator::{
    BATCH, Caller, Coordinator, CoordinatorState, Extra, Identity, Input, LastHeard, SendBack,
    sleep_until_some, ticks,
};
use napreduce_local::world::World;
use napreduce_protocol::ToWorker;
use napreduce_schedulers::{SchedulerConfiguration, SchedulerError, SchedulerName};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;

use crate::chance::Chance;
use crate::facts::Facts;
use crate::log::Log;

/// Time in which a launch that was ordered has arrived at its worker and been carried out.
const LAUNCH_TIME_MAX: Duration = Duration::from_secs(60);
/// The reason of every command.
const REASON: &str = "drawn by the operator";

/// What arrives at the coordinator.
#[derive(Debug)]
pub enum Arrival {
    /// For the loop of `napreduce-local`.
    Input(Box<Input>),
    /// A worker has received messages up to this number.
    Delivered { worker: WorkerId, through: u64 },
    /// The operator does something.
    Operate,
    /// The operator lets everything run.
    LetRun,
    /// All jobs have ended.
    Finish,
}

/// A worker that joins.
pub struct Joining {
    pub worker: WorkerId,
    pub slots: Slots,
    pub messages: UnboundedSender<ToWorker>,
}

/// A coordinator and its operator.
pub struct SimCoordinator {
    coordinator: Coordinator,
    chance: Chance,
    facts: Facts,
    log: Log,
    /// Attempts that the operator wants suspended; the suspend may be under way.
    suspending: BTreeSet<AttemptId>,
    /// Jobs that the operator has paused.
    paused: BTreeSet<JobId>,
}

impl SimCoordinator {
    /// Creates the coordinator of this world with a policy's published values.
    ///
    /// # Errors
    /// Fails if the policy cannot be built.
    pub fn new(
        world: World,
        policy: SchedulerName,
        own: SendBack,
        chance: Chance,
        facts: &Facts,
        log: &Log,
    ) -> Result<SimCoordinator, SchedulerError> {
        let scheduler = SchedulerConfiguration::named(policy).build()?;
        let engine = Engine::new(scheduler, EngineSettings::default());
        let state = CoordinatorState::new(
            engine,
            policy.in_words().to_owned(),
            world.clock.unix_micros(),
        );
        Ok(SimCoordinator {
            coordinator: Coordinator::new(world, state, None, own),
            chance,
            facts: facts.clone(),
            log: log.clone(),
            suspending: BTreeSet::new(),
            paused: BTreeSet::new(),
        })
    }

    /// Adds a worker whose messages are delivered by a channel.
    pub fn join(&mut self, joining: Joining) {
        let Joining {
            worker,
            slots,
            messages,
        } = joining;
        let identity = Identity {
            name: worker.to_string(),
            incarnation: u64::from(worker.0),
            slots,
            host: format!("host-{}", worker.0),
            rack: DEFAULT_RACK.to_owned(),
            data_address: String::new(),
            directory: PathBuf::new(),
            architecture: std::env::consts::ARCH.to_owned(),
            isolation: String::new(),
        };
        let joined = identity.joined(worker);
        let extra = Extra::Joined { worker, identity };
        self.coordinator.enter_with(Some(joined), vec![extra]);
        let welcome = ToWorker::Welcome {
            worker,
            journal: 0,
            received: 0,
            heartbeat_millis: 0,
            silence_millis: 0,
        };
        let caller = Caller {
            connection: u64::from(worker.0),
            messages,
            heard: LastHeard::now(),
        };
        if let Some(link) = self.coordinator.state_mut().link_mut(worker) {
            link.connect(caller, 0, welcome);
        }
    }

    /// Runs until [`Arrival::Finish`]; returns whether no job is left.
    pub async fn run(mut self, mut arriving: UnboundedReceiver<Arrival>) -> bool {
        let mut tick = ticks();
        let mut batch = Vec::new();
        self.coordinator.begin_to_listen();
        self.conclude();
        loop {
            tokio::select! {
                count = arriving.recv_many(&mut batch, BATCH) => {
                    if count == 0 {
                        return false;
                    }
                    for arrival in batch.drain(..) {
                        match arrival {
                            Arrival::Input(input) => self.coordinator.take(*input),
                            Arrival::Delivered { worker, through } => self.on_delivered(worker, through),
                            Arrival::Operate => self.operate(),
                            Arrival::LetRun => self.let_run(),
                            Arrival::Finish => return self.coordinator.state().jobs().is_empty(),
                        }
                    }
                    self.coordinator.decide();
                }
                () = sleep_until_some(self.coordinator.wake_at()) => self.coordinator.enter(Event::Woken),
                _ = tick.tick() => self.coordinator.on_tick(),
            }
            self.conclude();
        }
    }

    fn conclude(&mut self) {
        let Ok(()) = self.coordinator.conclude(|_, _| Ok::<(), Infallible>(()));
        if let Err(broken) = self.coordinator.state().engine().check() {
            self.log.violation("coordinator", broken);
        }
        self.follow_holds();
    }

    /// Notes which of the operator's suspends are carried out.
    fn follow_holds(&mut self) {
        let view = self.coordinator.state().view();
        self.suspending.retain(|id| {
            let Some(attempt) = view.attempt(*id) else {
                return false;
            };
            let is_in_force = attempt.state() == AttemptState::Suspended && attempt.is_held();
            if is_in_force {
                self.facts.hold(*id);
            }
            !is_in_force
        });
    }

    fn on_delivered(&mut self, worker: WorkerId, through: u64) {
        let Some(link) = self.coordinator.state_mut().link_mut(worker) else {
            return;
        };
        if link.acknowledge(through).is_err() {
            let what = format!("{worker} acknowledges {through}, which was never sent");
            self.log.violation("coordinator", what);
        }
    }

    /// Does one thing that an operator may do now, if there is any.
    fn operate(&mut self) {
        let view = self.coordinator.state().view();
        let attempts: Vec<AttemptId> = view.attempts().map(|attempt| attempt.id()).collect();
        let jobs: Vec<JobId> = view.jobs().map(|job| job.id()).collect();
        let attempt = self.chance.pick(&attempts).copied();
        let job = self.chance.pick(&jobs).copied();
        match self.chance.count(0, 11) {
            0..=2 => self.preempt(attempt, Primitive::Suspend),
            3 | 4 => self.preempt(attempt, Primitive::Checkpoint),
            5 => self.kill_attempt(attempt),
            6 | 7 => self.resume_attempt(attempt),
            8 => self.pause(job, PauseKind::Suspend),
            9 => self.pause(job, PauseKind::Hold),
            10 => self.resume_job(job),
            _ => self.kill_job(job),
        }
    }

    fn enter(&mut self, what: String, event: Event) {
        self.log.event("operator", what);
        self.coordinator.enter(event);
    }

    fn preempt(&mut self, attempt: Option<AttemptId>, primitive: Primitive) {
        let Some(attempt) = attempt else { return };
        let engine = self.coordinator.state().engine();
        if engine.can_preempt(attempt, primitive).is_err() {
            return;
        }
        self.facts.release(attempt);
        if primitive == Primitive::Suspend {
            self.suspending.insert(attempt);
        }
        self.enter(
            format!("{primitive} {attempt}"),
            Event::AttemptPreemptRequested {
                attempt,
                primitive,
                reason: REASON.to_owned(),
            },
        );
    }

    fn kill_attempt(&mut self, attempt: Option<AttemptId>) {
        let Some(attempt) = attempt else { return };
        let engine = self.coordinator.state().engine();
        if engine.can_preempt(attempt, Primitive::Kill).is_err() {
            return;
        }
        self.enter(
            format!("kill {attempt}"),
            Event::AttemptKillRequested {
                attempt,
                reason: REASON.to_owned(),
            },
        );
    }

    fn resume_attempt(&mut self, attempt: Option<AttemptId>) {
        let Some(attempt) = attempt else { return };
        let engine = self.coordinator.state().engine();
        if engine.can_resume(attempt).is_err() {
            return;
        }
        self.suspending.remove(&attempt);
        self.facts.release(attempt);
        self.enter(
            format!("resume {attempt}"),
            Event::AttemptResumeRequested {
                attempt,
                reason: REASON.to_owned(),
            },
        );
    }

    fn pause(&mut self, job: Option<JobId>, kind: PauseKind) {
        let Some(job) = job else { return };
        let engine = self.coordinator.state().engine();
        if engine.can_pause_job(job, kind).is_err() {
            return;
        }
        self.paused.insert(job);
        self.facts.pause(job, Instant::now() + LAUNCH_TIME_MAX);
        self.enter(
            format!("pause {job} ({kind:?})"),
            Event::JobPauseRequested {
                job,
                pause: Pause {
                    kind,
                    reason: REASON.to_owned(),
                },
            },
        );
    }

    fn resume_job(&mut self, job: Option<JobId>) {
        let Some(job) = job else { return };
        let engine = self.coordinator.state().engine();
        if engine.can_resume_job(job).is_err() {
            return;
        }
        self.paused.remove(&job);
        self.suspending.retain(|attempt| attempt.task.job != job);
        self.facts.resume(job);
        self.enter(
            format!("resume {job}"),
            Event::JobResumeRequested {
                job,
                reason: REASON.to_owned(),
            },
        );
    }

    fn kill_job(&mut self, job: Option<JobId>) {
        let Some(job) = job else { return };
        self.facts.resume(job);
        self.facts.note_killed(job);
        self.enter(
            format!("kill {job}"),
            Event::JobKillRequested {
                job,
                reason: REASON.to_owned(),
            },
        );
    }

    /// Resumes everything that the operator has suspended or paused.
    fn let_run(&mut self) {
        let view = self.coordinator.state().view();
        let jobs: Vec<JobId> = view.jobs().map(|job| job.id()).collect();
        for job in jobs {
            self.resume_job(Some(job));
        }
    }
}

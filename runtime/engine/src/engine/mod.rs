//! The engine: the only place where jobs change. It takes one event and returns effects. It combines the
//! state machines and carries out the scheduler's actions. It uses no clock, transport or storage: the driver
//! passes in time and events and carries out the effects in order.

mod auto;
mod changed_outputs;
mod changes;
mod check;
mod choices;
mod containment;
mod deadlocks;
mod drain;
mod endings;
mod estimate;
mod isolation;
mod jobs;
mod lost_outputs;
mod moves;
mod operators;
mod placement;
mod reports;
mod requests;
mod rounds;
mod shortages;
mod snapshot;
mod speculation;
mod stopping;
mod timers;
mod workers;

pub use estimate::TimeLeft;
pub use snapshot::{EngineSnapshot, SnapshotError};
use timers::Timers;

use rand::SeedableRng;
use rand_pcg::Pcg32;

use crate::cluster::{Cluster, ClusterView};
use crate::effect::{Effect, Order, Record};
use crate::event::Event;
use crate::ids::{AttemptId, JobId, TaskKind, WorkerId};
use crate::job::{JobPart, JobSpec};
use crate::scheduler::{Action, Scheduler};
use crate::settings::EngineSettings;
use crate::sorted::SortedSet;
use crate::states::{AttemptInput, AttemptState};
use crate::time::Time;

/// All jobs, workers and attempts, and a scheduling policy.
///
/// ```
/// use napreduce_engine::{Effect, Engine, EngineSettings, Event, JobId, JobSpec, MapSpec, Order, Slots, Time, WorkerId};
/// use napreduce_engine::scenarios::InOrder;
///
/// let mut engine = Engine::new(Box::new(InOrder), EngineSettings::default());
/// let slots = Slots { map: 1, reduce: 1 };
/// let host = String::from("ada");
/// let rack = String::from("/default-rack");
/// engine.handle(Time(0), Event::WorkerJoined { worker: WorkerId(1), slots, host, rack });
/// let spec = JobSpec {
///     name: "count".into(), user: "ada".into(), queue: "default".into(), priority: 0, deadline: None,
///     maps: vec![MapSpec { bytes: 100, preferred: vec![] }], reduces: 1, attempts_max: 4, slowstart_permille: 1000,
///     unsaved: vec![],
///     memory: 0,
///     outputs_move: false,
/// };
/// let effects = engine.handle(Time(5), Event::JobSubmitted { job: JobId(7), spec });
/// let launched = effects.iter().find_map(|effect| match effect {
///     Effect::Send { order: Order::Launch { attempt, .. }, .. } => Some(attempt.to_string()),
///     _ => None,
/// });
/// assert_eq!(launched.as_deref(), Some("job_0007_m_0000.1"));
/// ```
pub struct Engine {
    rules: Rules,
    scheduler: Box<dyn Scheduler>,
    /// Reused buffer for scheduler actions.
    actions: Vec<Action>,
    /// The policy declined all further slots of the kind being offered.
    declined_kind: bool,
    /// Jobs that changed while slots are promised to them. They may need fewer slots now.
    promised: SortedSet<JobId>,
}

/// The cluster, with the methods that change it for events and for actions of the policy. They send orders, write
/// records and log warnings, but never call the policy. A change that needs none of this is a method of a part of
/// the cluster.
struct Rules {
    cluster: Cluster,
    settings: EngineSettings,
    /// The effects of the event being handled.
    effects: Vec<Effect>,
    timers: Timers,
    /// Chooses the victims of a random eviction.
    random: Pcg32,
}

impl Engine {
    /// Creates an engine without workers and jobs.
    pub fn new(scheduler: Box<dyn Scheduler>, settings: EngineSettings) -> Engine {
        let cluster = Cluster {
            shares_slots: settings.shared_slots,
            ..Cluster::default()
        };
        let rules = Rules {
            cluster,
            settings,
            effects: Vec::new(),
            timers: Timers::default(),
            random: Pcg32::seed_from_u64(settings.seed),
        };
        Engine::with_rules(rules, scheduler)
    }

    fn with_rules(rules: Rules, scheduler: Box<dyn Scheduler>) -> Engine {
        Engine {
            rules,
            scheduler,
            actions: Vec::new(),
            declined_kind: false,
            promised: SortedSet::new(),
        }
    }

    /// Handles one event and returns its effects, in order. `now` must not go back; an earlier time counts as
    /// the time of the last event.
    ///
    /// # Panics
    /// With `strict` settings, panics if the scheduler takes an illegal action.
    pub fn handle(&mut self, now: Time, event: Event) -> Vec<Effect> {
        self.handle_batch(now, std::slice::from_ref(&event))
    }

    /// Handles events of the same instant, in this order, and schedules once after all of them.
    ///
    /// # Panics
    /// See [`Engine::handle`].
    pub fn handle_batch(&mut self, now: Time, events: &[Event]) -> Vec<Effect> {
        self.rules.cluster.now = self.rules.cluster.now.max(now);
        for event in events {
            self.rules.cluster.events += 1;
            self.apply(event);
            self.rules.expire_deadlines();
            self.rules.release_drained_workers();
            self.notify_policy();
            self.scheduler.on_event(
                self.rules.cluster.now,
                event,
                &ClusterView::new(&self.rules.cluster),
            );
        }
        self.rules.resume_recalled();
        self.rules.run_isolated();
        self.schedule();
        self.resolve_deadlocks();
        self.rules.convert_long_suspensions();
        self.rules.speculate();
        self.withdraw_surplus();
        self.rules.record_unused();
        // Policies that account slot time must observe every slot when it is taken.
        self.notify_policy();
        self.rules.count_idle_wakeup(events);
        self.schedule_wakeup();
        std::mem::take(&mut self.rules.effects)
    }

    /// Takes back the effect list after the driver has carried it out, to reuse its buffer.
    pub fn reuse(&mut self, mut effects: Vec<Effect>) {
        if self.rules.effects.is_empty() && effects.capacity() > self.rules.effects.capacity() {
            effects.clear();
            self.rules.effects = effects;
        }
    }

    /// Announces the role of a job that is about to be submitted, if jobs have masters.
    pub fn announce(&mut self, job: JobId, part: JobPart) {
        self.rules.cluster.parts.insert(job, part);
    }

    /// Returns the position of a job among those that wait for their masters; smaller first.
    pub fn rank(&self, spec: &JobSpec) -> i128 {
        self.scheduler.rank(spec)
    }

    /// Returns the queues that a job like this is in, and how many of `slots` map slots each may use.
    pub fn maxima(&self, spec: &JobSpec, slots: u32) -> Vec<(String, u64)> {
        self.scheduler.maxima(spec, slots)
    }

    /// Passes the changed jobs to the policy.
    fn notify_policy(&mut self) {
        let mut changed = self.rules.cluster.demand.take_changed();
        if changed.is_empty() {
            return self.rules.cluster.demand.reuse(changed);
        }
        for id in &changed {
            if let Some(job) = self.rules.cluster.jobs.get_mut(id) {
                job.changed = false;
                if TaskKind::ALL
                    .iter()
                    .any(|kind| job.slots.promised(*kind) > 0)
                {
                    self.promised.insert(*id);
                }
            }
        }
        for id in changed.drain(..) {
            self.rules.cluster.note_deadlock(id);
            self.scheduler.job_changed(
                self.rules.cluster.now,
                id,
                &ClusterView::new(&self.rules.cluster),
            );
        }
        self.rules.cluster.demand.reuse(changed);
    }

    /// Returns when `Event::Woken` must be passed in: the last `Effect::WakeAt` in force. For a restarted
    /// driver.
    pub fn next_wake(&self) -> Option<Time> {
        self.rules.timers.armed()
    }

    /// Returns a read-only view of the cluster.
    pub fn view(&self) -> ClusterView<'_> {
        ClusterView::new(&self.rules.cluster)
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::WorkerJoined {
                worker,
                slots,
                host,
                rack,
            } => {
                self.rules.worker_joined(*worker, *slots, host, rack);
            }
            Event::WorkerLost { worker, crashed } => self.rules.worker_lost(*worker, *crashed),
            Event::WorkerMemory { worker, bytes } => {
                self.rules.cluster.worker_has_memory(*worker, *bytes)
            }
            Event::WorkerShort { worker, lacks } => {
                self.rules.worker_short(*worker, lacks.as_deref())
            }
            Event::JobSubmitted { job, spec } => self.job_submitted(*job, spec),
            Event::WorkerDrainRequested {
                worker,
                hand_back,
                grace,
            } => {
                self.rules.drain_requested(*worker, *hand_back, *grace);
            }
            Event::WorkerUndrainRequested { worker } => self.rules.undrain_requested(*worker),
            Event::AttemptKillRequested { attempt, reason } => {
                self.rules.attempt_kill_requested(*attempt, reason)
            }
            Event::AttemptPreemptRequested {
                attempt,
                primitive,
                reason,
            } => {
                self.rules
                    .attempt_preempt_requested(*attempt, *primitive, reason);
            }
            Event::AttemptResumeRequested { attempt, reason } => {
                self.rules.attempt_resume_requested(*attempt, reason);
            }
            Event::JobPauseRequested { job, pause } => self.rules.job_pause_requested(*job, pause),
            Event::JobResumeRequested { job, reason } => {
                self.rules.job_resume_requested(*job, reason)
            }
            Event::JobChangeRequested {
                job,
                change,
                reason,
            } => {
                self.job_change_requested(*job, change, reason);
            }
            Event::JobKillRequested { job, reason } => self.rules.job_kill_requested(*job, reason),
            Event::Reported {
                worker,
                attempt,
                report,
            } => self.rules.reported(*worker, *attempt, report),
            Event::Woken => self.rules.timers.disarm(),
        }
    }
}

impl Rules {
    /// Applies an input to an attempt. Returns `None` if the table has no row; then the input is counted and
    /// logged.
    fn step(&mut self, id: AttemptId, input: AttemptInput) -> Option<(AttemptState, AttemptState)> {
        let attempt = self.cluster.attempts.get_mut(&id)?;
        let before = attempt.state;
        match before.on(input) {
            Ok(after) => {
                attempt.state = after;
                let worker = attempt.worker;
                if before.is_stopped() != after.is_stopped() {
                    let most_suspended = self.settings.preemption.suspended_max;
                    let worker = self.cluster.worker_mut(worker);
                    if after.is_stopped() {
                        worker.add_stopped(most_suspended);
                    } else {
                        worker.remove_stopped(most_suspended);
                    }
                }
                Some((before, after))
            }
            Err(error) => {
                self.cluster.tally.illegal_reports += 1;
                self.warn(format!("{id}: {error}; ignored"));
                None
            }
        }
    }

    fn record(&mut self, record: Record) {
        self.effects.push(Effect::Record(record));
    }

    fn send(&mut self, worker: WorkerId, order: Order) {
        self.effects.push(Effect::Send { worker, order });
    }

    fn warn(&mut self, message: String) {
        self.effects.push(Effect::Warn { message });
    }
}

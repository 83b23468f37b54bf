//! The engine and what belongs to its jobs and workers: entries in, orders into the links' queues out.
//!
//! Owns the translation between messages and the engine's vocabulary. Everything here follows from the entries alone, so
//! that going through a journal again leads to the same state with the same numbers. Does not own connections, files
//! nor the clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use napreduce_core::{
    AttemptId, ClusterView, Effect, Engine, Event, FailureClass, FaultPlace, JobId, MapOutput, Order, Record,
    Report, Start, Time, WorkerId,
};
use napreduce_protocol::{Peer, ReduceInputs, WorkerOrder, WorkerReport};

use super::chains::KnownChain;
use super::entry::{Accepted, Entry, Happening, Identity};
use super::gone::{GoneWorkers, Parting};
use super::job::LiveJob;
use super::link::Link;
use super::replay::{Recording, ReplayedEvent};

/// All that a coordinator knows.
pub(super) struct Brain {
    pub(super) engine: Engine,
    pub(super) jobs: BTreeMap<JobId, LiveJob>,
    pub(super) links: BTreeMap<WorkerId, Link>,
    /// Chains of jobs that are not settled.
    pub(super) chains: BTreeMap<u128, KnownChain>,
    /// Workers that were there.
    pub(super) gone: GoneWorkers,
    /// Links with something to send, perhaps.
    touched: BTreeSet<WorkerId>,
    /// Jobs that the engine has forgotten, whose output is to be committed or removed.
    pub(super) ended: Vec<JobId>,
    pub(super) wake_at: Option<Time>,
    /// The time of the last entry.
    pub(super) last: Time,
    /// The engine's time 0, in microseconds since 1970.
    pub(super) epoch_micros: u64,
    /// The highest number given to a job and to a worker.
    pub(super) last_job: u32,
    pub(super) last_worker: u32,
    /// What is worth a line in the log.
    pub(super) notices: Vec<String>,
    /// Every event with what followed, if that is wanted.
    pub(super) recorded: Option<Recording>,
    /// The policy's name.
    pub(super) policy: String,
}

impl Brain {
    pub(super) fn new(engine: Engine, policy: String, epoch_micros: u64) -> Brain {
        Brain {
            engine,
            jobs: BTreeMap::new(),
            links: BTreeMap::new(),
            chains: BTreeMap::new(),
            gone: GoneWorkers::default(),
            touched: BTreeSet::new(),
            ended: Vec::new(),
            wake_at: None,
            last: Time(0),
            epoch_micros,
            last_job: 0,
            last_worker: 0,
            notices: Vec::new(),
            recorded: None,
            policy,
        }
    }

    pub(super) fn view(&self) -> ClusterView<'_> {
        self.engine.view()
    }

    /// The time of the last entry in microseconds since 1970.
    pub(super) fn unix_micros(&self) -> u64 {
        self.epoch_micros.saturating_add(self.last.0)
    }

    /// Takes in an entry: one that was just journaled, or is read from the journal again.
    pub(super) fn apply(&mut self, entry: Entry) {
        self.last = self.last.max(entry.at);
        let event = entry.event();
        let mut left = None;
        self.note_chain(&entry.happening);
        match entry.happening {
            Happening::Submitted(accepted) => self.enter(*accepted),
            Happening::Joined { worker, identity } => {
                self.last_worker = self.last_worker.max(worker.0);
                self.links.entry(worker).or_insert_with(|| Link::new(identity));
            }
            Happening::Reported { worker, number, report } => self.take_in(worker, number, report),
            // Its name is wanted for the history until the engine has said what follows.
            Happening::Lost { worker, reason, .. } => {
                self.remember_gone(worker, Parting::Lost, &reason);
                left = Some(worker);
            }
            Happening::Woken => self.wake_at = None,
            Happening::AttemptKillRequested { attempt, reason } => self.note_kill(attempt, &reason),
            Happening::CommitBegun { job } => {
                if let Some(job) = self.jobs.get_mut(&job) {
                    job.commit_begun = true;
                }
            }
            Happening::Settled { job, .. } => drop(self.jobs.remove(&job)),
            _ => {}
        }
        if let Some(event) = event {
            self.handle(event);
        }
        if let Some(worker) = left {
            self.links.remove(&worker);
        }
    }

    fn enter(&mut self, accepted: Accepted) {
        let micros = self.unix_micros();
        self.last_job = self.last_job.max(accepted.job.0);
        self.jobs.insert(accepted.job, LiveJob::new(accepted, micros));
    }

    fn take_in(&mut self, worker: WorkerId, number: u64, report: WorkerReport) {
        if let Some(link) = self.links.get_mut(&worker) {
            link.take_in(number);
            self.touched.insert(worker);
        }
        match report {
            WorkerReport::Happened { attempt, report } => {
                // What the engine drops as stale is not to be counted either.
                if self.is_current(worker, attempt)
                    && let Some(job) = self.jobs.get_mut(&attempt.task.job)
                {
                    job.on_report(attempt, &report);
                }
            }
            WorkerReport::Finished { attempt, counters, part } => {
                if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
                    job.on_finished(attempt, counters, part);
                }
            }
            WorkerReport::Preempted { attempt, account } => {
                if self.is_current(worker, attempt) {
                    self.note_account(attempt, &account);
                }
            }
            WorkerReport::Draining { .. }
            | WorkerReport::SuspendWanted { .. }
            | WorkerReport::Short { .. } => {}
        }
    }

    fn remember_gone(&mut self, worker: WorkerId, how: Parting, reason: &str) {
        let at_millis = self.unix_micros() / 1_000;
        if let Some(link) = self.links.get(&worker) {
            self.gone.remember(worker, link.identity(), how, at_millis, reason);
        }
    }

    fn is_current(&self, worker: WorkerId, attempt: AttemptId) -> bool {
        self.view().attempt(attempt).is_some_and(|known| known.worker() == worker)
    }

    /// Hands an event to the engine and carries out what comes of it; an order that cannot be given is one more event.
    fn handle(&mut self, event: Event) {
        let mut events = std::collections::VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let effects = match &mut self.recorded {
                None => self.engine.handle(self.last, event),
                Some(recorded) => {
                    let effects = self.engine.handle(self.last, event.clone());
                    let told = ReplayedEvent { at: self.last, event, effects: effects.clone() };
                    recorded.lock().unwrap_or_else(PoisonError::into_inner).push(told);
                    effects
                }
            };
            for effect in effects {
                events.extend(self.carry_out(effect));
            }
        }
    }

    fn carry_out(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Record(record) => self.keep(&record),
            Effect::Warn { message } => self.notices.push(format!("warning: {message}")),
            Effect::SubmitWanted { name } => {
                let why = "a job program submits its jobs itself";
                self.notices.push(format!("warning: the scheduler wants job {name} submitted, but {why}"));
            }
            Effect::WakeAt(at) => self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at))),
            Effect::WorkerMayLeave { worker } => self.order(worker, WorkerOrder::Leave),
            Effect::JobEnded { job, outcome } => {
                let told: Vec<WorkerId> = self
                    .links
                    .iter()
                    .filter(|(_, link)| link.knows(job))
                    .map(|(worker, _)| *worker)
                    .collect();
                for worker in told {
                    self.order(worker, WorkerOrder::Forget { job });
                }
                if let Some(known) = self.jobs.get_mut(&job) {
                    known.outcome = Some(outcome);
                    self.ended.push(job);
                }
            }
            Effect::Send { worker, order } => {
                self.note_order(worker, &order);
                match self.translate(worker, &order) {
                    Ok(order) => self.order(worker, order),
                    Err(refusal) => return Some(refusal.into_event(worker)),
                }
            }
        }
        None
    }

    fn keep(&mut self, record: &Record) {
        let micros = self.unix_micros();
        let Some(job) = job_of(record) else { return self.keep_of_worker(record) };
        let name = match record {
            Record::AttemptLaunched { worker, .. } => {
                self.links.get(worker).map(|link| link.identity().name.as_str()).unwrap_or_default()
            }
            _ => "",
        };
        if let Some(job) = self.jobs.get_mut(&job) {
            job.on_record(micros, record, name);
        }
        self.note_request(record);
    }

    /// What happens to workers is told, not kept.
    fn keep_of_worker(&mut self, record: &Record) {
        let notice = match record {
            Record::WorkerDraining(worker) => format!("{worker} is draining"),
            Record::WorkerLeft(worker) => {
                self.remember_gone(*worker, Parting::Left, "nothing of it was needed any more");
                format!("{worker} may leave")
            }
            Record::WorkerSetAside { worker, until } => {
                let seconds = until.0.saturating_sub(self.last.0) / 1_000_000;
                format!("{worker} gets nothing new for {seconds} s: too much failed there")
            }
            Record::WorkerShort { worker, lacks: None, .. } => format!("{worker} has again what it lacked"),
            Record::WorkerShort { worker, lacks: Some(lacks), until: None } => {
                format!("{worker} gets nothing new until it has what it lacks: {lacks}")
            }
            Record::WorkerShort { worker, lacks: Some(lacks), until: Some(until) } => {
                let seconds = until.0.saturating_sub(self.last.0) / 1_000_000;
                format!("{worker} gets nothing new for {seconds} s: {lacks}")
            }
            _ => return,
        };
        self.notices.push(notice);
    }

    fn order(&mut self, worker: WorkerId, order: WorkerOrder) {
        if let Some(link) = self.links.get_mut(&worker) {
            link.order(order);
            self.touched.insert(worker);
        }
    }

    /// The message that carries an order.
    fn translate(&mut self, worker: WorkerId, order: &Order) -> Result<WorkerOrder, Refusal> {
        match order {
            Order::Launch { attempt, from, inputs } => {
                let unknown =
                    Refusal { attempt: *attempt, order: "launch an attempt of a task that is unknown" };
                let inputs = self.located(inputs);
                let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return Err(unknown) };
                let Some(work) = job.launch(*attempt, inputs) else { return Err(unknown) };
                if self.links.get(&worker).is_some_and(|link| !link.knows(attempt.task.job)) {
                    let description = Box::new(job.description());
                    self.order(worker, WorkerOrder::Define(description));
                }
                let restore = match from {
                    Start::Fresh => None,
                    Start::Checkpoint(saved) => Some(*saved),
                };
                Ok(WorkerOrder::Launch { attempt: *attempt, restore, work })
            }
            Order::MoreInputs { attempt, inputs } => {
                Ok(WorkerOrder::MoreInputs { attempt: *attempt, inputs: self.located(inputs) })
            }
            Order::Kill { attempt } => Ok(WorkerOrder::Kill { attempt: *attempt }),
            Order::Commit { attempt } => Ok(WorkerOrder::Commit { attempt: *attempt }),
            Order::Suspend { attempt } => Ok(WorkerOrder::Suspend { attempt: *attempt }),
            Order::Resume { attempt } => Ok(WorkerOrder::Resume { attempt: *attempt }),
            Order::Checkpoint { attempt } => Ok(WorkerOrder::Checkpoint { attempt: *attempt }),
        }
    }

    /// Map outputs with the addresses of the workers that hold them.
    fn located(&self, outputs: &[MapOutput]) -> ReduceInputs {
        let holders: BTreeSet<WorkerId> = outputs.iter().map(|output| output.worker).collect();
        let peers = holders.into_iter().filter_map(|worker| {
            let Identity { data_address, directory, incarnation, .. } = self.links.get(&worker)?.identity();
            (!data_address.is_empty()).then(|| Peer {
                worker,
                address: data_address.clone(),
                directory: directory.clone(),
                incarnation: *incarnation,
            })
        });
        ReduceInputs { outputs: outputs.to_vec(), peers: peers.collect() }
    }

    /// A worker whose link may have something to send, though no entry says so.
    pub(super) fn touch(&mut self, worker: WorkerId) {
        self.touched.insert(worker);
    }

    /// Sends what the entries so far led to; they are in the journal by now.
    pub(super) fn flush(&mut self) {
        for worker in std::mem::take(&mut self.touched) {
            if let Some(link) = self.links.get_mut(&worker) {
                link.flush();
            }
        }
    }
}

fn job_of(record: &Record) -> Option<JobId> {
    Some(match record {
        Record::WorkerDraining(_)
        | Record::WorkerLeft(_)
        | Record::WorkerSetAside { .. }
        | Record::WorkerShort { .. } => return None,
        Record::JobAccepted(job)
        | Record::JobDecided(job, _)
        | Record::JobEnded(job, _)
        | Record::JobHeld { job, .. }
        | Record::JobReleased { job, .. } => *job,
        Record::AttemptLaunched { attempt, .. }
        | Record::CommitGranted(attempt)
        | Record::TaskDone(attempt)
        | Record::AttemptEnded(attempt, _)
        | Record::PreemptRequested { attempt, .. }
        | Record::SuspendRefused { attempt, .. }
        | Record::Converted { attempt, .. }
        | Record::AttemptHeld { attempt, .. }
        | Record::AttemptReleased { attempt, .. }
        | Record::Suspended(attempt)
        | Record::Resumed(attempt)
        | Record::Checkpointed(attempt) => attempt.task.job,
        Record::OutputLost(task) | Record::TaskIsolated { task, .. } => task.job,
    })
}

/// An order of the engine that cannot be given.
struct Refusal {
    attempt: AttemptId,
    order: &'static str,
}

impl Refusal {
    fn into_event(self, worker: WorkerId) -> Event {
        let reason = format!("this runtime cannot {}", self.order);
        let (class, place) = (FailureClass::Fatal, FaultPlace::Host);
        let report = Report::Failed { class, place, reason, lost_outputs: Vec::new() };
        Event::Reported { worker, attempt: self.attempt, report }
    }
}

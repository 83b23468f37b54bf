//! The engine with its jobs and workers: entries go in, orders go out to the queues of the links.
//!
//! The state depends on the entries alone, so replaying a journal restores the same state with the same
//! numbers.

mod notes;
mod output_log;

use std::collections::{BTreeMap, BTreeSet};

use napreduce_engine::{
    AttemptId, ClusterView, Effect, Engine, Event, FailureClass, FaultPlace, JobId, MapOutput,
    Order, Record, Report, TaskKind, Time, WorkerId,
};
use napreduce_protocol::{JobSummary, ToWorker, lock};
use serde::{Deserialize, Serialize};

use super::entry::{Accepted, Entry, Extra, KnownChain};
use super::gone::{GoneWorkers, Parting};
use super::job::LiveJob;
use super::link::{Link, LinkSnapshot};
use super::recording::{Recording, ReplayedBatch};
#[cfg(feature = "simulated")]
use crate::world::{Fact, note};
use crate::world::{Situation, reached};

/// Maximum ended jobs to list although they are missing from the history.
const UNRECORDED_MAX: usize = 1_000;

/// The state of a coordinator.
pub struct CoordinatorState {
    engine: Engine,
    jobs: BTreeMap<JobId, LiveJob>,
    links: BTreeMap<WorkerId, Link>,
    /// Chains that are not settled.
    chains: BTreeMap<u128, KnownChain>,
    /// Ended jobs that are missing from the history, the newest ones.
    unrecorded: BTreeMap<JobId, JobSummary>,
    /// Workers that left or were lost.
    gone: GoneWorkers,
    /// Links that may have something to send.
    touched: BTreeSet<WorkerId>,
    /// Steps of the current entry that follow the engine; empty between entries.
    cleanups: Vec<Cleanup>,
    /// Jobs forgotten by the engine whose output must be committed or removed.
    ended: Vec<JobId>,
    wake_at: Option<Time>,
    /// The time of the last entry.
    last: Time,
    /// The engine's time 0, in microseconds since 1970.
    epoch_micros: u64,
    /// The highest job number and worker number assigned.
    last_job: u32,
    last_worker: u32,
    /// Lines for the log.
    notices: Vec<String>,
    /// All events with their effects, if recording is enabled.
    recorded: Option<Recording>,
    /// The policy's name.
    policy: String,
}

/// Data that an entry brings for the engine's decision, and that is dropped after it.
enum Cleanup {
    /// The link of a lost worker, whose name the history needs.
    Link(WorkerId),
    /// The start and end of an attempt whose report may be stale.
    Moments(AttemptId),
    /// The result of an attempt, which is not kept if another attempt was faster.
    Finished(AttemptId),
    /// The record on which an attempt failed, whose report may be stale.
    FailedRecord(AttemptId),
}

/// The part of a state that a snapshot contains.
#[derive(Serialize, Deserialize)]
pub struct StateSnapshot {
    pub jobs: Vec<LiveJob>,
    pub links: Vec<(WorkerId, LinkSnapshot)>,
    pub chains: Vec<(u128, KnownChain)>,
    #[serde(default)]
    pub unrecorded: Vec<JobSummary>,
    pub gone: GoneWorkers,
    pub last: Time,
    pub last_job: u32,
    pub last_worker: u32,
}

impl CoordinatorState {
    pub fn new(engine: Engine, policy: String, epoch_micros: u64) -> CoordinatorState {
        CoordinatorState {
            engine,
            jobs: BTreeMap::new(),
            links: BTreeMap::new(),
            chains: BTreeMap::new(),
            unrecorded: BTreeMap::new(),
            gone: GoneWorkers::default(),
            touched: BTreeSet::new(),
            cleanups: Vec::new(),
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
}

impl CoordinatorState {
    /// Returns the data of a snapshot besides the engine.
    pub fn snapshot(&self) -> StateSnapshot {
        StateSnapshot {
            jobs: self.jobs.values().cloned().collect(),
            links: self
                .links
                .iter()
                .map(|(worker, link)| (*worker, link.kept().clone()))
                .collect(),
            chains: self
                .chains
                .iter()
                .map(|(chain, known)| (*chain, known.clone()))
                .collect(),
            unrecorded: self.unrecorded.values().cloned().collect(),
            gone: self.gone.clone(),
            last: self.last,
            last_job: self.last_job,
            last_worker: self.last_worker,
        }
    }

    /// Restores a state from an engine and the data of a snapshot. The jobs to settle are listed after a replay, by
    /// [`list_ended`](Self::list_ended).
    pub fn restore(
        engine: Engine,
        policy: String,
        epoch_micros: u64,
        kept: StateSnapshot,
    ) -> CoordinatorState {
        let StateSnapshot {
            jobs,
            links,
            chains,
            unrecorded,
            gone,
            last,
            last_job,
            last_worker,
        } = kept;
        CoordinatorState {
            ended: Vec::new(),
            jobs: jobs.into_iter().map(|job| (job.id(), job)).collect(),
            links: links
                .into_iter()
                .map(|(worker, kept)| (worker, Link::restored(kept)))
                .collect(),
            chains: chains.into_iter().collect(),
            unrecorded: unrecorded
                .into_iter()
                .map(|summary| (summary.job, summary))
                .collect(),
            gone,
            wake_at: engine.next_wake(),
            last,
            last_job,
            last_worker,
            ..CoordinatorState::new(engine, policy, epoch_micros)
        }
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the jobs that are not settled.
    pub fn jobs(&self) -> &BTreeMap<JobId, LiveJob> {
        &self.jobs
    }

    pub fn links(&self) -> &BTreeMap<WorkerId, Link> {
        &self.links
    }

    pub fn link_mut(&mut self, worker: WorkerId) -> Option<&mut Link> {
        self.links.get_mut(&worker)
    }

    pub fn remove_link(&mut self, worker: WorkerId) {
        self.links.remove(&worker);
    }

    /// Notes that all orders so far are recovered ones.
    pub fn note_recovered(&mut self) {
        self.links.values_mut().for_each(Link::note_recovered);
    }

    /// Starts the time for workers to reconnect now.
    pub fn begin_to_listen(&mut self) {
        self.links.values_mut().for_each(Link::begin_to_listen);
    }

    /// Returns the chains that are not settled.
    pub fn chains(&self) -> &BTreeMap<u128, KnownChain> {
        &self.chains
    }

    /// Returns the newest ended jobs that are missing from the history.
    pub fn unrecorded(&self) -> &BTreeMap<JobId, JobSummary> {
        &self.unrecorded
    }

    /// Returns the workers that left or were lost.
    pub fn gone(&self) -> &GoneWorkers {
        &self.gone
    }

    /// Returns the jobs whose output is to be committed or removed, once.
    pub(in crate::coordinator) fn take_ended(&mut self) -> Vec<JobId> {
        std::mem::take(&mut self.ended)
    }

    /// Lists the jobs again whose output was being committed or removed when the last coordinator ended.
    pub fn list_ended(&mut self) {
        self.ended = self
            .jobs
            .values()
            .filter(|job| job.outcome.is_some())
            .map(LiveJob::id)
            .collect();
    }

    /// Returns when the engine must be woken.
    pub fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    /// Returns the time of the last entry.
    pub fn last(&self) -> Time {
        self.last
    }

    /// Begins an entry at this time, or at that of the last entry if that is later.
    pub(in crate::coordinator) fn begin_entry(&mut self, now: Time) -> Time {
        self.last = self.last.max(now);
        self.last
    }

    /// Returns the engine's time 0, in microseconds since 1970.
    pub fn epoch_micros(&self) -> u64 {
        self.epoch_micros
    }

    /// Sets the engine's time 0, as if the machine's clock had been set.
    pub fn set_epoch_micros(&mut self, micros: u64) {
        self.epoch_micros = micros;
    }

    /// Returns the highest job number assigned.
    pub fn last_job(&self) -> u32 {
        self.last_job
    }

    /// Numbers later jobs above this one.
    pub fn number_above(&mut self, job: JobId) {
        self.last_job = self.last_job.max(job.0);
    }

    /// Returns the number of the next worker.
    pub fn next_worker(&self) -> WorkerId {
        WorkerId(self.last_worker + 1)
    }

    /// Numbers later workers above this one.
    pub fn number_workers_above(&mut self, worker: WorkerId) {
        self.last_worker = self.last_worker.max(worker.0);
    }

    /// Adds a line for the log.
    pub fn notice(&mut self, line: String) {
        self.notices.push(line);
    }

    /// Takes the lines for the log.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// Records every later event and its effects.
    pub fn record(&mut self, recording: Option<Recording>) {
        self.recorded = recording;
    }

    /// Returns the policy's name.
    pub fn policy(&self) -> &str {
        &self.policy
    }
}

impl CoordinatorState {
    pub fn view(&self) -> ClusterView<'_> {
        self.engine.view()
    }

    /// Returns the time of the last entry in microseconds since 1970.
    pub fn unix_micros(&self) -> u64 {
        self.epoch_micros.saturating_add(self.last.0)
    }

    /// Applies an entry replayed from the journal.
    pub fn apply(&mut self, entry: Entry) {
        self.last = self.last.max(entry.at);
        for extra in entry.extra.clone() {
            self.take_in(extra);
        }
        self.handle_batch(entry);
    }

    /// Applies an extra of an entry, before its events. Data that only the events need is dropped after them.
    pub(in crate::coordinator) fn take_in(&mut self, extra: Extra) {
        match extra {
            Extra::Accepted(accepted) => {
                self.enter(*accepted);
            }
            Extra::Joined { worker, identity } => {
                self.last_worker = self.last_worker.max(worker.0);
                self.links
                    .entry(worker)
                    .or_insert_with(|| Link::new(identity));
            }
            Extra::Lost { worker, reason } => {
                self.remember_gone(worker, Parting::Lost, &reason);
                self.cleanups.push(Cleanup::Link(worker));
            }
            Extra::DrainAsked { worker, reason } => {
                self.note_drain(worker, "is asked to drain", Some(reason));
            }
            Extra::UndrainAsked { worker, reason } => {
                self.note_drain(worker, &format!("is no longer draining: {reason}"), None);
            }
            Extra::Received { worker, number } => {
                if let Some(link) = self.links.get_mut(&worker) {
                    link.take_in(number);
                    self.touched.insert(worker);
                }
            }
            Extra::StartedAt { attempt, at } => {
                let at_micros = self.epoch_micros.saturating_add(at.0);
                if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
                    job.on_started_at(attempt, at_micros);
                    self.cleanups.push(Cleanup::Moments(attempt));
                }
            }
            Extra::EndedAt { attempt, at } => {
                let at_micros = self.epoch_micros.saturating_add(at.0);
                if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
                    job.on_ended_at(attempt, at_micros);
                    self.cleanups.push(Cleanup::Moments(attempt));
                }
            }
            Extra::Finished {
                attempt,
                counters,
                part,
            } => {
                if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
                    job.on_finished(attempt, counters, part);
                    self.cleanups.push(Cleanup::Finished(attempt));
                }
            }
            Extra::FailedOn { attempt, record } => {
                if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
                    job.on_failed_record(attempt, *record);
                    self.cleanups.push(Cleanup::FailedRecord(attempt));
                }
            }
            Extra::Preempted {
                worker,
                attempt,
                account,
            } => {
                if self.is_current(worker, attempt) {
                    self.note_account(attempt, &account);
                }
            }
            Extra::Printed { attempt, stderr } => {
                if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
                    job.on_printed(attempt, stderr);
                }
            }
            Extra::CommitBegun { job } => {
                if let Some(job) = self.jobs.get_mut(&job) {
                    job.commit_begun = true;
                }
            }
            Extra::Unrecorded { summary } => {
                self.unrecorded.insert(summary.job, *summary);
                if self.unrecorded.len() > UNRECORDED_MAX {
                    self.unrecorded.pop_first();
                }
            }
            Extra::Settled { job, .. } => {
                self.jobs.remove(&job);
            }
            Extra::ChainBegun { .. } | Extra::ChainOver { .. } | Extra::ChainSettled { .. } => {
                self.note_chain(&extra);
            }
        }
    }

    /// Passes the events of an entry to the engine and carries out the effects. An order that cannot be sent
    /// becomes another event.
    pub(in crate::coordinator) fn handle_batch(&mut self, entry: Entry) {
        for event in &entry.events {
            self.note_event(event);
        }
        let mut events = entry.events;
        while !events.is_empty() {
            let effects = self.engine.handle_batch(self.last, &events);
            if let Some(recorded) = &mut self.recorded {
                let batch = ReplayedBatch {
                    at: self.last,
                    events,
                    effects: effects.clone(),
                };
                lock(recorded).push(batch);
            }
            events = self.carry_out_all(effects);
        }
        for cleanup in std::mem::take(&mut self.cleanups) {
            self.clean_up(cleanup);
        }
    }

    fn clean_up(&mut self, cleanup: Cleanup) {
        match cleanup {
            Cleanup::Link(worker) => {
                self.links.remove(&worker);
            }
            Cleanup::Moments(attempt) => {
                if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
                    job.forget_moments(attempt);
                }
            }
            Cleanup::Finished(attempt) => {
                if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
                    job.forget_finished(attempt);
                }
            }
            Cleanup::FailedRecord(attempt) => {
                if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
                    job.forget_failed_record(attempt);
                }
            }
        }
    }

    /// Updates the state outside the engine for an event.
    fn note_event(&mut self, event: &Event) {
        let at_micros = self.unix_micros();
        match event {
            Event::Reported {
                worker,
                attempt,
                report,
            } => {
                // Do not count reports that the engine drops as stale.
                if !self.is_current(*worker, *attempt) {
                    return reached(Situation::ReportStale);
                }
                if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
                    job.on_report(at_micros, *attempt, report);
                }
            }
            Event::AttemptKillRequested { attempt, reason } => self.note_kill(*attempt, reason),
            Event::Woken => self.wake_at = None,
            _ => {}
        }
    }

    /// Checks that no two jobs write to the same output directory. A failed or killed job whose tasks are over only removes
    /// its own files.
    #[cfg(feature = "simulated")]
    pub(super) fn check_outputs(&self) -> Result<(), String> {
        let mut owners = BTreeMap::new();
        for job in self.jobs.values() {
            match &job.outcome {
                None | Some(napreduce_engine::JobOutcome::Succeeded) => {}
                Some(_) => continue,
            }
            let output = &job.accepted.plan.output;
            if let Some(owner) = owners.insert(output, job.id()) {
                return Err(format!(
                    "{owner} and {} both write to {}",
                    job.id(),
                    output.display()
                ));
            }
        }
        Ok(())
    }

    fn enter(&mut self, accepted: Accepted) {
        let micros = self.unix_micros();
        self.last_job = self.last_job.max(accepted.job.0);
        self.jobs
            .insert(accepted.job, LiveJob::new(accepted, micros));
    }

    fn remember_gone(&mut self, worker: WorkerId, how: Parting, reason: &str) {
        #[cfg(feature = "simulated")]
        note(&Fact::WorkerGone { worker });
        let at_millis = self.unix_micros() / 1_000;
        if let Some(link) = self.links.get(&worker) {
            self.gone
                .remember(worker, link.identity(), how, at_millis, reason);
        }
    }

    fn is_current(&self, worker: WorkerId, attempt: AttemptId) -> bool {
        self.view()
            .attempt(attempt)
            .is_some_and(|known| known.worker() == worker)
    }

    /// Carries out effects; returns an event for each order that cannot be sent.
    fn carry_out_all(&mut self, effects: Vec<Effect>) -> Vec<Event> {
        let mut events = Vec::new();
        let mut effects = effects.into_iter().peekable();
        while let Some(effect) = effects.next() {
            let Effect::Send {
                worker,
                order: Order::MoreInputs { attempt, inputs },
            } = effect
            else {
                events.extend(self.carry_out(effect));
                continue;
            };
            // An output is announced to the waiting reduces one by one.
            let mut readers = BTreeMap::from([(worker, vec![attempt])]);
            while let Some((worker, attempt)) =
                effects.peek().and_then(|next| reader_of(next, &inputs))
            {
                readers.entry(worker).or_default().push(attempt);
                effects.next();
            }
            self.name_inputs(readers, &inputs);
        }
        events
    }

    fn carry_out(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Record(record) => self.keep(&record),
            Effect::Warn { message } => self.notices.push(format!("warning: {message}")),
            Effect::SubmitWanted { name } => {
                let why = "a job program submits its jobs itself";
                self.notices.push(format!(
                    "warning: ignored submission of job {name} by the scheduler: {why}"
                ));
            }
            Effect::WakeAt(at) => {
                self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)))
            }
            Effect::WorkerMayLeave { worker } => {
                reached(Situation::WorkerLeft);
                self.tell(worker, |number| ToWorker::Leave { number })
            }
            Effect::JobEnded { job, outcome } => {
                let informed: Vec<WorkerId> = self
                    .links
                    .iter()
                    .filter(|(_, link)| link.is_defined(job))
                    .map(|(worker, _)| *worker)
                    .collect();
                for worker in informed {
                    self.tell(worker, |number| ToWorker::Forget { number, job });
                }
                if let Some(known) = self.jobs.get_mut(&job) {
                    known.outcome = Some(outcome);
                    self.ended.push(job);
                }
            }
            Effect::Send { worker, order } => {
                self.note_order(worker, &order);
                return self.order(worker, order);
            }
        }
        None
    }

    fn keep(&mut self, record: &Record) {
        let micros = self.unix_micros();
        let Some(job) = record.job() else {
            return self.keep_of_worker(record);
        };
        let name = match record {
            Record::AttemptLaunched { worker, .. } => self
                .links
                .get(worker)
                .map(|link| link.identity().name.as_str())
                .unwrap_or_default(),
            _ => "",
        };
        tracing::debug!(target: "coordinator", %job, "{record:?}");
        if let Some(job) = self.jobs.get_mut(&job) {
            job.on_record(micros, record, name);
        }
        self.note_request(record);
    }

    /// Emits a worker's record as a notice; it is not stored.
    fn keep_of_worker(&mut self, record: &Record) {
        let notice = match record {
            Record::WorkerDraining(worker) => format!("{worker} is draining"),
            Record::WorkerUndrained(worker) => format!("{worker} receives tasks again"),
            Record::WorkerLeft(worker) => {
                let asked = self.links.get(worker).and_then(Link::drain_reason);
                let why = asked.map_or_else(String::new, |asked| format!(" (drained: {asked})"));
                self.remember_gone(*worker, Parting::Left, &format!("no longer needed{why}"));
                format!("{worker} may leave")
            }
            Record::WorkerExcluded { worker, until } => {
                let seconds = until.0.saturating_sub(self.last.0) / 1_000_000;
                format!(
                    "{worker} is excluded for {seconds} s: many attempts failed there that succeeded elsewhere"
                )
            }
            Record::WorkerShort {
                worker,
                lacks: None,
            } => {
                format!("{worker} receives tasks again: its shortage is over")
            }
            Record::WorkerShort {
                worker,
                lacks: Some(lacks),
            } => {
                format!("{worker} receives no tasks until its shortage is over: {lacks}")
            }
            _ => return,
        };
        self.notices.push(notice);
    }

    pub(in crate::coordinator) fn tell(
        &mut self,
        worker: WorkerId,
        message: impl FnOnce(u64) -> ToWorker,
    ) {
        if let Some(link) = self.links.get_mut(&worker) {
            link.queue(message);
            #[cfg(feature = "simulated")]
            if let Some(message) = link.last_order() {
                note(&Fact::OrderQueued { worker, message });
            }
            self.touched.insert(worker);
        }
    }

    /// Sends an order to a worker with the data it needs; returns an event if the order cannot be sent.
    fn order(&mut self, worker: WorkerId, mut order: Order) -> Option<Event> {
        tracing::trace!(target: "coordinator", to = %worker, "{order:?}");
        let work = match &mut order {
            Order::Launch {
                attempt, inputs, ..
            } => {
                let Some(job) = self.jobs.get_mut(&attempt.task.job) else {
                    return Some(unknown_task(worker, *attempt));
                };
                let Some(work) = job.launch(*attempt) else {
                    return Some(unknown_task(worker, *attempt));
                };
                let id = job.id();
                if attempt.task.kind == TaskKind::Reduce {
                    job.outputs.have(&std::mem::take(inputs));
                }
                if self
                    .links
                    .get(&worker)
                    .is_some_and(|link| !link.is_defined(id))
                {
                    let description = Box::new(job.description());
                    self.tell(worker, |number| ToWorker::Define {
                        number,
                        description,
                    });
                }
                if attempt.task.kind == TaskKind::Reduce {
                    self.tell_outputs(worker, id);
                }
                Some(work)
            }
            _ => None,
        };
        self.tell(worker, |number| ToWorker::Ordered {
            number,
            order,
            work,
        });
        None
    }

    /// Marks a worker whose link may have something to send without an entry.
    pub fn touch(&mut self, worker: WorkerId) {
        self.touched.insert(worker);
    }

    /// Sends the effects of the entries so far, which are journaled by now.
    pub(in crate::coordinator) fn flush(&mut self) {
        for worker in std::mem::take(&mut self.touched) {
            if let Some(link) = self.links.get_mut(&worker) {
                #[cfg(feature = "simulated")]
                for message in link.unsent() {
                    note(&Fact::EffectReleased { what: "an order" });
                    note(&Fact::OrderSent { worker, message });
                }
                link.flush();
            }
        }
    }
}

/// Returns the reader to which an effect announces these inputs.
fn reader_of(effect: &Effect, named: &[MapOutput]) -> Option<(WorkerId, AttemptId)> {
    match effect {
        Effect::Send {
            worker,
            order: Order::MoreInputs { attempt, inputs },
        } if inputs == named => Some((*worker, *attempt)),
        _ => None,
    }
}

/// Returns the event for a launch that cannot be sent.
fn unknown_task(worker: WorkerId, attempt: AttemptId) -> Event {
    let reason = "cannot launch an attempt of an unknown task".to_owned();
    let class = FailureClass::Fatal;
    let place = FaultPlace::Host;
    Event::Reported {
        worker,
        attempt,
        report: Report::Failed {
            class,
            place,
            reason,
            lost_outputs: Vec::new(),
            disk_need: None,
        },
    }
}

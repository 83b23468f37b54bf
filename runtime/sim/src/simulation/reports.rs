//! What workers tell the coordinator, and what one instant brings the engine, in the order of the
//! specification: completions and confirmations, failures, arrivals, timers, heartbeats; inside a group by
//! worker, job, task, attempt.
//!
//! Owns that order, and what a report means for slots and books once it is heard. Does not own what workers
//! do.

use napreduce_engine::{AttemptId, AttemptState, Effect, Event, Order, Report, WorkerId};
use napreduce_protocol::PreemptionAccount;

use super::Simulation;
use super::jobs::Kept;
use crate::run::SimulationError;

/// A report on its way.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub place: u32,
    pub attempt: AttemptId,
    pub report: Report,
    /// Where the run is recorded, what the worker accounts for just before.
    pub account: Option<Box<PreemptionAccount>>,
}

/// The groups of events of one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    Report,
    Failure,
    Joined,
    Arrival,
    Timer,
    Heartbeat,
}

/// Where an event stands among those of its instant.
type Rank = (Group, u32, Option<AttemptId>, u64);

/// The events of one instant that are handed to the engine together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    events: Vec<Event>,
    /// The rank of each event, and its position.
    ranks: Vec<(Rank, usize)>,
    /// Attempts that ask to commit: the rank of their request, their worker and their place.
    commits: Vec<(Rank, WorkerId, AttemptId, u32)>,
    entered: u64,
}

impl Batch {
    pub fn push(&mut self, group: Group, worker: u32, attempt: Option<AttemptId>, event: Event) {
        self.entered += 1;
        self.push_ranked((group, worker, attempt, self.entered), event);
    }

    fn push_ranked(&mut self, rank: Rank, event: Event) {
        self.ranks.push((rank, self.events.len()));
        self.events.push(event);
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.commits.is_empty()
    }

    /// The requests to commit, and what their attempts reported before: a heartbeat may bring both, and so
    /// does a task that takes no time.
    fn take_with(&mut self, commits: &[(Rank, WorkerId, AttemptId, u32)]) -> Vec<Event> {
        let mut asking: Vec<(AttemptId, Rank)> = commits.iter().map(|one| (one.2, one.0)).collect();
        asking.sort_unstable();
        let before = |rank: &Rank, event: &Event| match event {
            Event::Reported { attempt, .. } => asking
                .binary_search_by_key(attempt, |(asks, _)| *asks)
                .is_ok_and(|position| *rank < asking[position].1),
            _ => false,
        };
        let mut requests: Vec<(Rank, Event)> = Vec::with_capacity(commits.len());
        let ranked = std::mem::take(&mut self.ranks).into_iter();
        for ((rank, _), event) in ranked.zip(std::mem::take(&mut self.events)) {
            if before(&rank, &event) {
                requests.push((rank, event));
            } else {
                self.push_ranked(rank, event);
            }
        }
        requests.extend(commits.iter().map(|&(rank, worker, attempt, _)| {
            (rank, Event::Reported { worker, attempt, report: Report::CommitRequested })
        }));
        requests.sort_unstable_by_key(|(rank, _)| *rank);
        requests.into_iter().map(|(_, event)| event).collect()
    }

    /// All events, in their order.
    fn take(&mut self) -> Vec<Event> {
        let events = std::mem::take(&mut self.events);
        if self.ranks.is_sorted() {
            self.ranks.clear();
            return events;
        }
        self.ranks.sort_unstable();
        let mut events: Vec<Option<Event>> = events.into_iter().map(Some).collect();
        self.ranks.drain(..).filter_map(|(_, position)| events[position].take()).collect()
    }

    /// Takes back what `take` gave, for the next time.
    fn give_back(&mut self, mut events: Vec<Event>) {
        if self.events.is_empty() {
            events.clear();
            self.events = events;
        }
    }
}

/// Finds an entry of a list that is asked for in about its own order: the search goes on behind the last one
/// found.
fn find_from<'a, T>(list: &'a [T], next: &mut usize, wanted: impl Fn(&T) -> bool) -> Option<&'a T> {
    let (before, behind) = list.split_at((*next).min(list.len()));
    let position = match behind.iter().position(&wanted) {
        Some(position) => before.len() + position,
        None => before.iter().position(&wanted)?,
    };
    *next = position + 1;
    list.get(position)
}

impl Simulation {
    /// A worker has something to tell: now, or with its next heartbeat.
    pub(super) fn tell(&mut self, place: u32, report: Report) {
        let account = self.account_of(place, &report);
        let attempt = self.attempts.at(place);
        let (worker, told) = (attempt.worker, Told { place, attempt: attempt.id, report, account });
        if self.settings.overheads.heartbeat.0 == 0 {
            self.hear(worker, told, None);
        } else {
            let ends =
                matches!(told.report, Report::Done { .. } | Report::CommitRequested | Report::Failed { .. });
            self.workers[worker as usize].reports.push(told);
            self.expect_heartbeat(worker, ends && self.settings.overheads.out_of_band);
        }
    }

    /// The coordinator hears a report: it becomes an event, and slots change hands.
    pub(super) fn hear(&mut self, worker: u32, told: Told, heartbeat: Option<u64>) {
        let Told { place, attempt, report, account } = told;
        if let Some(recorder) = &mut self.recorder {
            recorder.on_report(self.now, attempt, &report, account);
        }
        let group = match (&heartbeat, &report) {
            (Some(_), _) => Group::Heartbeat,
            (None, Report::Failed { .. }) => Group::Failure,
            (None, _) => Group::Report,
        };
        // A worker's reports keep their order in a heartbeat; otherwise they are ordered by attempt.
        let by_attempt = heartbeat.is_none().then_some(attempt);
        match report {
            Report::CommitRequested => {
                self.batch.entered += 1;
                let rank = (group, worker, by_attempt, self.batch.entered);
                let id = self.workers[worker as usize].id;
                self.batch.commits.push((rank, id, attempt, place));
                return;
            }
            Report::Suspended => self.slot_given_up(place),
            Report::Done { .. } | Report::Failed { .. } | Report::Killed | Report::Checkpointed => {
                self.attempt_gone(place, &report);
            }
            _ => {}
        }
        let id = self.workers[worker as usize].id;
        self.batch.push(group, worker, by_attempt, Event::Reported { worker: id, attempt, report });
    }

    /// Hands the batch to the engine. Requests to commit come first, with their answers: asking and being
    /// allowed take no time here, so that a task that ends now has ended for whatever else happens now.
    pub(super) fn hand_in(&mut self) -> Result<(), SimulationError> {
        if !self.batch.commits.is_empty() {
            let mut commits = std::mem::take(&mut self.batch.commits);
            commits.sort_unstable_by_key(|(rank, ..)| *rank);
            let requests = self.batch.take_with(&commits);
            let mut effects = self.engine_handles(&requests)?;
            let mut answered = 0;
            for effect in effects.drain(..) {
                let granted = match effect {
                    Effect::Send { order: Order::Commit { attempt }, .. } => {
                        find_from(&commits, &mut answered, |(_, _, asked, _)| *asked == attempt)
                    }
                    _ => None,
                };
                match granted {
                    Some(&(rank, worker, _, place)) => self.committed(rank, worker, place),
                    None => self.apply(effect)?,
                }
            }
            self.engine.reuse(effects);
        }
        let events = self.batch.take();
        if !events.is_empty() {
            let mut effects = self.engine_handles(&events)?;
            for effect in effects.drain(..) {
                self.apply(effect)?;
            }
            self.engine.reuse(effects);
        }
        self.batch.give_back(events);
        // What was allowed to commit just now, and has, is told in the next batch of this instant.
        if self.batch.is_empty() {
            self.finishing.clear();
        }
        Ok(())
    }

    /// An attempt was allowed to commit when it asked, and has done so.
    fn committed(&mut self, rank: Rank, worker: WorkerId, place: u32) {
        let attempt = self.attempts.at(place).id;
        let report = Report::Done { output_bytes: 0 };
        self.attempt_gone(place, &report);
        self.batch.push_ranked(rank, Event::Reported { worker, attempt, report });
    }

    fn engine_handles(&mut self, events: &[Event]) -> Result<Vec<Effect>, SimulationError> {
        self.run.events += events.len() as u64;
        if let Some(log) = &mut self.log {
            log.events(self.now, events)?;
        }
        let effects = self.engine.handle_batch(self.now, events);
        if self.engine.view().tally().wakes_put_off > 0 {
            let said = effects.iter().find_map(|effect| match effect {
                Effect::Warn { message } => Some(message.clone()),
                _ => None,
            });
            return Err(SimulationError::Untimely { at: self.now, said: said.unwrap_or_default() });
        }
        if let Some(log) = &mut self.log {
            log.effects(&effects)?;
        }
        Ok(effects)
    }

    /// The coordinator knows that an attempt is stopped.
    fn slot_given_up(&mut self, place: u32) {
        let attempt = self.attempts.at_mut(place);
        let known = self.engine.view().attempt(attempt.id).map(|known| known.state());
        if known != Some(AttemptState::Suspending) {
            // It is being killed by now, and has its slot until that is done.
            return;
        }
        attempt.charge(self.now, &mut self.run.books);
        attempt.holds_slot = false;
        let id = attempt.id;
        self.slot_freed(id);
    }

    /// The coordinator knows that an attempt is over: enters what it did in the books and forgets it.
    pub(super) fn attempt_gone(&mut self, place: u32, report: &Report) {
        let attempt = self.attempts.at_mut(place);
        attempt.charge(self.now, &mut self.run.books);
        let (id, worker, executed, held) =
            (attempt.id, attempt.worker, attempt.executed(), attempt.holds_slot);
        let (done, position, began_anew) = (attempt.done, attempt.place, attempt.done_before == 0);
        // Until the engine says that a task is done its work counts as lost: another attempt may have done it
        // first.
        let mut lost = executed;
        match report {
            Report::Done { .. } => drop(self.finishing.insert(id, executed)),
            Report::Checkpointed => {
                lost = executed.min(self.settings.overheads.checkpoint_loss.0);
                let kept = Kept { worker, done: done - lost };
                let job = self.jobs.at_mut(id.task.job);
                let task = (id.task.kind, id.task.index);
                let before = job.checkpoints.insert(task, kept).filter(|_| began_anew);
                if let Some(before) = before {
                    // A duplicate saved its own work: the task goes on from where most was done.
                    let worse = before.done.min(kept.done);
                    if before.done > kept.done {
                        job.checkpoints.insert(task, before);
                    }
                    self.run.books.wasted += worse;
                    job.result.wasted.0 += worse;
                }
                job.result.preemptions.checkpoint += 1;
                self.run.books.saved += executed - lost;
            }
            _ => {}
        }
        self.run.books.wasted += lost;
        self.jobs.at_mut(id.task.job).result.wasted.0 += lost;
        self.process_gone(place);
        if held {
            self.slot_freed(id);
        }
        self.forget(place, id, worker, position);
    }

    /// Takes an attempt out of every list.
    pub(super) fn forget(&mut self, place: u32, id: AttemptId, worker: u32, position: u32) {
        let moved = self.jobs.at_mut(id.task.job).remove_reduce(id.task.kind, position);
        if let Some(moved) = moved {
            self.attempts.at_mut(moved).place = position;
        }
        self.workers[worker as usize].forget(place);
        self.attempts.remove(place);
    }

    /// A slot is held by a job, as the coordinator sees it.
    pub(super) fn slot_taken(&mut self, id: AttemptId) {
        self.run.books.slot_taken(id.task.kind);
        self.reduce_slots_change(id, 1);
        self.allocation_changed(id, 1);
    }

    pub(super) fn slot_freed(&mut self, id: AttemptId) {
        self.run.books.slot_freed(id.task.kind);
        self.reduce_slots_change(id, -1);
        self.allocation_changed(id, -1);
    }

    fn allocation_changed(&mut self, id: AttemptId, change: i32) {
        if self.settings.record_allocation {
            self.run.allocation.change(self.now, id.task.job, id.task.kind, change);
        }
    }
}

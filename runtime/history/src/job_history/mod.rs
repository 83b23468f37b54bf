//! The growing history of one job: its attempts, events and preemptions, built from records of the engine, orders
//! and accounts of workers. A coordinator and a simulation share it.

mod preemptions;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use napreduce_engine::{AttemptId, JobOutcome, Order, Record, Requester, Start, WorkerId};
use napreduce_protocol::{
    AttemptFigures, AttemptMoments, AttemptSummary, HistoryLine, Preempted, PreemptionAccount,
    PreemptionEnd, PreemptionSummary,
};

pub use self::preemptions::{OPERATOR, PreemptionBook};

/// Prefixes of the event lines about the end of a job. Attempts that end at the same time end before it.
pub const ENDING: &str = "it is ending: ";
pub const ENDED: &str = "it has ended: ";

/// Mutable access to a job's history. Times are microseconds since 1970, or since a simulation began.
#[derive(Debug)]
pub struct JobHistory<'a> {
    /// In the order of their launches; shared with snapshots.
    pub attempts: &'a mut Vec<Arc<AttemptSummary>>,
    pub events: &'a mut Vec<HistoryLine>,
    pub book: &'a mut PreemptionBook,
    /// The attempts that are reported killed in the current batch.
    pub killed: &'a mut BTreeSet<AttemptId>,
    /// When the attempts that are reported to have ended in the current batch ended, if their workers told that.
    pub ends: &'a mut BTreeMap<AttemptId, u64>,
}

impl JobHistory<'_> {
    /// Applies a record of the engine. `worker_name` is the worker of a launch.
    pub fn on_record(&mut self, at_micros: u64, record: &Record, worker_name: &str) {
        let at_millis = at_micros / 1_000;
        match record {
            Record::AttemptLaunched {
                attempt,
                worker,
                duplicate_of,
            } => {
                if let Some(slow) = duplicate_of {
                    self.add_event(at_millis, format!("{attempt} races {slow}, which is slow"));
                }
                self.on_launched(at_micros, *attempt, *worker, worker_name);
            }
            Record::TaskDone(attempt) => {
                self.book
                    .ended(at_micros, *attempt, PreemptionEnd::Finished);
                self.on_attempt_end(at_micros, *attempt, AttemptSummary::SUCCEEDED);
            }
            Record::AttemptEnded(attempt, why) => {
                let killed = self.killed.remove(attempt);
                let end = if killed {
                    PreemptionEnd::Killed
                } else {
                    PreemptionEnd::Ended
                };
                self.book.ended(at_micros, *attempt, end);
                self.on_attempt_end(at_micros, *attempt, why);
            }
            Record::Checkpointed(attempt) => {
                self.book
                    .ended(at_micros, *attempt, PreemptionEnd::Checkpointed);
                self.on_attempt_end(at_micros, *attempt, "checkpointed");
            }
            Record::SlotTaken { freed, by } => self.book.used(at_micros, *freed, *by),
            Record::SlotUnused { freed, job, reason } => {
                self.book.unused(*freed, reason);
                self.add_event(
                    at_millis,
                    format!("{job} did not use the slot of {freed}: {reason}"),
                );
            }
            Record::OutputMoved(attempt) => {
                self.add_event(
                    at_millis,
                    format!("the output of {attempt} was copied off its worker"),
                );
            }
            Record::CommitGranted(_)
            | Record::WorkerDraining(_)
            | Record::WorkerUndrained(_)
            | Record::WorkerLeft(_)
            | Record::WorkerExcluded { .. }
            | Record::WorkerShort { .. } => {}
            Record::PreemptRequested { .. }
            | Record::PreemptWithdrawn { .. }
            | Record::SuspendRefused { .. }
            | Record::Converted { .. }
            | Record::AttemptHeld { .. }
            | Record::AttemptReleased { .. }
            | Record::JobHeld { .. }
            | Record::JobReleased { .. }
            | Record::Suspended(_)
            | Record::Resumed(_) => self.on_preemption(at_micros, record),
            Record::JobChanged { change, reason, .. } => {
                self.add_event(
                    at_millis,
                    format!("it has {} from now on: {reason}", change.in_words()),
                );
            }
            Record::JobAccepted(_) => self.add_event(at_millis, "submitted".to_owned()),
            Record::OutputLost(task) => {
                self.add_event(
                    at_millis,
                    format!("the output of {task} is lost; it runs again"),
                );
            }
            Record::TaskIsolated { task, reason } => {
                self.add_event(
                    at_millis,
                    format!("{task} runs alone from now on: {reason}"),
                );
            }
            Record::JobDecided(_, outcome) => {
                self.book.decided();
                // A succeeded job ends as soon as its output is committed.
                if *outcome != JobOutcome::Succeeded {
                    self.add_event(at_millis, format!("{ENDING}{}", in_words(outcome)));
                }
            }
            Record::JobEnded(_, outcome) => {
                self.add_event(at_millis, format!("{ENDED}{}", in_words(outcome)))
            }
        }
    }

    /// Adds an event.
    pub fn add_event(&mut self, at_millis: u64, text: String) {
        self.events.push(HistoryLine { at_millis, text });
    }

    fn on_launched(
        &mut self,
        at_micros: u64,
        attempt: AttemptId,
        worker: WorkerId,
        worker_name: &str,
    ) {
        self.attempts.push(Arc::new(AttemptSummary {
            attempt,
            worker,
            worker_name: worker_name.to_owned(),
            launched_millis: at_micros / 1_000,
            ended_millis: None,
            end: None,
            figures: None,
            moments: Some(AttemptMoments {
                launched: at_micros,
                ..AttemptMoments::default()
            }),
        }));
    }

    /// Records that an attempt's process started to work.
    pub fn on_started(&mut self, at_micros: u64, attempt: AttemptId) {
        if let Some(moments) = self
            .attempt_mut(attempt)
            .and_then(|summary| summary.moments.as_mut())
        {
            moments
                .started
                .get_or_insert(at_micros.max(moments.launched));
        }
    }

    /// Records the figures of a successful attempt.
    pub fn on_figures(&mut self, attempt: AttemptId, figures: AttemptFigures) {
        if let Some(summary) = self.attempt_mut(attempt) {
            summary.figures = Some(figures);
        }
    }

    /// Records the end of an attempt that became known at this time.
    fn on_attempt_end(&mut self, known_micros: u64, attempt: AttemptId, end: &str) {
        let ended_micros = self.ends.remove(&attempt).unwrap_or(known_micros);
        let Some(summary) = self.attempt_mut(attempt) else {
            return;
        };
        let mut at_micros = ended_micros.min(known_micros);
        if let Some(moments) = &mut summary.moments {
            at_micros = at_micros.max(moments.started.unwrap_or(moments.launched));
            moments.ended = Some(at_micros);
        }
        summary.ended_millis = Some(at_micros / 1_000);
        summary.end = Some(end.to_owned());
    }

    fn attempt_mut(&mut self, attempt: AttemptId) -> Option<&mut AttemptSummary> {
        // Search backwards: the newest attempts are the likeliest to end.
        self.attempts
            .iter_mut()
            .rev()
            .find(|known| known.attempt == attempt)
            .map(Arc::make_mut)
    }

    /// Records a request, or the conversion of a suspension. `policy` is the name of the policy, `worker` the
    /// attempt's worker.
    pub fn on_request(&mut self, at_micros: u64, record: &Record, worker: WorkerId, policy: &str) {
        let (attempt, primitive, asked, by, beneficiary, reason) = match record {
            Record::PreemptRequested {
                attempt,
                primitive,
                asked,
                by,
                beneficiary,
                reason,
            } => (*attempt, *primitive, *asked, *by, *beneficiary, reason),
            Record::Converted {
                attempt,
                primitive,
                by,
                reason,
            } => (*attempt, *primitive, *primitive, *by, None, reason),
            _ => return,
        };
        let by = match by {
            Requester::Policy => policy,
            Requester::Operator => OPERATOR,
            Requester::Engine => "engine",
        };
        let wanted = PreemptionSummary::wanted(at_micros, attempt, worker, primitive);
        let by = by.to_owned();
        let reason = reason.clone();
        self.book.requested(PreemptionSummary {
            asked,
            by,
            reason,
            beneficiary,
            ..wanted
        });
    }

    /// Records an order that belongs to a preemption.
    pub fn on_order(&mut self, at_micros: u64, worker: WorkerId, order: &Order) {
        match order {
            Order::Suspend { attempt }
            | Order::Checkpoint { attempt }
            | Order::Kill { attempt } => {
                self.book.ordered(at_micros, *attempt);
            }
            Order::Resume { attempt } => self.book.resume_ordered(at_micros, *attempt, worker),
            Order::Launch {
                attempt,
                from: Start::Checkpoint(from),
                ..
            } => {
                self.book
                    .restore_ordered(at_micros, *attempt, *from, worker);
            }
            _ => {}
        }
    }

    /// Adds the event of a preemption record; `on_request` records the requester.
    fn on_preemption(&mut self, at_micros: u64, record: &Record) {
        let text = match record {
            Record::PreemptRequested {
                attempt,
                primitive,
                beneficiary,
                reason,
                ..
            } => {
                let whom = beneficiary.map_or_else(String::new, |job| format!(" for {job}"));
                format!("preemption of {attempt}{whom} by {primitive} requested: {reason}")
            }
            Record::PreemptWithdrawn { attempt, reason } => {
                self.book.withdrawn(*attempt, reason);
                format!("preemption of {attempt} withdrawn: {reason}")
            }
            Record::SuspendRefused {
                attempt, reason, ..
            } => {
                self.book.withdrawn(*attempt, reason);
                format!("{attempt} cannot be suspended and continues: {reason}")
            }
            Record::Converted {
                attempt,
                primitive,
                reason,
                ..
            } => {
                format!("{attempt} leaves its worker by {primitive}: {reason}")
            }
            Record::AttemptHeld { attempt, reason } => {
                format!("{attempt} is held by an operator: {reason}")
            }
            Record::AttemptReleased { attempt, reason } => {
                format!("{attempt} is resumed by an operator: {reason}")
            }
            Record::JobHeld {
                reason,
                lets_finish: true,
                ..
            } => format!("held: {reason}"),
            Record::JobHeld { reason, .. } => format!("suspended: {reason}"),
            Record::JobReleased { reason, .. } => format!("resumed: {reason}"),
            Record::Suspended(attempt) => {
                self.book.suspended(at_micros, *attempt);
                format!("{attempt} is suspended")
            }
            Record::Resumed(attempt) => {
                self.book.resumed(at_micros, *attempt);
                format!("{attempt} runs again")
            }
            _ => return,
        };
        self.add_event(at_micros / 1_000, text);
    }

    /// Records a worker's account of a preemption, and its notes.
    pub fn on_account(&mut self, at_micros: u64, attempt: AttemptId, account: &PreemptionAccount) {
        self.book.accounted(at_micros, attempt, account);
        let at_millis = at_micros / 1_000;
        match &account.what {
            Preempted::Restored => self.add_event(
                at_millis,
                format!("{attempt} continues from its checkpoint"),
            ),
            Preempted::RestoreRefused(why) => {
                self.add_event(at_millis, format!("{attempt} starts from scratch: {why}"));
            }
            _ => {}
        }
        for note in &account.notes {
            self.add_event(at_millis, format!("{attempt}: {note}"));
        }
    }
}

fn in_words(outcome: &JobOutcome) -> String {
    match outcome {
        JobOutcome::Succeeded => "succeeded".to_owned(),
        JobOutcome::Failed { reason } => format!("failed: {reason}"),
        JobOutcome::Killed { reason } => format!("killed: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{JobId, TaskId, TaskKind};

    use super::*;

    /// An attempt launched at 100 of which a batch at 200 tells that it has started and ended at these times.
    fn moments_of(started: u64, ended: Option<u64>) -> AttemptMoments {
        let task = TaskId {
            job: JobId(1),
            kind: TaskKind::Map,
            index: 0,
        };
        let attempt = AttemptId { task, number: 1 };
        let mut attempts = Vec::new();
        let mut events = Vec::new();
        let mut book = PreemptionBook::default();
        let mut killed = BTreeSet::new();
        let mut ends: BTreeMap<AttemptId, u64> =
            ended.map(|ended| (attempt, ended)).into_iter().collect();
        let mut history = JobHistory {
            attempts: &mut attempts,
            events: &mut events,
            book: &mut book,
            killed: &mut killed,
            ends: &mut ends,
        };
        let launched = Record::AttemptLaunched {
            attempt,
            worker: WorkerId(1),
            duplicate_of: None,
        };
        history.on_record(100, &launched, "w");
        history.on_started(started, attempt);
        history.on_record(200, &Record::TaskDone(attempt), "");
        assert!(ends.is_empty());
        attempts[0].moments.expect("moments")
    }

    #[test]
    fn short_attempt_starts_before_it_ends_though_both_are_heard_at_once() {
        let moments = moments_of(120, Some(150));
        assert_eq!((moments.started, moments.ended), (Some(120), Some(150)));
    }

    #[test]
    fn end_that_no_worker_reports_is_when_it_is_known() {
        assert_eq!(moments_of(120, None).ended, Some(200));
    }

    #[test]
    fn moments_stay_in_order_whatever_workers_tell() {
        for (started, ended) in [(50, 60), (150, 120), (120, 900)] {
            let moments = moments_of(started, Some(ended));
            let started = moments.started.expect("a start");
            let ended = moments.ended.expect("an end");
            assert!(
                100 <= started && started <= ended && ended <= 200,
                "{moments:?}"
            );
        }
    }
}

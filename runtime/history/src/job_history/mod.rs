//! The history of one job as it grows: its attempts, what happened to it, and its preemptions.
//!
//! Owns what becomes of it by each record of the engine, in the same way for a coordinator and for a
//! simulation. Does not own what attempts counted and wrote, nor when a job is over.

mod preempted;
mod preemptions;

use std::collections::BTreeSet;
use std::sync::Arc;

use napreduce_engine::{AttemptId, JobOutcome, Record, WorkerId};
use napreduce_protocol::{AttemptFigures, AttemptMoments, AttemptSummary, HistoryLine, PreemptionEnd};

pub use self::preemptions::{OPERATOR, PreemptionBook};

/// The beginnings of the lines on the end of a job. Attempts that end at the same time end before it.
pub const ENDING: &str = "it is ending: ";
pub const ENDED: &str = "it has ended: ";

/// The lists that a history of a job consists of, which whoever drives the engine keeps. Times are
/// microseconds since 1970, or since a simulation began.
#[derive(Debug)]
pub struct JobHistory<'a> {
    /// In the order of their launches; shared with snapshots.
    pub attempts: &'a mut Vec<Arc<AttemptSummary>>,
    pub events: &'a mut Vec<HistoryLine>,
    pub book: &'a mut PreemptionBook,
    /// The attempts that are reported killed in this batch.
    pub killed: &'a mut BTreeSet<AttemptId>,
}

impl JobHistory<'_> {
    /// Keeps what the engine says has happened. `worker_name` is that of the worker of a launch.
    pub fn on_record(&mut self, at_micros: u64, record: &Record, worker_name: &str) {
        let at_millis = at_micros / 1_000;
        match record {
            Record::AttemptLaunched { attempt, worker, duplicate_of } => {
                if let Some(slow) = duplicate_of {
                    self.say(at_millis, format!("{attempt} races {slow}, which is slow"));
                }
                self.on_launched(at_micros, *attempt, *worker, worker_name);
            }
            Record::TaskDone(attempt) => {
                self.book.ended(at_micros, *attempt, PreemptionEnd::Finished);
                self.on_attempt_end(at_micros, *attempt, "done");
            }
            Record::AttemptEnded(attempt, why) => {
                let killed = self.killed.remove(attempt);
                let end = if killed { PreemptionEnd::Killed } else { PreemptionEnd::Ended };
                self.book.ended(at_micros, *attempt, end);
                self.on_attempt_end(at_micros, *attempt, why);
            }
            Record::Checkpointed(attempt) => {
                self.book.ended(at_micros, *attempt, PreemptionEnd::Checkpointed);
                self.on_attempt_end(at_micros, *attempt, "checkpointed");
            }
            Record::SlotTaken { freed, by } => self.book.used(at_micros, *freed, *by),
            Record::OutputMoved(attempt) => {
                self.say(
                    at_millis,
                    format!("the output of {attempt} was moved to where it outlives its worker"),
                );
            }
            Record::CommitGranted(_)
            | Record::WorkerDraining(_)
            | Record::WorkerUndrained(_)
            | Record::WorkerLeft(_)
            | Record::WorkerExcluded { .. }
            | Record::WorkerShort { .. } => {}
            Record::PreemptRequested { .. }
            | Record::SuspendRefused { .. }
            | Record::Converted { .. }
            | Record::AttemptHeld { .. }
            | Record::AttemptReleased { .. }
            | Record::JobHeld { .. }
            | Record::JobReleased { .. }
            | Record::Suspended(_)
            | Record::Resumed(_) => self.on_preemption(at_micros, record),
            Record::JobChanged { change, reason, .. } => {
                self.say(at_millis, format!("it has {} from now on: {reason}", change.in_words()));
            }
            Record::JobAccepted(_) => self.say(at_millis, "submitted".to_owned()),
            Record::OutputLost(task) => {
                self.say(at_millis, format!("the output of {task} is lost; it runs again"));
            }
            Record::TaskIsolated { task, reason } => {
                self.say(at_millis, format!("{task} runs alone from now on: {reason}"));
            }
            Record::JobDecided(_, outcome) => {
                self.book.decided();
                // A job that has succeeded ends as soon as its output is committed.
                if *outcome != JobOutcome::Succeeded {
                    self.say(at_millis, format!("{ENDING}{}", in_words(outcome)));
                }
            }
            Record::JobEnded(_, outcome) => self.say(at_millis, format!("{ENDED}{}", in_words(outcome))),
        }
    }

    /// Adds a line to its events.
    pub fn say(&mut self, at_millis: u64, text: String) {
        self.events.push(HistoryLine { at_millis, text });
    }

    fn on_launched(&mut self, at_micros: u64, attempt: AttemptId, worker: WorkerId, worker_name: &str) {
        self.attempts.push(Arc::new(AttemptSummary {
            attempt,
            worker,
            worker_name: worker_name.to_owned(),
            launched_millis: at_micros / 1_000,
            ended_millis: None,
            end: None,
            figures: None,
            moments: Some(AttemptMoments { launched: at_micros, ..AttemptMoments::default() }),
        }));
    }

    /// The process of an attempt begins to work.
    pub fn on_started(&mut self, at_micros: u64, attempt: AttemptId) {
        if let Some(moments) = self.known(attempt).and_then(|known| known.moments.as_mut()) {
            moments.started.get_or_insert(at_micros);
        }
    }

    /// Keeps what an attempt that did its task has moved.
    pub fn on_figures(&mut self, attempt: AttemptId, figures: AttemptFigures) {
        if let Some(known) = self.known(attempt) {
            known.figures = Some(figures);
        }
    }

    fn on_attempt_end(&mut self, at_micros: u64, attempt: AttemptId, end: &str) {
        if let Some(known) = self.known(attempt) {
            known.ended_millis = Some(at_micros / 1_000);
            if let Some(moments) = &mut known.moments {
                moments.ended = Some(at_micros);
            }
            known.end = Some(end.to_owned());
        }
    }

    fn known(&mut self, attempt: AttemptId) -> Option<&mut AttemptSummary> {
        // The newest are the likeliest to end.
        self.attempts.iter_mut().rev().find(|known| known.attempt == attempt).map(Arc::make_mut)
    }
}

fn in_words(outcome: &JobOutcome) -> String {
    match outcome {
        JobOutcome::Succeeded => "succeeded".to_owned(),
        JobOutcome::Failed { reason } => format!("failed: {reason}"),
        JobOutcome::Killed { reason } => format!("killed: {reason}"),
    }
}

//! What the history of a job says of preemptions: sentences, and what becomes of them in its book.
//!
//! Owns the words, and the way from records, orders and accounts into the book. Does not own the
//! book (`preemptions`).

use napreduce_engine::{AttemptId, Order, Record, Requester, Start, WorkerId};
use napreduce_protocol::{Preempted, PreemptionAccount, PreemptionSummary};

use super::JobHistory;
use super::preemptions::OPERATOR;

impl JobHistory<'_> {
    /// A request, or a suspended attempt that is given up, when the engine records it: `policy` is who
    /// decides, and `worker` where the attempt is.
    pub fn on_request(&mut self, at_micros: u64, record: &Record, worker: WorkerId, policy: &str) {
        let (attempt, primitive, asked, by, beneficiary, reason) = match record {
            Record::PreemptRequested { attempt, primitive, asked, by, beneficiary, reason } => {
                (*attempt, *primitive, *asked, *by, *beneficiary, reason)
            }
            Record::Converted { attempt, primitive, by, reason } => {
                (*attempt, *primitive, *primitive, *by, None, reason)
            }
            _ => return,
        };
        let by = match by {
            Requester::Policy => policy,
            Requester::Operator => OPERATOR,
            Requester::Engine => "engine",
        };
        let wanted = PreemptionSummary::wanted(at_micros, attempt, worker, primitive);
        let (by, reason) = (by.to_owned(), reason.clone());
        self.book.requested(PreemptionSummary { asked, by, reason, beneficiary, ..wanted });
    }

    /// An order that is part of a preemption.
    pub fn on_order(&mut self, at_micros: u64, worker: WorkerId, order: &Order) {
        match order {
            Order::Suspend { attempt } | Order::Checkpoint { attempt } | Order::Kill { attempt } => {
                self.book.ordered(at_micros, *attempt);
            }
            Order::Resume { attempt } => self.book.resume_ordered(at_micros, *attempt, worker),
            Order::Launch { attempt, from: Start::Checkpoint(from), .. } => {
                self.book.restore_ordered(at_micros, *attempt, *from, worker);
            }
            _ => {}
        }
    }

    /// Keeps what is said of a preemption; who asked for it is in the book.
    pub(super) fn on_preemption(&mut self, at_micros: u64, record: &Record) {
        let text = match record {
            Record::PreemptRequested { attempt, primitive, beneficiary, reason, .. } => {
                let whom = beneficiary.map_or_else(String::new, |job| format!(" for {job}"));
                format!("{attempt} is to give its slot{whom} by {primitive}: {reason}")
            }
            Record::SuspendRefused { attempt, reason, .. } => {
                self.book.withdrawn(*attempt, reason);
                format!("{attempt} cannot be suspended and goes on: {reason}")
            }
            Record::Converted { attempt, primitive, reason, .. } => {
                format!("{attempt} is given up where it is, by {primitive}: {reason}")
            }
            Record::AttemptHeld { attempt, reason } => format!("{attempt} is held by an operator: {reason}"),
            Record::AttemptReleased { attempt, reason } => {
                format!("{attempt} is wanted back by an operator: {reason}")
            }
            Record::JobHeld { reason, lets_finish: true, .. } => format!("held: {reason}"),
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
        self.say(at_micros / 1_000, text);
    }

    /// What a worker accounts for, and what it could not do.
    pub fn on_account(&mut self, at_micros: u64, attempt: AttemptId, account: &PreemptionAccount) {
        self.book.accounted(at_micros, attempt, account);
        let at_millis = at_micros / 1_000;
        match &account.what {
            Preempted::Restored => self.say(at_millis, format!("{attempt} goes on from its checkpoint")),
            Preempted::RestoreRefused(why) => {
                self.say(at_millis, format!("{attempt} starts from scratch: {why}"));
            }
            _ => {}
        }
        for note in &account.notes {
            self.say(at_millis, format!("{attempt}: {note}"));
        }
    }
}

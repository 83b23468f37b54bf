//! What the state notes down of preemption: who wanted it, when it was ordered, and what workers account for.
//!
//! Owns the way from entries, records and orders into the books of the jobs. Does not own the books (`preemptions`).

use napreduce_core::{
    Attempt, AttemptId, AttemptState, Order, Primitive, Record, Requester, Start, WorkerId,
};
use napreduce_protocol::{PreemptionAccount, PreemptionSummary};

use super::preemptions::{OPERATOR, PreemptionBook};
use super::state::CoordinatorState;

impl CoordinatorState {
    fn book(&mut self, attempt: AttemptId) -> Option<&mut PreemptionBook> {
        self.jobs.get_mut(&attempt.task.job).map(|job| &mut job.book)
    }

    /// An operator's kill is no request of a policy, so the engine records nothing of it before it is done.
    pub(super) fn note_kill(&mut self, attempt: AttemptId, reason: &str) {
        let Some(known) = self.view().attempt(attempt) else { return };
        if known.state() == AttemptState::Killing {
            return;
        }
        let wanted = PreemptionSummary::wanted(self.unix_micros(), attempt, known.worker(), Primitive::Kill);
        self.note(PreemptionSummary { by: OPERATOR.to_owned(), reason: reason.to_owned(), ..wanted });
    }

    fn note(&mut self, preemption: PreemptionSummary) {
        if let Some(book) = self.book(preemption.attempt) {
            book.requested(preemption);
        }
    }

    /// A request, or a suspended attempt that is given up, when the engine records it.
    pub(super) fn note_request(&mut self, record: &Record) {
        let (attempt, primitive, asked, by, beneficiary, reason) = match record {
            Record::PreemptRequested { attempt, primitive, asked, by, beneficiary, reason } => {
                (*attempt, *primitive, *asked, *by, *beneficiary, reason)
            }
            Record::Converted { attempt, primitive, by, reason } => {
                (*attempt, *primitive, *primitive, *by, None, reason)
            }
            _ => return,
        };
        let Some(worker) = self.view().attempt(attempt).map(Attempt::worker) else { return };
        let by = match by {
            Requester::Policy => self.policy.clone(),
            Requester::Operator => OPERATOR.to_owned(),
            Requester::Engine => "engine".to_owned(),
        };
        let wanted = PreemptionSummary::wanted(self.unix_micros(), attempt, worker, primitive);
        let reason = reason.clone();
        self.note(PreemptionSummary { asked, by, reason, beneficiary, ..wanted });
    }

    /// What a worker accounts for.
    pub(super) fn note_account(&mut self, attempt: AttemptId, account: &PreemptionAccount) {
        let at = self.unix_micros();
        if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
            job.on_account(at, attempt, account);
        }
    }

    /// An order that is part of a preemption.
    pub(super) fn note_order(&mut self, worker: WorkerId, order: &Order) {
        let at = self.unix_micros();
        match order {
            Order::Suspend { attempt } | Order::Checkpoint { attempt } | Order::Kill { attempt } => {
                if let Some(book) = self.book(*attempt) {
                    book.ordered(at, *attempt);
                }
            }
            Order::Resume { attempt } => {
                if let Some(book) = self.book(*attempt) {
                    book.resume_ordered(at, *attempt, worker);
                }
            }
            Order::Launch { attempt, from: Start::Checkpoint(from), .. } => {
                if let Some(book) = self.book(*attempt) {
                    book.restore_ordered(at, *attempt, *from, worker);
                }
            }
            _ => {}
        }
    }
}

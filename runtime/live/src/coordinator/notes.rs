//! What the brain notes down of preemption: who wanted it, when it was ordered, and what workers account for.
//!
//! Owns the way from entries, records and orders into the books of the jobs. Does not own the books (`preemptions`).

use napreduce_core::{AttemptId, AttemptState, Order, Primitive, Record, Start, WorkerId};

use super::brain::Brain;
use super::entry::Happening;
use super::preemptions::{OPERATOR, PreemptionBook, Requested};

/// What an operator wants to give up slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    None,
    Attempt(AttemptId),
}

impl Wish {
    pub(super) fn of(happening: &Happening) -> Wish {
        match happening {
            Happening::AttemptKillRequested { attempt, .. } => Wish::Attempt(*attempt),
            _ => Wish::None,
        }
    }

    fn is_about(self, attempt: AttemptId) -> bool {
        match self {
            Wish::None => false,
            Wish::Attempt(wanted) => wanted == attempt,
        }
    }
}

impl Brain {
    fn book(&mut self, attempt: AttemptId) -> Option<&mut PreemptionBook> {
        self.jobs.get_mut(&attempt.task.job).map(|job| &mut job.book)
    }

    /// An operator's kill is no request of a policy, so the engine records nothing of it before it is done.
    pub(super) fn note_kill(&mut self, attempt: AttemptId, reason: &str) {
        let Some(known) = self.view().attempt(attempt) else { return };
        if known.state() == AttemptState::Killing {
            return;
        }
        let (primitive, asked) = (Primitive::Kill, Primitive::Kill);
        let (worker, by, beneficiary) = (known.worker(), OPERATOR, None);
        let wish = Requested { attempt, worker, primitive, asked, by, reason, beneficiary };
        let at = self.unix_micros();
        if let Some(book) = self.book(attempt) {
            book.requested(at, &wish);
        }
    }

    /// A request, when the engine records that it was made.
    pub(super) fn note_request(&mut self, record: &Record) {
        let Record::PreemptRequested { attempt, primitive, beneficiary, reason, .. } = record else { return };
        let (attempt, primitive, beneficiary) = (*attempt, *primitive, *beneficiary);
        let view = self.view();
        let Some(known) = view.attempt(attempt) else { return };
        let worker = known.worker();
        let asked = view.request(attempt).map_or(primitive, |request| request.asked);
        let wanted = beneficiary.is_none() && self.wish.is_about(attempt);
        let by = if wanted { OPERATOR.to_owned() } else { self.policy.clone() };
        let at = self.unix_micros();
        let wish = Requested { attempt, worker, primitive, asked, by: &by, reason, beneficiary };
        if let Some(book) = self.book(attempt) {
            book.requested(at, &wish);
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
            Order::Launch { .. } | Order::MoreInputs { .. } | Order::Commit { .. } => {}
        }
    }
}

//! Records preemptions in the books of the jobs: requests, orders and the accounts of workers.

use napreduce_engine::{Attempt, AttemptId, AttemptState, Order, Primitive, Record, WorkerId};
use napreduce_history::OPERATOR;
use napreduce_protocol::{PreemptionAccount, PreemptionSummary};

use super::CoordinatorState;
use crate::coordinator::entry::Extra;

impl CoordinatorState {
    /// Logs the reason of a drain, which listings show until the worker has left.
    pub(super) fn note_drain(&mut self, worker: WorkerId, what: &str, reason: Option<String>) {
        let why = reason
            .as_ref()
            .map_or_else(String::new, |reason| format!(": {reason}"));
        self.notices.push(format!("{worker} {what}{why}"));
        if let Some(link) = self.links.get_mut(&worker) {
            link.set_drain_reason(reason);
        }
    }

    /// Records an operator's kill, which the engine does not record before it is done.
    pub(super) fn note_kill(&mut self, attempt: AttemptId, reason: &str) {
        let Some(known) = self.view().attempt(attempt) else {
            return;
        };
        if known.state() == AttemptState::Killing {
            return;
        }
        let wanted =
            PreemptionSummary::wanted(self.unix_micros(), attempt, known.worker(), Primitive::Kill);
        if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
            let by = OPERATOR.to_owned();
            let reason = reason.to_owned();
            job.book.requested(PreemptionSummary {
                by,
                reason,
                ..wanted
            });
        }
    }

    /// Records a preemption request or a conversion that the engine recorded.
    pub(super) fn note_request(&mut self, record: &Record) {
        let (Record::PreemptRequested { attempt, .. } | Record::Converted { attempt, .. }) = record
        else {
            return;
        };
        let Some(worker) = self.view().attempt(*attempt).map(Attempt::worker) else {
            return;
        };
        let at = self.unix_micros();
        if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
            job.history().on_request(at, record, worker, &self.policy);
        }
    }

    /// Records the cost of a preemption as measured by the worker.
    pub(super) fn note_account(&mut self, attempt: AttemptId, account: &PreemptionAccount) {
        let at = self.unix_micros();
        if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
            job.history().on_account(at, attempt, account);
        }
    }

    /// Records an order, which may be part of a preemption.
    pub(super) fn note_order(&mut self, worker: WorkerId, order: &Order) {
        let at = self.unix_micros();
        if let Some(job) = self.jobs.get_mut(&order.attempt().task.job) {
            job.history().on_order(at, worker, order);
        }
    }

    /// Applies a change of a chain.
    pub(super) fn note_chain(&mut self, extra: &Extra) {
        match extra {
            Extra::ChainBegun { chain, known } => {
                self.chains.entry(*chain).or_insert_with(|| known.clone());
            }
            Extra::ChainOver { chain, .. } => {
                if let Some(known) = self.chains.get_mut(chain) {
                    known.over = true;
                }
            }
            Extra::ChainSettled { chain } => {
                self.chains.remove(chain);
            }
            _ => {}
        }
    }
}

//! Victims that are only marked: each goes when somebody who is due its slot needs one, and stays if nobody
//! does.
//!
//! Owns who is marked, and giving marked slots up between rounds. Does not own who is chosen, nor when a
//! chosen one is marked.

use std::collections::BTreeSet;

use napreduce_engine::{Actions, AttemptId, ClusterView, Preempt, Primitive, Ratio, Span, TaskKind};
use serde::{Deserialize, Serialize};

use super::beneficiaries::Beneficiaries;
use super::books::Books;
use super::configuration::MonitorConfiguration;
use super::monitor::{Pass, Victim, ideal};
use super::snapshot;
use super::watch::reason;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marks(BTreeSet<AttemptId>);

impl Marks {
    pub fn attempts(&self) -> &BTreeSet<AttemptId> {
        &self.0
    }

    pub fn add(&mut self, attempts: impl Iterator<Item = AttemptId>) {
        self.0.extend(attempts);
    }

    /// How many slots of a kind each queue, with all below it, has that are marked; nothing when none are.
    pub fn of_queues(&self, books: &Books, kind: TaskKind) -> Vec<u64> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let mut marked = vec![0; books.queues.all().len()];
        for attempt in self.0.iter().filter(|attempt| attempt.task.kind == kind) {
            let above = |&queue: &usize| books.queues.queue(queue).parent;
            for queue in std::iter::successors(books.leaf_of(attempt.task.job), above) {
                marked[queue] += 1;
            }
        }
        marked
    }

    /// Takes marked slots for those who are due more than they have and want it now. A mark is lifted when
    /// its attempt gives its slot anyway, or its queue has no more than it is guaranteed.
    pub fn give_up(
        &mut self,
        configuration: &MonitorConfiguration,
        books: &Books,
        view: &ClusterView<'_>,
        kind: TaskKind,
        actions: &mut Actions,
    ) {
        if self.0.is_empty() {
            return;
        }
        let slots = view.slots(kind);
        let stays = |attempt: &AttemptId| {
            let holds = view.attempt(*attempt).is_some_and(|known| known.holds_slot());
            holds && view.request(*attempt).is_none() && is_beyond(books, *attempt, slots)
        };
        self.0.retain(|attempt| attempt.task.kind != kind || stays(attempt));
        let marked: Vec<AttemptId> =
            self.0.iter().copied().filter(|attempt| attempt.task.kind == kind).collect();
        if marked.is_empty() || books.of(kind, 0).pending == 0 {
            return;
        }
        let tree = snapshot::tree(books, kind, slots, &[]);
        let due: Vec<Ratio> = ideal(&tree, configuration.balance_beyond_guaranteed);
        let mut beneficiaries = Beneficiaries::of(books, *view, kind, &tree, &due, Vec::new());
        for attempt in marked.into_iter().rev() {
            let Some(giver) = books.leaf_of(attempt.task.job) else { continue };
            let Some((job, taker)) = beneficiaries.needs(giver) else { continue };
            let victim = Victim {
                container: 0,
                size: 1,
                application: u64::from(attempt.task.job.0),
                queue: giver,
                pass: Pass::Guarantee,
                reservation: None,
            };
            let grace = match configuration.primitive {
                Primitive::Suspend | Primitive::Checkpoint => configuration.max_wait_before_kill,
                Primitive::Kill | Primitive::Wait => Span(0),
            };
            actions.preempt(Preempt {
                attempt,
                primitive: configuration.primitive,
                grace: Some(grace),
                reason: reason(&tree, &victim, taker, kind),
                beneficiary: Some(job),
            });
            self.0.remove(&attempt);
        }
    }
}

/// Whether the queue of an attempt has more than it is guaranteed.
fn is_beyond(books: &Books, attempt: AttemptId, slots: u32) -> bool {
    books.leaf_of(attempt.task.job).is_some_and(|leaf| {
        let used = books.of(attempt.task.kind, leaf).used;
        Ratio::whole(u64::from(used)) > books.queues.guaranteed(leaf, slots)
    })
}

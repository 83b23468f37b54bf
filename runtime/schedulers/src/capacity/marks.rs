//! Lazy preemption: victims are marked, and preempted only when a job with a claim on their slot needs one.

use napreduce_engine::{
    Actions, Attempt, AttemptId, ClusterView, Preempt, Primitive, Ratio, SortedSet, Span, TaskKind,
};
use serde::{Deserialize, Serialize};

use super::beneficiaries::Beneficiaries;
use super::configuration::MonitorConfiguration;
use super::monitor::{Pass, Victim, ideal};
use super::snapshot;
use super::usage::Usage;
use super::watch::reason;
use crate::serving::Delay;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marks(SortedSet<AttemptId>);

impl Marks {
    pub fn attempts(&self) -> &SortedSet<AttemptId> {
        &self.0
    }

    pub fn add(&mut self, attempts: impl Iterator<Item = AttemptId>) {
        self.0.extend(attempts);
    }

    /// Returns the number of marked slots per queue, including those below it; empty if there are no marks.
    pub fn of_queues(&self, usage: &Usage, kind: TaskKind) -> Vec<u64> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let mut marked = vec![0; usage.queues.all().len()];
        for attempt in self.0.iter().filter(|attempt| attempt.task.kind == kind) {
            let above = |&queue: &usize| usage.queues.queue(queue).parent;
            for queue in std::iter::successors(usage.leaf_of(attempt.task.job), above) {
                marked[queue] += 1;
            }
        }
        marked
    }

    /// Preempts marked attempts for queues below their ideal share. Removes marks of attempts that release
    /// their slot anyway, or whose queue is within its guarantee.
    pub fn preempt_needed(
        &mut self,
        configuration: &MonitorConfiguration,
        usage: &Usage,
        view: &ClusterView<'_>,
        kind: TaskKind,
        delay: Option<&mut Delay>,
        actions: &mut Actions,
    ) {
        if self.0.is_empty() {
            return;
        }
        let slots = view.slots(kind);
        let stays = |attempt: &AttemptId| {
            let holds = view
                .attempt(*attempt)
                .is_some_and(|known| known.holds_slot());
            holds && view.request(*attempt).is_none() && exceeds_guarantee(usage, *attempt, slots)
        };
        self.0
            .retain(|attempt| attempt.task.kind != kind || stays(attempt));
        let marked: Vec<AttemptId> = self
            .0
            .iter()
            .copied()
            .filter(|attempt| attempt.task.kind == kind)
            .collect();
        if marked.is_empty() || usage.of(kind, 0).pending == 0 {
            return;
        }
        let tree = snapshot::tree(usage, kind, slots, &[]);
        let due: Vec<Ratio> = ideal(&tree, configuration.balance_beyond_guaranteed);
        let mut beneficiaries = Beneficiaries::new(usage, *view, &kind, &tree, delay);
        beneficiaries.begin_pass(&due, &[], true);
        for attempt in marked.into_iter().rev() {
            let Some(giver) = usage.leaf_of(attempt.task.job) else {
                continue;
            };
            let Some(worker) = view.attempt(attempt).map(Attempt::worker) else {
                continue;
            };
            let Some((job, taker)) = beneficiaries.for_marked(giver, worker) else {
                continue;
            };
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

/// Whether the queue of an attempt exceeds its guarantee.
fn exceeds_guarantee(usage: &Usage, attempt: AttemptId, slots: u32) -> bool {
    usage.leaf_of(attempt.task.job).is_some_and(|leaf| {
        let used = usage.of(attempt.task.kind, leaf).used;
        Ratio::whole(u64::from(used)) > usage.queues.guaranteed(leaf, slots)
    })
}

//! The primitive chosen for each victim: every possible one is estimated, and the one that costs the two jobs
//! least is used.
//!
//! Owns the estimates, what they come to, and when suspended work is given up for want of memory. Does not
//! own the life of a request (`requests`) nor how work is given up (`stopping`).
//!
//! A cost is a sum of two delays in seconds, one of each side: until the beneficiary has the slot, and the
//! slot time that the victim takes again. Nothing is weighed, and nothing is fitted to a workload: what is
//! known is what was measured on this cluster for tasks of the kind, and the progress that the victim
//! reported. A suspended attempt that waits for a slot of its worker is given up for one elsewhere when it
//! has waited for as long as moving it costs (the rule of the ski rental problem, after which the wait costs
//! at most twice what would have been best).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::cluster::{Attempt, Worker};
use crate::engine::Engine;
use crate::ids::{AttemptId, JobId, TaskKind, WorkerId};
use crate::preemption::{CostEstimate, Primitive, Requester};
use crate::primitive_choice::{Judged, PrimitiveChoice};
use crate::settings::{Conversion, Converted};
use crate::states::AttemptState;
use crate::time::Span;

impl Engine {
    /// Whether the settings leave the choice to the costs.
    pub(super) fn chooses(&self) -> bool {
        self.settings.preemption.primitive == Some(PrimitiveChoice::Auto)
    }

    /// What each possible way to take the slot of an attempt is expected to cost, the cheapest first; of
    /// those that cost the same, the one that keeps the work, and rather that which can go on anywhere. It
    /// takes `least` at least to finish.
    fn estimates(&self, attempt: &Attempt, beneficiary: Option<JobId>, least: Span) -> Vec<CostEstimate> {
        let (auto, can) = (&self.settings.preemption.auto, self.can_do(attempt.id));
        let known = &self.cluster.costs[attempt.id.task.kind];
        let mut all = Vec::with_capacity(4);
        if can.checkpoint {
            all.push(CostEstimate {
                primitive: Primitive::Checkpoint,
                free: self.saving(attempt.id),
                victim: self.restoring(attempt.id),
            });
        }
        if can.suspend && self.why_full(attempt.worker).is_none() && !self.is_suspended_enough(attempt) {
            let paging = auto.paging(self.bytes_that_would_not_fit(attempt, beneficiary));
            all.push(CostEstimate {
                primitive: Primitive::Suspend,
                free: known.suspend.unwrap_or(auto.suspend) + paging,
                victim: known.resume.unwrap_or(auto.resume) + paging,
            });
        }
        if let Some(left) = self.left_to_do(attempt) {
            let free = left.max(least);
            all.push(CostEstimate { primitive: Primitive::Wait, free, victim: Span(0) });
        }
        let lost = attempt.active_time(self.cluster.now) + known.launch.unwrap_or(auto.launch);
        let free = known.kill.unwrap_or_default();
        all.push(CostEstimate { primitive: Primitive::Kill, free, victim: lost });
        let late = self.latest_for(attempt.id.task.kind, beneficiary);
        all.sort_by_key(|one| (late.is_some_and(|late| one.free > late), one.cost()));
        if all.iter().all(|one| late.is_some_and(|late| one.free > late)) {
            // Nothing is in time: the sooner the better.
            all.sort_by_key(|one| (one.free, one.victim));
        }
        all
    }

    /// Whether its task was suspended as often as the settings allow.
    fn is_suspended_enough(&self, attempt: &Attempt) -> bool {
        let times =
            self.cluster.job(attempt.id.task.job).task(attempt.id.task).map_or(0, |task| task.suspends);
        self.settings.preemption.limits.suspends_max.is_some_and(|most| times >= most)
    }

    /// How long an attempt will be at work yet: by its own progress, or before it has any by what such tasks
    /// of its job took; unknown without either.
    fn left_to_do(&self, attempt: &Attempt) -> Option<Span> {
        let now = self.cluster.now;
        let usual = || {
            let took = self.usual(attempt.id.task.job, attempt.id.task.kind)?;
            Some(Span(took.0.saturating_sub(attempt.work_time(now).0)))
        };
        attempt.remaining(now).or_else(usual)
    }

    /// The mean time at work of the tasks of a job that are done.
    fn usual(&self, job: JobId, kind: TaskKind) -> Option<Span> {
        let (done, worked) = self.cluster.jobs.get(&job)?.worked(kind);
        Some(Span(worked.0.checked_div(u64::from(done))?))
    }

    /// How late a slot may be for a job that has a deadline: so late that one of its tasks is still
    /// done by then.
    fn latest_for(&self, kind: TaskKind, beneficiary: Option<JobId>) -> Option<Span> {
        let job = self.cluster.jobs.get(&beneficiary?)?;
        let rest = job.spec.deadline?.since(self.cluster.now);
        Some(Span(rest.0.saturating_sub(self.usual(job.id, kind).unwrap_or_default().0)))
    }

    /// How much more of the memory of a worker is used than it has when an attempt stays there, suspended,
    /// beside one of the job that gets its slot; as far as jobs and the worker say what they need and have.
    fn bytes_that_would_not_fit(&self, attempt: &Attempt, beneficiary: Option<JobId>) -> u64 {
        let worker = &self.cluster.workers[&attempt.worker];
        let Some(memory) = worker.memory else { return 0 };
        let newcomer =
            beneficiary.and_then(|job| self.cluster.jobs.get(&job)).map_or(0, |job| job.spec.memory);
        let used = self.memory_used(worker);
        (used + newcomer).saturating_sub(memory) - used.saturating_sub(memory)
    }

    /// What the attempts of a worker need, suspended ones included, without those that are being
    /// saved to go elsewhere.
    fn memory_used(&self, worker: &Worker) -> u64 {
        let stay = worker.attempts().filter(|id| !self.cluster.attempts[id].is_converting());
        stay.map(|id| self.cluster.job(id.task.job).spec.memory).sum()
    }

    /// The choice for a victim, and what it was chosen from, for people.
    pub(super) fn cheapest(
        &self,
        attempt: &Attempt,
        beneficiary: Option<JobId>,
        least: Span,
    ) -> Option<(CostEstimate, String)> {
        let estimates = self.estimates(attempt, beneficiary, least);
        let kind = attempt.id.task.kind;
        let keeps = matches!(estimates.first()?.primitive, Primitive::Suspend | Primitive::Checkpoint);
        let untried = estimates.iter().find(|one| keeps && self.is_untried(kind, one.primitive));
        if let Some(untried) = untried {
            let why = format!("no {kind} was {}ed yet: this one is, to measure it", untried.primitive);
            return Some((*untried, why));
        }
        let cost = |one: &CostEstimate| format!("{} {}", one.primitive, one.cost().rounded());
        let said: Vec<String> = estimates.iter().map(cost).collect();
        Some((*estimates.first()?, format!("cheapest of {}", said.join(", "))))
    }

    /// The choice for a victim that could not be suspended after all.
    pub(super) fn cheapest_but_suspend(
        &self,
        id: AttemptId,
        beneficiary: Option<JobId>,
        waited: Span,
    ) -> Option<CostEstimate> {
        let estimates = || self.estimates(&self.cluster.attempts[&id], beneficiary, waited);
        let all = if self.chooses() { estimates() } else { Vec::new() };
        all.into_iter().find(|one| one.primitive != Primitive::Suspend)
    }

    /// Whether this way to keep work was never chosen for a task of a kind. What is never tried is never
    /// measured, and what is not known to be cheap would never be tried.
    fn is_untried(&self, kind: TaskKind, primitive: Primitive) -> bool {
        let tried = self.cluster.costs[kind].tried;
        match primitive {
            Primitive::Suspend => !tried.suspend,
            Primitive::Checkpoint => !tried.checkpoint,
            Primitive::Wait | Primitive::Kill => false,
        }
    }

    /// A way was chosen.
    pub(super) fn note_tried(&mut self, kind: TaskKind, primitive: Primitive) {
        let tried = &mut self.cluster.costs[kind].tried;
        match primitive {
            Primitive::Suspend => tried.suspend = true,
            Primitive::Checkpoint => tried.checkpoint = true,
            Primitive::Wait | Primitive::Kill => {}
        }
    }

    /// When suspended work is given up for a slot elsewhere: by the settings, or where the costs decide,
    /// after as long as that costs.
    pub(super) fn conversion_of(&self, id: AttemptId) -> Option<Conversion> {
        self.settings.preemption.convert.or_else(|| {
            let after = self.saving(id) + self.restoring(id);
            self.chooses().then_some(Conversion { after, to: Converted::Checkpoint })
        })
    }

    /// What it takes to save the work of an attempt.
    fn saving(&self, id: AttemptId) -> Span {
        let bytes = self.cluster.job(id.task.job).spec.memory;
        let known = self.cluster.costs[id.task.kind].checkpoint_by_bytes.of(bytes);
        known.unwrap_or(self.settings.preemption.auto.checkpoint)
    }

    /// What it takes to go on from its checkpoint; before that was seen of any, more than to begin
    /// from nothing.
    fn restoring(&self, id: AttemptId) -> Span {
        let bytes = self.cluster.job(id.task.job).spec.memory;
        let known = &self.cluster.costs[id.task.kind];
        let begun = known.launch.unwrap_or_default();
        known.restore_by_bytes.of(bytes).unwrap_or(self.settings.preemption.auto.restore + begun)
    }

    /// Has suspended work saved where a worker has less memory than its attempts need, as long as that costs
    /// less than paging it out and in: what has been suspended longest first, of that the largest.
    pub(super) fn convert_for_memory(&mut self) {
        let crowded = |id: &WorkerId| {
            let worker = &self.cluster.workers[id];
            let over = self.memory_used(worker).saturating_sub(worker.memory?);
            (over > 0).then_some((*id, over))
        };
        let stopped = TaskKind::ALL.iter().flat_map(|&kind| self.cluster.suspended_on[kind].keys());
        let crowded: BTreeMap<WorkerId, u64> = stopped.filter_map(crowded).collect();
        for (worker, mut over) in crowded {
            let mut suspended: Vec<_> = self.suspended_on(worker);
            suspended.sort_unstable();
            for (_, Reverse(bytes), id) in suspended {
                let paged = bytes.min(over);
                let paging = self.settings.preemption.auto.paging(paged.saturating_mul(2));
                if over == 0 || self.saving(id) + self.restoring(id) >= paging {
                    continue;
                }
                over -= paged;
                let reason = format!("{worker} has too little memory for all that is suspended there");
                self.give_up(id, Primitive::Checkpoint, Requester::Engine, reason);
            }
        }
    }

    /// The suspended attempts of a worker that may be saved, with since when they are and what they need.
    fn suspended_on(&self, worker: WorkerId) -> Vec<(crate::time::Time, Reverse<u64>, AttemptId)> {
        let attempts = self.cluster.workers[&worker].attempts().map(|id| &self.cluster.attempts[&id]);
        let waits = attempts.filter(|one| {
            one.state == AttemptState::Suspended && !one.held && self.can_do(one.id).checkpoint
        });
        let listed = |one: &Attempt| {
            let since = one.suspension()?.since;
            Some((since, Reverse(self.cluster.job(one.id.task.job).spec.memory), one.id))
        };
        waits.filter_map(listed).collect()
    }

    /// The slot of an attempt is free, or it has ended after this time at work: if its primitive was chosen,
    /// what was expected of that, and what it took.
    pub(super) fn judge_free(&mut self, id: AttemptId, worked: Span) {
        let Some(request) = self.cluster.requests.get(&id) else { return };
        let Some(estimate) = request.estimate else { return };
        let took = self.cluster.now.since(request.begins());
        let lost = if estimate.primitive == Primitive::Kill { worked } else { Span(0) };
        let judged: &mut Judged = self.cluster.judged.entry(estimate.primitive).or_default();
        judged.slots += 1;
        judged.free_estimated = judged.free_estimated + estimate.free;
        judged.free = judged.free + took;
        judged.victim_estimated = judged.victim_estimated + estimate.victim;
        judged.victim = judged.victim + lost;
    }

    /// Work goes on that was suspended or saved, after this.
    pub(super) fn judge_return(&mut self, primitive: Primitive, took: Span) {
        if let Some(judged) = self.cluster.judged.get_mut(&primitive) {
            judged.victim = judged.victim + took;
        }
    }
}

//! Cost-based choice of the primitive: the engine estimates every possible one for each victim and uses the
//! one that costs the two jobs least. It also gives up suspended work when memory is short.
//!
//! A cost is the sum of two delays in seconds: until the beneficiary has the slot, and the additional slot
//! time of the victim. There are no weights and no parameters fitted to a workload: the inputs are
//! measurements of this cluster for tasks of the kind, and the victim's reported progress. A suspended
//! attempt that waits for a slot of its worker is moved to another one when it has waited for as long as the
//! move costs (the ski rental rule: the total is at most twice the optimum).

use std::cmp::Reverse;

use crate::cluster::{Attempt, Cluster, Worker};
use crate::engine::Rules;
use crate::ids::{AttemptId, JobId, TaskKind, WorkerId};
use crate::preemption::{CostEstimate, Primitive, Requester};
use crate::primitive_choice::PrimitiveChoice;
use crate::settings::{Conversion, Converted};
use crate::sorted::SortedMap;
use crate::states::AttemptState;
use crate::time::Span;

impl Rules {
    /// Returns whether the settings choose the primitive by cost.
    pub(super) fn chooses(&self) -> bool {
        self.settings.preemption.primitive == Some(PrimitiveChoice::Auto)
    }

    /// Returns the expected cost of each possible way to take the slot of an attempt, cheapest first. Ties go
    /// to the primitive that keeps the work, then to the one whose work can continue on any worker. The
    /// attempt is assumed to need at least `least` to finish.
    fn estimates(
        &self,
        attempt: &Attempt,
        beneficiary: Option<JobId>,
        least: Span,
    ) -> Vec<CostEstimate> {
        let auto = &self.settings.preemption.auto;
        let can = self.can_do(attempt.id);
        let known = &self.cluster.costs.measured()[attempt.id.task.kind];
        let mut all = Vec::with_capacity(4);
        if can.checkpoint {
            all.push(CostEstimate {
                primitive: Primitive::Checkpoint,
                free: self.saving(attempt.id),
                victim: self.restoring(attempt.id),
            });
        }
        let worker = &self.cluster.workers[&attempt.worker];
        let full = worker.why_full(self.settings.preemption.suspended_max);
        if can.suspend && full.is_none() && !self.is_suspended_enough(attempt) {
            let paging = auto.paging(self.cluster.bytes_that_would_not_fit(attempt, beneficiary));
            all.push(CostEstimate {
                primitive: Primitive::Suspend,
                free: known.suspend.unwrap_or(auto.suspend) + paging,
                victim: known.resume.unwrap_or(auto.resume) + paging,
            });
        }
        if let Some(left) = self.cluster.left_to_do(attempt) {
            let free = left.max(least);
            all.push(CostEstimate {
                primitive: Primitive::Wait,
                free,
                victim: Span(0),
            });
        }
        let lost = attempt.active_time(self.cluster.now) + known.launch.unwrap_or(auto.launch);
        let free = known.kill.unwrap_or_default();
        all.push(CostEstimate {
            primitive: Primitive::Kill,
            free,
            victim: lost,
        });
        let late = self.cluster.latest_for(attempt.id.task.kind, beneficiary);
        all.sort_by_key(|one| (late.is_some_and(|late| one.free > late), one.cost()));
        if all
            .iter()
            .all(|one| late.is_some_and(|late| one.free > late))
        {
            // Nothing is in time: the fastest comes first.
            all.sort_by_key(|one| (one.free, one.victim));
        }
        all
    }

    /// Returns whether its task was suspended as often as the settings allow.
    fn is_suspended_enough(&self, attempt: &Attempt) -> bool {
        let times = self
            .cluster
            .job(attempt.id.task.job)
            .task(attempt.id.task)
            .map_or(0, |task| task.suspends);
        self.settings
            .preemption
            .limits
            .suspends_max
            .is_some_and(|most| times >= most)
    }

    /// Returns the choice for a victim and the compared estimates, for people.
    pub(super) fn cheapest(
        &self,
        attempt: &Attempt,
        beneficiary: Option<JobId>,
        least: Span,
    ) -> Option<(CostEstimate, String)> {
        let estimates = self.estimates(attempt, beneficiary, least);
        let kind = attempt.id.task.kind;
        let keeps = matches!(
            estimates.first()?.primitive,
            Primitive::Suspend | Primitive::Checkpoint
        );
        let untried = estimates
            .iter()
            .find(|one| keeps && self.cluster.is_untried(kind, one.primitive));
        if let Some(untried) = untried {
            let why = format!(
                "no {kind} was {}ed yet; this one measures the cost",
                untried.primitive
            );
            return Some((*untried, why));
        }
        let cost = |one: &CostEstimate| format!("{} {}", one.primitive, one.cost().rounded());
        let costs: Vec<String> = estimates.iter().map(cost).collect();
        Some((
            *estimates.first()?,
            format!("cheapest of {}", costs.join(", ")),
        ))
    }

    /// Returns the choice for a victim that could not be suspended.
    pub(super) fn cheapest_but_suspend(
        &self,
        id: AttemptId,
        beneficiary: Option<JobId>,
        waited: Span,
    ) -> Option<CostEstimate> {
        let estimates = || self.estimates(&self.cluster.attempts[&id], beneficiary, waited);
        let all = if self.chooses() {
            estimates()
        } else {
            Vec::new()
        };
        all.into_iter()
            .find(|one| one.primitive != Primitive::Suspend)
    }

    /// Returns when suspended work is given up for a slot on another worker: by the settings or, if costs
    /// decide, after a wait that equals the cost of the move.
    pub(super) fn conversion_of(&self, id: AttemptId) -> Option<Conversion> {
        self.settings.preemption.convert.or_else(|| {
            let after = self.saving(id) + self.restoring(id);
            self.chooses().then_some(Conversion {
                after,
                to: Converted::Checkpoint,
            })
        })
    }

    /// Returns the expected time to save the work of an attempt.
    fn saving(&self, id: AttemptId) -> Span {
        let bytes = self.cluster.job(id.task.job).spec.memory;
        let known = self.cluster.costs.measured()[id.task.kind]
            .checkpoint_by_bytes
            .of(bytes);
        known.unwrap_or(self.settings.preemption.auto.checkpoint)
    }

    /// Returns the expected time to restore its checkpoint; before any measurement, more than a fresh start
    /// takes.
    fn restoring(&self, id: AttemptId) -> Span {
        let bytes = self.cluster.job(id.task.job).spec.memory;
        let known = &self.cluster.costs.measured()[id.task.kind];
        let begun = known.launch.unwrap_or_default();
        known
            .restore_by_bytes
            .of(bytes)
            .unwrap_or(self.settings.preemption.auto.restore + begun)
    }

    /// Checkpoints suspended attempts on workers with less memory than their attempts need, if that costs
    /// less than paging: the longest suspended first, then the largest.
    pub(super) fn convert_for_memory(&mut self) {
        let crowded = |id: WorkerId| {
            let worker = &self.cluster.workers[&id];
            let over = self
                .cluster
                .memory_used(worker)
                .saturating_sub(worker.memory()?);
            (over > 0).then_some((id, over))
        };
        let stopped = TaskKind::ALL
            .into_iter()
            .flat_map(|kind| self.cluster.suspended.workers(kind));
        let crowded: SortedMap<WorkerId, u64> = stopped.filter_map(crowded).collect();
        for (worker, mut over) in crowded {
            let mut suspended: Vec<_> = self.suspended_on(worker);
            suspended.sort_unstable();
            for (_, Reverse(bytes), id) in suspended {
                let paged = bytes.min(over);
                let paging = self
                    .settings
                    .preemption
                    .auto
                    .paging(paged.saturating_mul(2));
                if over == 0 || self.saving(id) + self.restoring(id) >= paging {
                    continue;
                }
                over -= paged;
                let reason = format!("{worker} has too little memory for its suspended attempts");
                self.give_up(id, Primitive::Checkpoint, Requester::Engine, reason);
            }
        }
    }

    /// Returns the suspended attempts of a worker that may be saved, with their suspension times and memory
    /// needs.
    fn suspended_on(&self, worker: WorkerId) -> Vec<(crate::time::Time, Reverse<u64>, AttemptId)> {
        let attempts = self.cluster.workers[&worker]
            .attempts()
            .map(|id| &self.cluster.attempts[&id]);
        let waits = attempts.filter(|one| {
            let saves = self.can_do(one.id).checkpoint && !one.is_at_work;
            one.state == AttemptState::Suspended && !one.is_held() && saves
        });
        let listed = |one: &Attempt| {
            let since = one.suspension()?.since;
            Some((
                since,
                Reverse(self.cluster.job(one.id.task.job).spec.memory),
                one.id,
            ))
        };
        waits.filter_map(listed).collect()
    }
}

impl Cluster {
    /// Estimates the remaining work time of an attempt, from its own progress or else from the durations of
    /// such tasks of its job; `None` without either.
    fn left_to_do(&self, attempt: &Attempt) -> Option<Span> {
        let now = self.now;
        let usual = || {
            let took = self.usual(attempt.id.task.job, attempt.id.task.kind)?;
            Some(Span(took.0.saturating_sub(attempt.work_time(now).0)))
        };
        attempt.remaining(now).or_else(usual)
    }

    /// Returns the mean work time of the completed tasks of a job.
    fn usual(&self, job: JobId, kind: TaskKind) -> Option<Span> {
        let (done, worked) = self.jobs.get(&job)?.worked(kind);
        Some(Span(worked.0.checked_div(u64::from(done))?))
    }

    /// Returns the latest time for a job with a deadline to get a slot and still complete one of its tasks by
    /// then.
    fn latest_for(&self, kind: TaskKind, beneficiary: Option<JobId>) -> Option<Span> {
        let job = self.jobs.get(&beneficiary?)?;
        let rest = job.spec.deadline?.since(self.now);
        Some(Span(rest.0.saturating_sub(
            self.usual(job.id, kind).unwrap_or_default().0,
        )))
    }

    /// Returns by how many bytes the memory of a worker is exceeded if an attempt stays suspended there while
    /// the beneficiary uses its slot, as far as the jobs and the worker report their memory.
    fn bytes_that_would_not_fit(&self, attempt: &Attempt, beneficiary: Option<JobId>) -> u64 {
        let worker = &self.workers[&attempt.worker];
        let Some(memory) = worker.memory() else {
            return 0;
        };
        let newcomer = beneficiary
            .and_then(|job| self.jobs.get(&job))
            .map_or(0, |job| job.spec.memory);
        let used = self.memory_used(worker);
        (used + newcomer).saturating_sub(memory) - used.saturating_sub(memory)
    }

    /// Returns the memory needs of a worker's attempts, including suspended ones, without those that are
    /// being saved to move.
    fn memory_used(&self, worker: &Worker) -> u64 {
        let stay = worker
            .attempts()
            .filter(|id| !self.attempts[id].is_converting());
        stay.map(|id| self.job(id.task.job).spec.memory).sum()
    }

    /// Returns whether this way to keep work was never chosen for a task of a kind. Untried primitives are
    /// tried once, because they would otherwise never be measured.
    fn is_untried(&self, kind: TaskKind, primitive: Primitive) -> bool {
        let tried = self.costs.measured()[kind].tried;
        match primitive {
            Primitive::Suspend => !tried.suspend,
            Primitive::Checkpoint => !tried.checkpoint,
            Primitive::Wait | Primitive::Kill => false,
        }
    }

    /// Records the estimated and the actual cost of a chosen primitive, when the slot of an attempt is free
    /// or it ended after this work time.
    pub(super) fn judge_free(&mut self, id: AttemptId, worked: Span) {
        let Some(request) = self.requests.get(&id) else {
            return;
        };
        let Some(estimate) = request.estimate else {
            return;
        };
        let took = self.now.since(request.begins());
        let lost = if estimate.primitive == Primitive::Kill {
            worked
        } else {
            Span(0)
        };
        self.costs.judge(estimate, took, lost);
    }
}

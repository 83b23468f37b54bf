//! Cost-based choice of the primitive: the engine estimates every possible one for each victim and uses the
//! one that costs the two jobs least. It also gives up suspended work when memory is short.
//!
//! A cost is the sum of two delays in seconds: until the beneficiary has the slot, and the additional slot
//! time of the victim. There are no weights and no parameters fitted to a workload: the inputs are
//! measurements of this cluster for tasks of the kind, and the victim's reported progress. A suspended
//! attempt that waits for a slot of its worker is moved to another one when it has waited for as long as the
//! move costs (the ski rental rule: the total is at most twice the optimum).

use std::cmp::Reverse;

use crate::cluster::{Attempt, Cluster, Job, Worker};
use crate::engine::Rules;
use crate::ids::{AttemptId, JobId, TaskKind, WorkerId};
use crate::preemption::{CostEstimate, Primitive, Requester};
use crate::primitive_choice::AutoSettings;
use crate::settings::{Conversion, Converted, PreemptionSettings};
use crate::sorted::SortedMap;
use crate::states::AttemptState;
use crate::time::{Span, Time};

impl PreemptionSettings {
    /// Returns the expected cost of each possible way to take the slot of an attempt, cheapest first. Ties go
    /// to the primitive that keeps the work, then to the one whose work can continue on any worker. The
    /// attempt is assumed to need at least `least` to finish.
    fn estimates(
        &self,
        cluster: &Cluster,
        attempt: &Attempt,
        beneficiary: Option<JobId>,
        least: Span,
    ) -> Vec<CostEstimate> {
        let auto = &self.auto;
        let kind = attempt.id.task.kind;
        let job = cluster.job(attempt.id.task.job);
        let can = self.can_do(job, kind);
        let known = &cluster.costs.measured()[kind];
        let mut all = Vec::with_capacity(4);
        if can.checkpoint {
            let bytes = job.spec.memory;
            all.push(CostEstimate {
                primitive: Primitive::Checkpoint,
                free: known.expected_checkpoint(bytes, auto),
                victim: known.expected_restore(bytes, auto),
            });
        }
        let worker = &cluster.workers[&attempt.worker];
        let full = worker.why_full(self.suspended_max);
        let task = cluster.task(attempt.id.task);
        if can.suspend && full.is_none() && !task.is_suspended_enough(&self.limits) {
            let paging = auto.paging(cluster.bytes_that_would_not_fit(attempt, beneficiary));
            all.push(CostEstimate {
                primitive: Primitive::Suspend,
                free: known.suspend.unwrap_or(auto.suspend) + paging,
                victim: known.resume.unwrap_or(auto.resume) + paging,
            });
        }
        if let Some(left) = cluster.left_to_do(attempt) {
            let free = left.max(least);
            all.push(CostEstimate {
                primitive: Primitive::Wait,
                free,
                victim: Span(0),
            });
        }
        let lost = attempt.active_time(cluster.now) + known.launch.unwrap_or(auto.launch);
        let free = known.kill.unwrap_or_default();
        all.push(CostEstimate {
            primitive: Primitive::Kill,
            free,
            victim: lost,
        });
        let claimant = beneficiary.and_then(|id| cluster.jobs.get(&id));
        let late = claimant.and_then(|job| job.latest_slot(kind, cluster.now));
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

    /// Returns the choice for a victim and the compared estimates, for people.
    pub(super) fn cheapest(
        &self,
        cluster: &Cluster,
        attempt: &Attempt,
        beneficiary: Option<JobId>,
        least: Span,
    ) -> Option<(CostEstimate, String)> {
        let estimates = self.estimates(cluster, attempt, beneficiary, least);
        let kind = attempt.id.task.kind;
        let known = &cluster.costs.measured()[kind];
        let keeps = matches!(
            estimates.first()?.primitive,
            Primitive::Suspend | Primitive::Checkpoint
        );
        let untried = estimates
            .iter()
            .find(|one| keeps && known.is_untried(one.primitive));
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
        cluster: &Cluster,
        attempt: &Attempt,
        beneficiary: Option<JobId>,
        waited: Span,
    ) -> Option<CostEstimate> {
        if !self.chooses_by_cost() {
            return None;
        }
        let estimates = self.estimates(cluster, attempt, beneficiary, waited);
        estimates
            .into_iter()
            .find(|one| one.primitive != Primitive::Suspend)
    }

    /// Returns when suspended work is given up for a slot on another worker: by the settings or, if costs
    /// decide, after a wait that equals the cost of the move.
    pub(super) fn conversion_of(&self, cluster: &Cluster, id: AttemptId) -> Option<Conversion> {
        if self.convert.is_some() || !self.chooses_by_cost() {
            return self.convert;
        }
        Some(Conversion {
            after: cluster.cost_to_move(id, &self.auto),
            to: Converted::Checkpoint,
        })
    }
}

impl Rules {
    /// Checkpoints suspended attempts on workers with less memory than their attempts need, if that costs
    /// less than paging: the longest suspended first, then the largest.
    pub(super) fn convert_for_memory(&mut self) {
        for (worker, mut over) in self.cluster.crowded_workers() {
            let settings = &self.settings.preemption;
            let mut suspended = self.cluster.savable_on(worker, settings);
            suspended.sort_unstable();
            for (_, Reverse(bytes), id) in suspended {
                let paged = bytes.min(over);
                let auto = &self.settings.preemption.auto;
                let paging = auto.paging(paged.saturating_mul(2));
                if over == 0 || self.cluster.cost_to_move(id, auto) >= paging {
                    continue;
                }
                over -= paged;
                let reason = format!("{worker} has too little memory for its suspended attempts");
                self.give_up(id, Primitive::Checkpoint, Requester::Engine, reason);
            }
        }
    }
}

impl Job {
    /// Returns the latest time from now for it to get a slot and still complete a task of a kind by its deadline,
    /// if it has one.
    fn latest_slot(&self, kind: TaskKind, now: Time) -> Option<Span> {
        let rest = self.spec.deadline?.since(now);
        let needed = self.mean_work(kind).unwrap_or_default();
        Some(Span(rest.0.saturating_sub(needed.0)))
    }
}

impl Cluster {
    /// Returns the workers with suspended attempts and less memory than their attempts need, and how many bytes are
    /// missing.
    fn crowded_workers(&self) -> SortedMap<WorkerId, u64> {
        let mut crowded = SortedMap::new();
        for kind in TaskKind::ALL {
            for id in self.suspended.workers(kind) {
                let worker = &self.workers[&id];
                let Some(memory) = worker.memory() else {
                    continue;
                };
                let over = self.memory_used(worker).saturating_sub(memory);
                if over > 0 {
                    crowded.insert(id, over);
                }
            }
        }
        crowded
    }

    /// Returns the suspended attempts of a worker that may be saved, with their suspension times and memory
    /// needs.
    fn savable_on(
        &self,
        worker: WorkerId,
        settings: &PreemptionSettings,
    ) -> Vec<(Time, Reverse<u64>, AttemptId)> {
        let attempts = self.workers[&worker]
            .attempts()
            .map(|id| &self.attempts[&id]);
        let waits = attempts.filter(|one| {
            let job = self.job(one.id.task.job);
            let can = settings.can_do(job, one.id.task.kind);
            let waits = one.state == AttemptState::Suspended && !one.is_held();
            waits && can.checkpoint && !one.is_at_work
        });
        let listed = |one: &Attempt| {
            let since = one.suspension()?.since;
            Some((
                since,
                Reverse(self.job(one.id.task.job).spec.memory),
                one.id,
            ))
        };
        waits.filter_map(listed).collect()
    }

    /// Returns the expected time to save the work of an attempt and to restore it on another worker.
    fn cost_to_move(&self, id: AttemptId, assumed: &AutoSettings) -> Span {
        let bytes = self.job(id.task.job).spec.memory;
        let known = &self.costs.measured()[id.task.kind];
        known.expected_checkpoint(bytes, assumed) + known.expected_restore(bytes, assumed)
    }

    /// Estimates the remaining work time of an attempt, from its own progress or else from the durations of
    /// such tasks of its job; `None` without either.
    fn left_to_do(&self, attempt: &Attempt) -> Option<Span> {
        let now = self.now;
        let usual = || {
            let job = self.job(attempt.id.task.job);
            let took = job.mean_work(attempt.id.task.kind)?;
            Some(Span(took.0.saturating_sub(attempt.work_time(now).0)))
        };
        attempt.remaining(now).or_else(usual)
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

//! The engine's choices for a policy: fallbacks to a possible primitive, and the attempts that give up slots
//! (task eviction).

use std::cmp::Reverse;

use rand::seq::SliceRandom;

use crate::cluster::{Attempt, Cluster, Fallbacks, Job};
use crate::engine::Rules;
use crate::ids::{AttemptId, TaskKind};
use crate::preemption::{CostEstimate, Primitive, TaskEviction};
use crate::primitive_choice::PrimitiveChoice;
use crate::refusal::ActionRefusal;
use crate::scheduler::{Preempt, Release};
use crate::settings::{KindPreemption, PreemptionSettings};
use crate::states::{AttemptState, JobState};
use crate::time::{Span, Time};

/// The primitive to use for a requested one.
#[derive(Debug)]
pub(super) struct Choice {
    pub primitive: Primitive,
    /// Why it differs from the requested one.
    pub why: Option<String>,
    /// Its estimated cost, if that decided.
    pub estimate: Option<CostEstimate>,
    /// The setting that decided, if it differs.
    pub fallback: Option<Fallback>,
}

/// The settings that replace a requested primitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fallback {
    /// `preemptions-max` or `suspends-max`.
    TakenEnough,
    /// `otherwise`: the task cannot be preempted as requested.
    NotPossible,
    /// `when-full`: the worker keeps `suspended-max` attempts.
    WorkerFull,
    /// The rule for costs.
    Costs,
}

impl Fallbacks {
    /// Counts a request that a setting changed.
    pub(super) fn add(&mut self, fallback: Fallback) {
        match fallback {
            Fallback::TakenEnough => self.taken_enough += 1,
            Fallback::NotPossible => self.not_possible += 1,
            Fallback::WorkerFull => self.worker_full += 1,
            Fallback::Costs => self.costs += 1,
        }
    }
}

impl Choice {
    fn as_requested(primitive: Primitive) -> Choice {
        Choice {
            primitive,
            why: None,
            estimate: None,
            fallback: None,
        }
    }

    fn instead(primitive: Primitive, why: String, fallback: Fallback) -> Choice {
        Choice {
            primitive,
            why: Some(why),
            estimate: None,
            fallback: Some(fallback),
        }
    }
}

impl PreemptionSettings {
    /// Returns how tasks of a kind of a job can be preempted: by the settings and by what its code can save.
    pub(super) fn can_do(&self, job: &Job, kind: TaskKind) -> KindPreemption {
        let can = self.of(kind);
        KindPreemption {
            checkpoint: can.checkpoint && !job.spec.unsaved.contains(&kind),
            ..can
        }
    }

    /// Returns the primitive to use for a requested one. The attempt is assumed to need at least `least` to finish.
    pub(super) fn primitive_for(
        &self,
        cluster: &Cluster,
        attempt: &Attempt,
        asked: Primitive,
        least: Span,
    ) -> Choice {
        // A fixed primitive applies only to attempts with a slot. A suspended one can only be checkpointed or
        // killed.
        let fixed = self.primitive.and_then(PrimitiveChoice::fixed);
        let asked = fixed.filter(|_| attempt.holds_slot).unwrap_or(asked);
        let kind = attempt.id.task.kind;
        let job = cluster.job(attempt.id.task.job);
        let task = cluster.task(attempt.id.task);
        if asked != Primitive::Wait
            && attempt.holds_slot
            && let Some(why) = task.why_taken_enough(&self.limits)
        {
            let why = format!("wait instead of {asked}: {why}");
            return Choice::instead(Primitive::Wait, why, Fallback::TakenEnough);
        }
        let can = self.can_do(job, kind);
        let possible = match asked {
            Primitive::Suspend => can.suspend,
            Primitive::Checkpoint => can.checkpoint,
            Primitive::Wait | Primitive::Kill => return Choice::as_requested(asked),
        };
        if !possible {
            let instead = can.otherwise.into();
            let why = format!("{instead} instead of {asked}, which {kind}s cannot do here");
            return Choice::instead(instead, why, Fallback::NotPossible);
        }
        if asked == Primitive::Suspend
            && let Some(why) = cluster.workers[&attempt.worker].why_full(self.suspended_max)
        {
            let instead = self.when_full.into();
            let why = format!("{instead} instead of {asked}: {why}");
            return Choice::instead(instead, why, Fallback::WorkerFull);
        }
        if asked == Primitive::Suspend && task.is_suspended_enough(&self.limits) {
            let suspends = task.suspends;
            let why = format!(
                "wait instead of {asked}: its task was suspended {suspends} times (suspends-max)"
            );
            return Choice::instead(Primitive::Wait, why, Fallback::TakenEnough);
        }
        self.worth(cluster, attempt, asked, least)
    }

    /// Applies the cost rule to a primitive that saves work: an attempt that ends sooner may finish, and an
    /// attempt that has done less work is killed.
    fn worth(&self, cluster: &Cluster, attempt: &Attempt, asked: Primitive, least: Span) -> Choice {
        let Some(rule) = self.cost else {
            return Choice::as_requested(asked);
        };
        let known = &cluster.costs.measured()[attempt.id.task.kind];
        let cost = known.by_rule(rule, asked);
        let now = cluster.now;
        if rule.let_finish
            && let Some(rest) = attempt
                .remaining(now)
                .map(|rest| rest.max(least))
                .filter(|rest| *rest < cost.free)
        {
            let why = format!(
                "wait instead of {asked}: it is expected to finish sooner ({} < {})",
                rest.rounded(),
                cost.free.rounded()
            );
            let estimate = CostEstimate {
                primitive: Primitive::Wait,
                free: rest,
                victim: Span(0),
            };
            let choice = Choice::instead(Primitive::Wait, why, Fallback::Costs);
            return Choice {
                estimate: Some(estimate),
                ..choice
            };
        }
        let worked = attempt.active_time(now);
        let total_cost = cost.free + cost.resume;
        if rule.kill_fresh && worked < total_cost {
            let why = format!(
                "kill instead of {asked}: repeating its work costs less ({} < {})",
                worked.rounded(),
                total_cost.rounded()
            );
            return Choice::instead(Primitive::Kill, why, Fallback::Costs);
        }
        Choice::as_requested(asked)
    }

    /// Returns the earliest time to preempt an attempt and the reason, if not now: its task was preempted
    /// recently, or repeatedly without progress, and must do some work first.
    pub(super) fn earliest_for(
        &self,
        cluster: &Cluster,
        attempt: &Attempt,
        primitive: Primitive,
    ) -> Option<(Time, String)> {
        let task = cluster.task(attempt.id.task);
        let now = cluster.now;
        let ran = attempt.runs_for(now);
        let rested = self.limits.minimum_run;
        let rested = if task.preemptions > 0 {
            rested
        } else {
            Span(0)
        };
        let least = rested.max(attempt.spared_for);
        if primitive == Primitive::Wait || !attempt.holds_slot || ran >= least {
            return None;
        }
        let wait = Span(least.0 - ran.0);
        let history = if attempt.is_spared(now) {
            format!(
                "{} times without progress and may run for {}",
                task.fruitless,
                least.rounded()
            )
        } else {
            "recently".to_owned()
        };
        Some((
            now + wait,
            format!(
                "after another {}: it was preempted {history}",
                wait.rounded()
            ),
        ))
    }
}

impl Rules {
    /// Opens requests for the requested number of slots of a job, or for all there are.
    pub(super) fn release(&mut self, wish: &Release) -> Result<(), ActionRefusal> {
        let job = self
            .cluster
            .jobs
            .get(&wish.job)
            .ok_or(ActionRefusal::NoSuchJob(wish.job))?;
        let mut able = self.cluster.releasable(job, wish.kind);
        if wish.eviction == TaskEviction::Random {
            able.shuffle(&mut self.random);
        } else {
            let unknown = self.cluster.mean_remaining(&able);
            let now = self.cluster.now;
            let claimant = wish.beneficiary.and_then(|id| self.cluster.jobs.get(&id));
            let is_near =
                |worker| claimant.is_some_and(|job| job.next_local(wish.kind, worker).is_some());
            able.sort_by_cached_key(|id| {
                let attempt = &self.cluster.attempts[id];
                let remaining = attempt.smoothed_remaining(now).unwrap_or(unknown);
                eviction_key(attempt, wish.eviction, remaining, is_near(attempt.worker))
            });
        }
        let mut left = wish.count;
        for attempt in able {
            let Release {
                primitive,
                grace,
                beneficiary,
                ..
            } = *wish;
            if left == 0 {
                break;
            }
            let claimant = beneficiary.and_then(|id| self.cluster.jobs.get(&id));
            let is_active = claimant.is_some_and(|job| job.state == JobState::Active);
            if is_active && !self.cluster.is_of_use(attempt, beneficiary) {
                continue;
            }
            self.preempt(&Preempt {
                attempt,
                primitive,
                grace,
                reason: wish.reason.clone(),
                beneficiary,
            })?;
            // A request can be ignored, for example where the worker takes no attempts.
            left -= u32::from(self.cluster.requests.contains(&attempt));
        }
        Ok(())
    }
}

impl Cluster {
    /// Returns the attempts of a job that hold a slot and have no open request.
    fn releasable(&self, job: &Job, kind: TaskKind) -> Vec<AttemptId> {
        let (first, last) = AttemptId::range_of(job.id, kind);
        let able = |id: &AttemptId| {
            let attempt = &self.attempts[id];
            attempt.holds_slot
                && attempt.state != AttemptState::Killing
                && !attempt.is_spared(self.now)
                && !self.requests.contains(id)
        };
        job.live.range(first..=last).copied().filter(able).collect()
    }

    /// Returns the mean remaining time of the attempts that report progress, as the estimate for the others.
    fn mean_remaining(&self, of: &[AttemptId]) -> Span {
        let now = self.now;
        let known: Vec<Span> = of
            .iter()
            .filter_map(|id| self.attempts[id].smoothed_remaining(now))
            .collect();
        let sum: u128 = known.iter().map(|span| u128::from(span.0)).sum();
        let mean = sum.checked_div(known.len() as u128).unwrap_or_default();
        Span(u64::try_from(mean).unwrap_or(u64::MAX))
    }
}

/// Returns the sort key of an eviction order; ties go to the attempt near the beneficiary's data, then the
/// younger one, then the larger index.
fn eviction_key(
    attempt: &Attempt,
    eviction: TaskEviction,
    remaining: Span,
    is_near: bool,
) -> impl Ord + use<> {
    let by = match eviction {
        TaskEviction::ShortestRemaining => remaining.0,
        TaskEviction::LongestRemaining => u64::MAX - remaining.0,
        TaskEviction::LeastProgress => u64::from(attempt.progress_millionths().unwrap_or_default()),
        TaskEviction::Youngest => u64::MAX - attempt.launched.0,
        TaskEviction::Random => 0,
    };
    (by, !is_near, Reverse(attempt.launched), Reverse(attempt.id))
}

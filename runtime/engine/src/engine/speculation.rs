//! Speculative duplicates of stragglers. A duplicate runs in an unwanted slot on another worker, after the
//! policy has made its decisions. The first attempt to finish counts; the other one is superseded and killed
//! (`endings`).
//!
//! As in LATE, the estimated remaining time decides, not progress alone: an attempt is a straggler if it will
//! need more than `slowdown` times the median duration of finished tasks of its kind, or if it has already
//! run for one median longer than that, regardless of its reported progress.

use std::cmp::Reverse;

use crate::cluster::{Attempt, Cluster, Job};
use crate::effect::Start;
use crate::engine::Rules;
use crate::ids::{AttemptId, TaskKind, WorkerId};
use crate::settings::SpeculationSettings;
use crate::states::AttemptState;
use crate::time::Span;

impl Rules {
    /// Checks for stragglers if it is time to, and schedules the next check while there may be some.
    pub(super) fn speculate(&mut self) {
        let Some(rule) = self.settings.speculation else {
            return;
        };
        let now = self.cluster.now;
        if self.timers.take_speculation(now) {
            for kind in TaskKind::ALL {
                self.duplicate_stragglers(kind, rule);
            }
        }
        let cluster = &self.cluster;
        let worthwhile = |kind: TaskKind| {
            !cluster.slots.free(kind).is_empty() && !cluster.demand.speculable(kind).is_empty()
        };
        if !self.timers.has_speculation() && TaskKind::ALL.into_iter().any(worthwhile) {
            self.timers.speculate_at(now + rule.period);
        }
    }

    /// Starts duplicates of the stragglers of a kind, longest remaining time first, while there are slots.
    fn duplicate_stragglers(&mut self, kind: TaskKind, rule: SpeculationSettings) {
        if self.cluster.slots.free(kind).is_empty() {
            return;
        }
        for id in self.cluster.stragglers(kind, rule) {
            if let Some(worker) = self.cluster.place_for_duplicate(id) {
                // Not from a checkpoint: that may be the cause of the slowness.
                self.start(id.task, worker, Start::Fresh, Some(id));
            }
        }
    }
}

impl Cluster {
    /// Returns the stragglers of a kind that may have a duplicate, longest remaining time first.
    fn stragglers(&self, kind: TaskKind, rule: SpeculationSettings) -> Vec<AttemptId> {
        let mut stragglers: Vec<(Reverse<Span>, AttemptId)> = Vec::new();
        for job in self.demand.speculable(kind) {
            let job = self.job(*job);
            let Some(median) = job.median_duration(kind, rule.finished_min) else {
                continue;
            };
            let (first, last) = AttemptId::range_of(job.id, kind);
            for id in job.live.range(first..=last) {
                let attempt = &self.attempts[id];
                let rest = self.rest_of_straggler(job, attempt, median, rule);
                stragglers.extend(rest.map(|rest| (Reverse(rest), *id)));
            }
        }
        stragglers.sort_unstable();
        stragglers.into_iter().map(|(_, id)| id).collect()
    }

    /// Returns the remaining time of an attempt, if it is a straggler that may have a duplicate.
    fn rest_of_straggler(
        &self,
        job: &Job,
        attempt: &Attempt,
        median: Span,
        rule: SpeculationSettings,
    ) -> Option<Span> {
        let task = job.task(attempt.id.task)?;
        let alone = task.live.len() == 1 && task.committer.is_none() && !attempt.superseded;
        let wanted = attempt.state == AttemptState::Running && !self.requests.contains(&attempt.id);
        let active = attempt.active_time(self.now);
        if !alone || !wanted || attempt.duplicated || active < rule.minimum {
            return None;
        }
        let much = Span(median.0.saturating_mul(u64::from(rule.slowdown_permille)) / 1000);
        let rest = attempt.remaining(self.now);
        // Work before a checkpoint counts as it does for finished tasks.
        let worked = attempt.work_time(self.now);
        let slow = rest.is_some_and(|rest| rest > much) || worked > much + median;
        slow.then(|| rest.unwrap_or(worked))
    }

    /// Returns a worker with an unwanted slot, other than the attempt's own and those on which its task
    /// failed.
    fn place_for_duplicate(&self, id: AttemptId) -> Option<WorkerId> {
        let cluster = self;
        let kind = id.task.kind;
        let task = cluster.job(id.task.job).task(id.task)?;
        let own = cluster.attempts[&id].worker;
        let wanted = |on: WorkerId| {
            cluster
                .demand
                .wanting(kind)
                .any(|job| cluster.job(job).wants_on(kind, on))
        };
        let suits = |worker: &WorkerId| {
            let known = &cluster.workers[worker];
            *worker != own
                && known.free(kind) > known.reserved(kind)
                && !task.faults.failed_on.contains(worker)
                && !cluster.job(id.task.job).avoids(id.task, *worker)
                && !wanted(*worker)
        };
        cluster
            .slots
            .free(kind)
            .iter()
            .map(|(_, worker)| worker)
            .find(suits)
    }
}

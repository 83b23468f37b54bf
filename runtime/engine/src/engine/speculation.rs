//! Duplicates of attempts that take much longer than their like.
//!
//! Owns which attempts are stragglers and where a duplicate may run: in a slot that nobody wants, on another
//! worker. It comes after the policy, whose slots it never takes. Of two attempts at a task the first that is
//! done counts; the other one is superseded and killed (`endings`).
//!
//! As in LATE, what counts is the estimated time to the end, not the progress alone: an attempt is a
//! straggler when the rest would take longer than `slowdown` times what finished tasks of its kind
//! took in the median, or when it has been at work for longer than that and one median more,
//! whatever it says of its progress.

use std::cmp::Reverse;

use crate::cluster::{Attempt, Job};
use crate::effect::Start;
use crate::engine::Engine;
use crate::ids::{AttemptId, TaskKind, WorkerId};
use crate::settings::SpeculationSettings;
use crate::states::AttemptState;
use crate::time::Span;

impl Engine {
    /// Looks for stragglers if it is time to, and sees to it that it is done again while there may be some.
    pub(super) fn speculate(&mut self) {
        let Some(rule) = self.settings.speculation else { return };
        let now = self.cluster.now;
        if self.speculate_at.is_some_and(|at| at <= now) {
            self.speculate_at = None;
            for kind in TaskKind::ALL {
                self.duplicate_stragglers(kind, rule);
            }
        }
        let cluster = &self.cluster;
        let worthwhile =
            |kind: TaskKind| !cluster.free[kind].is_empty() && !cluster.speculable[kind].is_empty();
        if self.speculate_at.is_none() && TaskKind::ALL.into_iter().any(worthwhile) {
            self.speculate_at = Some(now + rule.period);
        }
    }

    /// Starts duplicates of the stragglers of a kind, those with the longest rest first, while there
    /// are slots.
    fn duplicate_stragglers(&mut self, kind: TaskKind, rule: SpeculationSettings) {
        if self.cluster.free[kind].is_empty() {
            return;
        }
        let mut stragglers: Vec<(Reverse<Span>, AttemptId)> = Vec::new();
        for job in &self.cluster.speculable[kind] {
            let job = self.cluster.job(*job);
            let Some(median) = job.median_duration(kind, rule.finished_min) else { continue };
            let (first, last) = AttemptId::range_of(job.id, kind);
            for id in job.live.range(first..=last) {
                let rest = self.rest_of_straggler(job, &self.cluster.attempts[id], median, rule);
                stragglers.extend(rest.map(|rest| (Reverse(rest), *id)));
            }
        }
        stragglers.sort_unstable();
        for (_, id) in stragglers {
            if let Some(worker) = self.place_for_duplicate(id) {
                // Not from a checkpoint: that may be what is slow.
                self.start(id.task, worker, Start::Fresh, Some(id));
            }
        }
    }

    /// How long an attempt will take yet, if it is a straggler that may have a duplicate.
    fn rest_of_straggler(
        &self,
        job: &Job,
        attempt: &Attempt,
        median: Span,
        rule: SpeculationSettings,
    ) -> Option<Span> {
        let task = job.task(attempt.id.task)?;
        let alone = task.live.len() == 1 && task.committer.is_none() && !attempt.superseded;
        let wanted =
            attempt.state == AttemptState::Running && !self.cluster.requests.contains_key(&attempt.id);
        let active = attempt.active_time(self.cluster.now);
        if !alone || !wanted || attempt.duplicated || active < rule.minimum {
            return None;
        }
        let much = Span(median.0.saturating_mul(u64::from(rule.slowdown_permille)) / 1000);
        let rest = attempt.remaining(self.cluster.now);
        // What was done before a checkpoint counts as it does for finished tasks.
        let worked = attempt.work_time(self.cluster.now);
        let slow = rest.is_some_and(|rest| rest > much) || worked > much + median;
        slow.then(|| rest.unwrap_or(worked))
    }

    /// A worker with a slot that nobody wants, other than the one the attempt runs on and those its task
    /// failed on.
    fn place_for_duplicate(&self, id: AttemptId) -> Option<WorkerId> {
        let (cluster, kind) = (&self.cluster, id.task.kind);
        let task = cluster.job(id.task.job).task(id.task)?;
        let own = cluster.attempts[&id].worker;
        let wanted = |on: WorkerId| {
            cluster.wanting[kind].iter().any(|(_, _, job)| cluster.job(*job).wants_on(kind, on))
        };
        let suits = |worker: &WorkerId| {
            let known = &cluster.workers[worker];
            *worker != own
                && known.free(kind) > known.reserved(kind)
                && !task.faults.failed_on.contains(worker)
                && !wanted(*worker)
        };
        cluster.free[kind].iter().map(|(_, worker)| worker).find(suits)
    }
}

//! Algorithm 1 of FCS: preempts reduces of larger jobs for jobs that lack reduce slots.

use std::cmp::Reverse;

use napreduce_engine::{
    Actions, Attempt, AttemptId, AttemptState, Claims, ClusterView, JobId, Preempt, Ratio,
    SortedMap, SortedSet, TaskKind, Time, WorkerId, sort_by_key,
};

use crate::fcs::estimates::{RunningReduce, is_preemptable};
use crate::fcs::jobs::RankKey;
use crate::fcs::policy::Fcs;

/// Limit on the jobs, and on the preempted tasks of one job, examined in one round. Later rounds continue.
const LOOKS_MAX: usize = 32;

/// One preemption round.
struct Round<'a, 'b> {
    now: Time,
    view: &'a ClusterView<'b>,
    /// Preemptable attempts of each examined job; the last is preempted first.
    candidates: SortedMap<JobId, Vec<AttemptId>>,
    chosen: SortedSet<AttemptId>,
    /// The slots that claimants will use.
    claims: Claims<'a>,
}

impl Fcs {
    /// Preempts tasks for jobs whose demand grew and, once per period, for all waiting jobs.
    pub(super) fn preempt_for_claimants(
        &mut self,
        now: Time,
        view: &ClusterView<'_>,
        actions: &mut Actions,
    ) {
        let is_due = now >= self.state.last_round + self.configuration.period();
        let asking = std::mem::take(&mut self.state.jobs.asking);
        if !is_due && asking.is_empty() {
            return;
        }
        let claimants: Vec<RankKey> = if is_due {
            self.state.last_round = now;
            self.state
                .jobs
                .waiting
                .iter()
                .take(LOOKS_MAX)
                .copied()
                .collect()
        } else {
            let known = asking
                .iter()
                .filter_map(|id| self.state.jobs.members.get(id)?.now);
            let mut ranks: Vec<RankKey> = known.map(|standing| standing.place).collect();
            ranks.sort_unstable();
            ranks
        };
        let available = view.free_slots(TaskKind::Reduce) + view.freeing(TaskKind::Reduce);
        let mut free = available.saturating_sub(self.state.jobs.promised);
        let mut round = Round {
            now,
            view,
            candidates: SortedMap::new(),
            chosen: SortedSet::new(),
            claims: Claims::new(*view, &[TaskKind::Reduce]),
        };
        for rank in claimants {
            if self
                .state
                .jobs
                .running
                .last()
                .is_none_or(|largest| largest.0 <= rank.0)
            {
                return;
            }
            free -= self.claim(rank, free, &mut round, actions);
        }
    }

    /// Preempts tasks for one job. Returns how many of the `free` slots the job uses.
    fn claim(
        &self,
        rank: RankKey,
        free: u32,
        round: &mut Round<'_, '_>,
        actions: &mut Actions,
    ) -> u32 {
        let Some(member) = self.state.jobs.members.get(&rank.2) else {
            return 0;
        };
        let Some(standing) = member.now else { return 0 };
        let waiting = u32::try_from(member.preempted.len())
            .unwrap_or(u32::MAX)
            .min(standing.eligible);
        let may_migrate = member
            .preempted
            .is_patience_exhausted(self.configuration.patience(self.state.workers));
        // A preempted task can use a slot of its own worker only, until its patience is exhausted.
        let anywhere = standing.eligible - waiting + u32::from(may_migrate);
        let demand = anywhere.saturating_sub(standing.promised);
        let lacking = demand.saturating_sub(free);
        let mut victims = Vec::new();
        if lacking > 0 {
            let larger = self
                .state
                .jobs
                .running
                .iter()
                .rev()
                .take_while(|job| job.0 > rank.0);
            for job in larger {
                self.take_candidates(job.2, rank.2, lacking, round, &mut victims);
                if victims.len() >= lacking as usize {
                    break;
                }
            }
        }
        let workers = member.preempted.waiting().map(|(_, worker)| worker);
        let stopped = round
            .view
            .job(rank.2)
            .into_iter()
            .flat_map(|job| job.suspended_attempts(TaskKind::Reduce));
        let workers = workers
            .take(LOOKS_MAX)
            .chain(stopped.take(LOOKS_MAX).map(|(worker, _)| worker));
        for worker in workers.collect::<Vec<_>>() {
            victims.extend(self.candidate_on(worker, rank, round));
        }
        for attempt in victims {
            round.chosen.insert(attempt);
            actions.preempt(Preempt {
                attempt,
                primitive: self.configuration.primitive,
                grace: self.configuration.grace,
                reason: format!(
                    "{} has less remaining work than {}",
                    rank.2, attempt.task.job
                ),
                beneficiary: Some(rank.2),
            });
        }
        demand.min(free)
    }

    /// Takes candidates of a job, until there are `most` victims, where the claimant will use their slots.
    fn take_candidates(
        &self,
        job: JobId,
        claimant: JobId,
        most: u32,
        round: &mut Round<'_, '_>,
        victims: &mut Vec<AttemptId>,
    ) {
        self.candidates(job, round);
        let Round {
            view,
            candidates,
            claims,
            ..
        } = round;
        let Some(candidates) = candidates.get_mut(&job) else {
            return;
        };
        for place in (0..candidates.len()).rev() {
            if victims.len() >= most as usize {
                return;
            }
            let Some(worker) = view.attempt(candidates[place]).map(Attempt::worker) else {
                continue;
            };
            if claims.wants_on(claimant, worker) {
                claims.add(claimant, worker);
                victims.push(candidates.remove(place));
            }
        }
    }

    /// Collects the preemptable attempts of a job in reverse preemption order. Attempts with the least
    /// progress are preempted first; of these, the youngest.
    fn candidates(&self, job: JobId, round: &mut Round<'_, '_>) {
        let now = round.now;
        let view = round.view;
        round.candidates.get_or_insert_with(job, || {
            let attempts = view
                .job(job)
                .into_iter()
                .flat_map(|job| job.attempts_of_kind(TaskKind::Reduce));
            let attempts = attempts.filter_map(|id| view.attempt(id));
            let mut candidates: Vec<&Attempt> = attempts
                .filter(|one| self.is_candidate(now, view, one))
                .collect();
            sort_by_key(&mut candidates, |one| {
                (
                    Reverse(one.progress_millionths().unwrap_or_default()),
                    one.launched(),
                    one.id(),
                )
            });
            candidates.into_iter().map(Attempt::id).collect()
        });
    }

    /// Returns the attempt to preempt on a worker for a preempted task of the claimant, if no slot there is
    /// free or promised to it: that of the job with the most remaining work.
    fn candidate_on(
        &self,
        worker: WorkerId,
        rank: RankKey,
        round: &mut Round<'_, '_>,
    ) -> Option<AttemptId> {
        let now = round.now;
        let view = round.view;
        let kind = TaskKind::Reduce;
        let known = view.worker(worker)?;
        let reduces = || known.attempts().filter(|id| id.task.kind == kind);
        let for_claimant = |id: AttemptId| {
            view.request(id)
                .is_some_and(|open| open.beneficiary == Some(rank.2))
        };
        let promised = known.reservation_of(rank.2, kind).is_some() || reduces().any(for_claimant);
        if promised
            || !round.claims.wants_on(rank.2, worker)
            || known.free(kind) > known.reserved(kind)
            || reduces().any(|id| round.chosen.contains(&id))
        {
            return None;
        }
        let work = |id: &AttemptId| {
            let standing = self.state.jobs.members.get(&id.task.job)?.now?;
            Some(standing.place).filter(|other| other.0 > rank.0)
        };
        let candidates = reduces().filter(|id| {
            view.attempt(*id)
                .is_some_and(|one| self.is_candidate(now, view, one))
        });
        let chosen = candidates.filter_map(|id| Some((work(&id)?, id))).max()?.1;
        if let Some(candidates) = round.candidates.get_mut(&chosen.task.job) {
            candidates.retain(|id| *id != chosen);
        }
        round.claims.add(rank.2, worker);
        Some(chosen)
    }

    /// Whether the attempt runs, has no pending preemption, and is preemptable under the bounds.
    fn is_candidate(&self, now: Time, view: &ClusterView<'_>, attempt: &Attempt) -> bool {
        if attempt.state() != AttemptState::Running || view.request(attempt.id()).is_some() {
            return false;
        }
        let task = attempt.id().task;
        let Some(history) = view.job(task.job).and_then(|job| job.history(task)) else {
            return false;
        };
        let first = history.first_launched.unwrap_or(attempt.launched());
        let reduce = RunningReduce {
            total: Ratio::whole(now.since(first).0),
            service: Ratio::whole((history.service + attempt.active_time(now)).0),
            progress: Ratio::new(
                i128::from(attempt.progress_millionths().unwrap_or_default()),
                1_000_000,
            ),
        };
        is_preemptable(&reduce, &self.bounds)
    }
}

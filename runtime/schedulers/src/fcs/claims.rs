//! Jobs that lack reduce slots: Algorithm 1 over the jobs that run.
//!
//! Owns which tasks may be preempted and which of them go first. Does not own the choice of jobs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use napreduce_engine::{
    Actions, Attempt, AttemptId, AttemptState, ClusterView, JobId, Preempt, Ratio, TaskKind, Time, WorkerId,
};

use crate::fcs::estimates::{RunningReduce, is_preemptable};
use crate::fcs::jobs::RankKey;
use crate::fcs::policy::Fcs;
use crate::larger::{LargerJob, select};

/// So many jobs, and so many preempted tasks of one, are looked at in one round: the next one looks again.
const LOOKS_MAX: usize = 32;

/// A round of taking slots.
struct Round<'a, 'b> {
    now: Time,
    view: &'a ClusterView<'b>,
    /// What may be preempted of each job that was looked at, the last to be preempted first.
    able: BTreeMap<JobId, Vec<AttemptId>>,
    taken: BTreeSet<AttemptId>,
}

impl Fcs {
    /// Takes slots for jobs that ask for more, and now and then for all that wait, from jobs with more work
    /// left.
    pub(super) fn take_slots(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        let everybody = now >= self.state.last_round + self.configuration.period();
        let asking = std::mem::take(&mut self.state.jobs.asking);
        if !everybody && asking.is_empty() {
            return;
        }
        let claimants: Vec<RankKey> = if everybody {
            self.state.last_round = now;
            self.state.jobs.waiting.iter().take(LOOKS_MAX).copied().collect()
        } else {
            let known = asking.iter().filter_map(|id| self.state.jobs.members.get(id)?.now);
            let mut places: Vec<RankKey> = known.map(|standing| standing.place).collect();
            places.sort_unstable();
            places
        };
        let on_hand = view.free_slots(TaskKind::Reduce) + view.freeing(TaskKind::Reduce);
        let mut free = on_hand.saturating_sub(self.state.jobs.promised);
        let mut round = Round { now, view, able: BTreeMap::new(), taken: BTreeSet::new() };
        for place in claimants {
            if self.state.jobs.running.last().is_none_or(|largest| largest.0 <= place.0) {
                return;
            }
            free -= self.claim(place, free, &mut round, actions);
        }
    }

    /// Takes slots for one job, and says how many of the free ones it counts on.
    fn claim(&self, place: RankKey, free: u32, round: &mut Round<'_, '_>, actions: &mut Actions) -> u32 {
        let Some(member) = self.state.jobs.members.get(&place.2) else { return 0 };
        let Some(standing) = member.now else { return 0 };
        let waiting = u32::try_from(member.preempted.len()).unwrap_or(u32::MAX).min(standing.eligible);
        let over = member.preempted.is_over(self.configuration.patience(self.state.workers));
        // A preempted task that is not out of patience can use a slot of its worker only.
        let anywhere = standing.eligible - waiting + u32::from(over);
        let demand = anywhere.saturating_sub(standing.promised);
        let lacking = demand.saturating_sub(free);
        let mut victims = Vec::new();
        if lacking > 0 {
            let larger = self.state.jobs.running.iter().rev().take_while(|job| job.0 > place.0);
            let running = larger.map(|job| LargerJob {
                id: job.2,
                remaining: job.0,
                tasks: self.able(job.2, round).len() as u32,
            });
            let chosen = select(&place.0, lacking, running);
            for (job, count) in chosen {
                let able = round
                    .able
                    .get_mut(&job)
                    .into_iter()
                    .flat_map(|able| able.split_off(able.len() - count as usize));
                victims.extend(able);
            }
        }
        let places = member.preempted.waiting().map(|(_, worker)| worker);
        let stopped =
            round.view.job(place.2).into_iter().flat_map(|job| job.suspended_attempts(TaskKind::Reduce));
        let places = places.take(LOOKS_MAX).chain(stopped.take(LOOKS_MAX).map(|(worker, _)| worker));
        victims.extend(places.filter_map(|worker| self.able_on(worker, place, round)).collect::<Vec<_>>());
        for attempt in victims {
            round.taken.insert(attempt);
            actions.preempt(Preempt {
                attempt,
                primitive: self.configuration.primitive,
                grace: self.configuration.grace,
                reason: format!("less is left of {} than of {}", place.2, attempt.task.job),
                beneficiary: Some(place.2),
            });
        }
        demand.min(free)
    }

    /// What may be preempted of a job; the last in the list goes first: the least progress, then the
    /// youngest.
    fn able<'r>(&self, job: JobId, round: &'r mut Round<'_, '_>) -> &'r [AttemptId] {
        let (now, view) = (round.now, round.view);
        round.able.entry(job).or_insert_with(|| {
            let attempts = view.job(job).into_iter().flat_map(|job| job.attempts_of_kind(TaskKind::Reduce));
            let attempts = attempts.filter_map(|id| view.attempt(id));
            let mut able: Vec<&Attempt> = attempts.filter(|one| self.may_take(now, view, one)).collect();
            able.sort_by_key(|one| {
                (Reverse(one.progress_millionths().unwrap_or_default()), one.launched(), one.id())
            });
            able.into_iter().map(Attempt::id).collect()
        })
    }

    /// An attempt on a worker, of the job with the most work left there, that may be preempted for one with
    /// less: a task of that one was preempted there and has no slot promised to go on in.
    fn able_on(&self, worker: WorkerId, place: RankKey, round: &mut Round<'_, '_>) -> Option<AttemptId> {
        let (now, view, kind) = (round.now, round.view, TaskKind::Reduce);
        let known = view.worker(worker)?;
        let reduces = || known.attempts().filter(|id| id.task.kind == kind);
        let for_it = |id: AttemptId| view.request(id).is_some_and(|open| open.beneficiary == Some(place.2));
        let promised = known.reservation_of(place.2, kind).is_some() || reduces().any(for_it);
        if promised
            || known.free(kind) > known.reserved(kind)
            || reduces().any(|id| round.taken.contains(&id))
        {
            return None;
        }
        let work = |id: &AttemptId| {
            let standing = self.state.jobs.members.get(&id.task.job)?.now?;
            Some(standing.place).filter(|other| other.0 > place.0)
        };
        let able = reduces().filter(|id| view.attempt(*id).is_some_and(|one| self.may_take(now, view, one)));
        let chosen = able.filter_map(|id| Some((work(&id)?, id))).max()?.1;
        if let Some(able) = round.able.get_mut(&chosen.task.job) {
            able.retain(|id| *id != chosen);
        }
        Some(chosen)
    }

    /// Whether the slot of an attempt may be taken: nobody asked for it, and the reduce may be preempted.
    fn may_take(&self, now: Time, view: &ClusterView<'_>, attempt: &Attempt) -> bool {
        if attempt.state() != AttemptState::Running || view.request(attempt.id()).is_some() {
            return false;
        }
        let task = attempt.id().task;
        let Some(history) = view.job(task.job).and_then(|job| job.history(task)) else { return false };
        let first = history.first_launched.unwrap_or(attempt.launched());
        let reduce = RunningReduce {
            total: Ratio::whole(now.since(first).0),
            service: Ratio::whole((history.service + attempt.active_time(now)).0),
            progress: Ratio::new(i128::from(attempt.progress_millionths().unwrap_or_default()), 1_000_000),
        };
        is_preemptable(&reduce, &self.bounds)
    }
}

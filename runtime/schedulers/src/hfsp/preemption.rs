//! Taking slots from larger jobs for those that lack them.
//!
//! Owns which attempts are stopped, and that no worker fills up with stopped ones. Does not own the rule by
//! which jobs give: that is in `victims`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use napreduce_engine::{
    Actions, Attempt, AttemptId, AttemptState, ClusterView, Job, JobId, Preempt, Primitive, Span, Time,
    Worker, WorkerId,
};

use crate::hfsp::configuration::HfspConfiguration;
use crate::hfsp::lane::Lane;
use crate::hfsp::ranking::Rank;
use crate::hfsp::victims::Mode;
use crate::larger::{LargerJob, select};

/// So many jobs are looked at in one round: the next one looks again.
const LOOKS_MAX: usize = 32;
/// And so many stopped attempts of one.
const PLACES_MAX: usize = 8;
/// So many jobs are asked for slots in one round, the largest.
const HOLDERS_MAX: usize = 128;
/// Of a job with more attempts than this, what they have done is no part of what is known of its size.
const EXACT_ATTEMPTS_MAX: u32 = 16;

/// A round of taking slots.
pub(super) struct Round<'a, 'b> {
    pub now: Time,
    pub view: &'a ClusterView<'b>,
    pub configuration: &'a HfspConfiguration,
    pub actions: &'a mut Actions,
    /// What was taken in this round, before anybody heard of it.
    taken: BTreeSet<AttemptId>,
    taken_of: BTreeMap<JobId, u32>,
    stopped_on: BTreeMap<WorkerId, u32>,
}

/// A job that lacks slots.
struct Claimant<'a> {
    job: &'a Job,
    turn: Rank,
    remaining: Span,
    lacking: u32,
}

impl<'a, 'b> Round<'a, 'b> {
    pub fn new(
        now: Time,
        view: &'a ClusterView<'b>,
        configuration: &'a HfspConfiguration,
        actions: &'a mut Actions,
    ) -> Round<'a, 'b> {
        let (taken, taken_of, stopped_on) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        Round { now, view, configuration, actions, taken, taken_of, stopped_on }
    }

    /// Asks for the slot of an attempt.
    fn take(&mut self, victim: &Attempt, claimant: &Claimant<'_>) {
        let id = victim.id();
        self.taken.insert(id);
        *self.taken_of.entry(id.task.job).or_default() += 1;
        *self.stopped_on.entry(victim.worker()).or_default() += 1;
        let (job, larger) = (claimant.job.id(), id.task.job);
        self.actions.preempt(Preempt {
            attempt: id,
            primitive: self.configuration.primitive,
            grace: self.configuration.grace,
            reason: format!("{job} goes before {larger}, of which more is left"),
            beneficiary: Some(job),
        });
    }

    /// Whether an attempt has a slot that nobody asked for yet.
    fn can_give(&self, attempt: &Attempt) -> bool {
        let state = attempt.state();
        attempt.holds_slot()
            && !matches!(
                state,
                AttemptState::Killing | AttemptState::Suspending | AttemptState::Checkpointing
            )
            && !attempt.is_spared(self.now)
            && self.view.request(attempt.id()).is_none()
            && !self.taken.contains(&attempt.id())
    }
}

impl Lane {
    /// Takes slots for jobs that lack them, in order, from jobs that come after them and are larger: at once
    /// for jobs that came, were measured or lost a slot, now and then for all.
    pub fn take_slots(&mut self, round: &mut Round<'_, '_>) {
        let asking = std::mem::take(&mut self.asking);
        let everybody = round.now >= self.last_round + round.configuration.update_interval;
        if round.configuration.primitive == Primitive::Wait || (asking.is_empty() && !everybody) {
            return;
        }
        let mut turns: Vec<Rank> = if everybody {
            self.last_round = round.now;
            self.waiting.iter().take(LOOKS_MAX).copied().collect()
        } else {
            Vec::new()
        };
        turns.extend(asking.iter().filter_map(|id| self.members.get(id)?.wish.turn));
        turns.sort_unstable();
        turns.dedup();
        let on_hand = round.view.free_slots(self.kind) + round.view.freeing(self.kind);
        let mut unclaimed = on_hand.saturating_sub(self.promised);
        for turn in turns {
            // Nobody who gives slots comes after this one, nor after any later one.
            if self.holders.last().is_none_or(|last| *last <= turn) {
                return;
            }
            let view = round.view;
            let (Some(member), Some(job)) = (self.members.get(&turn.job), view.job(turn.job)) else {
                continue;
            };
            let wish = member.wish;
            let lacking = (wish.eligible + wish.suspended).saturating_sub(wish.promised);
            let claimed = lacking.min(unclaimed);
            unclaimed -= claimed;
            if lacking > claimed && !member.is_endless() {
                let remaining = self.remaining(round, turn.job);
                if self.by_size.last().is_none_or(|(largest, ..)| *largest <= remaining) {
                    continue;
                }
                self.claim(Claimant { job, turn, remaining, lacking: lacking - claimed }, round);
            }
        }
    }

    fn claim(&mut self, mut claimant: Claimant<'_>, round: &mut Round<'_, '_>) {
        self.claim_to_resume(&mut claimant, round);
        let lacking = claimant.lacking.min(claimant.job.eligible_count(self.kind));
        let after = |job: &JobId| self.members[job].wish.turn.is_some_and(|turn| turn > claimant.turn);
        let larger = self.by_size.iter().rev().take(HOLDERS_MAX);
        let larger = larger.take_while(|(size, ..)| *size > claimant.remaining);
        let holders = larger.map(|(.., job)| *job).filter(after).map(|id| {
            let wish = self.members[&id].wish;
            let taken = round.taken_of.get(&id).copied().unwrap_or_default();
            let tasks = (wish.holding - wish.requested).saturating_sub(taken);
            LargerJob { id, remaining: self.remaining(round, id), tasks }
        });
        let holders = holders.filter(|holder| holder.remaining > claimant.remaining);
        for (job, count) in select(&claimant.remaining, lacking, holders) {
            self.stop_youngest(job, count, &claimant, round);
        }
    }

    /// Stopped tasks can go on where they are only: there, slots are taken from a larger job.
    fn claim_to_resume(&mut self, claimant: &mut Claimant<'_>, round: &mut Round<'_, '_>) {
        let view = round.view;
        for (place, _) in claimant.job.suspended_attempts(self.kind).take(PLACES_MAX) {
            let Some(worker) = view.worker(place).filter(|_| claimant.lacking > 0) else { continue };
            let promised = worker.reservation_of(claimant.job.id(), self.kind).is_some()
                || self.on(worker).any(|id| {
                    view.request(id).is_some_and(|open| open.beneficiary == Some(claimant.job.id()))
                });
            if promised || worker.free(self.kind) > worker.reserved(self.kind) {
                continue;
            }
            let gives = |id: &AttemptId| {
                let after = self.members.get(&id.task.job).filter(|member| {
                    member.trained && member.wish.turn.is_some_and(|turn| turn > claimant.turn)
                });
                after.is_some() && view.attempt(*id).is_some_and(|attempt| round.can_give(attempt))
            };
            let owners: BTreeSet<JobId> = self.on(worker).filter(gives).map(|id| id.task.job).collect();
            let sized = owners.into_iter().map(|job| (self.remaining(round, job), job));
            let Some((_, largest)) = sized.filter(|(size, _)| *size > claimant.remaining).max() else {
                continue;
            };
            let of_largest = self.on(worker).filter(|id| id.task.job == largest).filter(gives);
            let youngest =
                of_largest.filter_map(|id| view.attempt(id)).max_by_key(|one| (one.launched(), one.id()));
            if let Some(victim) = youngest
                && self.may_stop(victim.worker(), round)
            {
                round.take(victim, claimant);
                claimant.lacking -= 1;
            }
        }
    }

    /// Stops the attempts of a job that were launched last, where tasks may be stopped. If their work is kept,
    /// those go first whose slots are near the data of the claimant.
    fn stop_youngest(&mut self, job: JobId, count: u32, claimant: &Claimant<'_>, round: &mut Round<'_, '_>) {
        let view = round.view;
        let Some(known) = view.job(job) else { return };
        let all = known.attempts_of_kind(self.kind).filter_map(|id| view.attempt(id));
        // A slot where the tasks of the claimant failed would go back to the victim, and be taken again.
        let of_use = |attempt: &Attempt| claimant.job.next_task(self.kind, attempt.worker()).is_some();
        let able = all.filter(|attempt| round.can_give(attempt) && of_use(attempt));
        let mut able: Vec<&Attempt> = able.collect();
        let is_near = |attempt: &Attempt| claimant.job.next_local(self.kind, attempt.worker()).is_some();
        let keeps_work = round.configuration.primitive != Primitive::Kill;
        able.sort_by_cached_key(|attempt| {
            let (far, age) = (!is_near(attempt), Reverse(attempt.launched()));
            (far && keeps_work, age, far, Reverse(attempt.id()))
        });
        let mut left = count;
        for victim in able.into_iter().take(count as usize + LOOKS_MAX) {
            if left == 0 {
                return;
            }
            if self.may_stop(victim.worker(), round) {
                round.take(victim, claimant);
                left -= 1;
            }
        }
    }

    /// Whether another task may be stopped on a worker: not with many of them there, or in all, until there
    /// are few.
    fn may_stop(&mut self, place: WorkerId, round: &Round<'_, '_>) -> bool {
        let configuration = round.configuration;
        if configuration.primitive != Primitive::Suspend {
            return true;
        }
        let Some(worker) = round.view.worker(place) else { return false };
        let stopped = self
            .on(worker)
            .filter_map(|id| round.view.attempt(id))
            .filter(|attempt| matches!(attempt.state(), AttemptState::Suspended | AttemptState::Suspending));
        let stopped = stopped.count() as u32 + round.stopped_on.get(&place).copied().unwrap_or_default();
        let slots = worker.slots(self.kind);
        let high = configuration.suspended_high.unwrap_or(slots.saturating_mul(2));
        let low = configuration.suspended_low.unwrap_or(slots).min(high.saturating_sub(1));
        let here = self.hysteresis.entry(place).or_default().decide(stopped, high, low);
        let Some(high) = configuration.cluster_suspended_high else { return here == Mode::Eager };
        let low = configuration.cluster_suspended_low.unwrap_or(high / 2).min(high.saturating_sub(1));
        let stopping = round.view.freeing(self.kind) + round.taken.len() as u32;
        let everywhere = self.cluster_hysteresis.decide(self.suspended + stopping, high, low);
        here == Mode::Eager && everywhere == Mode::Eager
    }

    /// The attempts of this kind on a worker.
    fn on<'w>(&self, worker: &'w Worker) -> impl Iterator<Item = AttemptId> + use<'w> {
        let kind = self.kind;
        worker.attempts().filter(move |id| id.task.kind == kind)
    }

    /// What is left of a job: its size, without what its attempts have done if there are few of them.
    fn remaining(&self, round: &Round<'_, '_>, id: JobId) -> Span {
        let Some((member, job)) = self.members.get(&id).zip(round.view.job(id)) else {
            return Span::default();
        };
        if member.wish.holding + member.wish.suspended > EXACT_ATTEMPTS_MAX {
            return member.wish.size;
        }
        let attempts = job.attempts_of_kind(self.kind).filter_map(|id| round.view.attempt(id));
        let done = attempts.map(|attempt| attempt.active_time(round.now).min(member.task_time).0).sum();
        Span(member.wish.size.0.saturating_sub(done))
    }
}

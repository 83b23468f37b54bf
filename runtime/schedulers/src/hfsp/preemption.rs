//! Preemption: takes slots from larger jobs for jobs that lack them, within the limits on suspended tasks.

use std::cmp::Reverse;

use napreduce_engine::{
    Actions, Attempt, AttemptId, AttemptState, Claims, ClusterView, Job, JobId, Preempt, Primitive,
    SortedMap, SortedSet, Span, TaskKind, Time, Worker, WorkerId, sort_by_key,
};

use crate::hfsp::configuration::HfspConfiguration;
use crate::hfsp::hysteresis::Mode;
use crate::hfsp::lane::Lane;
use crate::hfsp::ranking::Rank;
use crate::larger::{LargerJob, select};

/// Limit on the claimants examined in one round. Later rounds continue.
const LOOKS_MAX: usize = 32;
/// Limit on the suspended attempts examined per claimant.
const PLACES_MAX: usize = 8;
/// Limit on the jobs asked for slots per claimant, largest first.
const HOLDERS_MAX: usize = 128;
/// Limit on the attempts of a job whose partial work is subtracted from its size.
const EXACT_ATTEMPTS_MAX: u32 = 16;

/// One preemption round.
pub(super) struct Round<'a, 'b> {
    pub now: Time,
    pub view: &'a ClusterView<'b>,
    pub configuration: &'a HfspConfiguration,
    pub actions: &'a mut Actions,
    /// The slots that claimants will use.
    claims: Claims<'a>,
    /// Victims of this round; the view does not show them yet.
    victims: SortedSet<AttemptId>,
    victims_of: SortedMap<JobId, u32>,
    victims_on: SortedMap<WorkerId, u32>,
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
        kind: &'a TaskKind,
        configuration: &'a HfspConfiguration,
        actions: &'a mut Actions,
    ) -> Round<'a, 'b> {
        Round {
            now,
            view,
            configuration,
            actions,
            claims: Claims::new(*view, std::slice::from_ref(kind)),
            victims: SortedSet::new(),
            victims_of: SortedMap::new(),
            victims_on: SortedMap::new(),
        }
    }

    /// Requests preemption of an attempt.
    fn preempt(&mut self, victim: &Attempt, claimant: &Claimant<'_>) {
        let id = victim.id();
        self.victims.insert(id);
        *self.victims_of.get_or_default(id.task.job) += 1;
        *self.victims_on.get_or_default(victim.worker()) += 1;
        let job = claimant.job.id();
        let larger = id.task.job;
        self.claims.add(job, victim.worker());
        self.actions.preempt(Preempt {
            attempt: id,
            primitive: self.configuration.primitive,
            grace: self.configuration.grace,
            reason: format!("{job} precedes {larger}, which has more remaining work"),
            beneficiary: Some(job),
        });
    }

    /// Whether an attempt holds a slot and has no pending preemption.
    fn can_give(&self, attempt: &Attempt) -> bool {
        let state = attempt.state();
        attempt.holds_slot()
            && !matches!(
                state,
                AttemptState::Killing | AttemptState::Suspending | AttemptState::Checkpointing
            )
            && !attempt.is_spared(self.now)
            && self.view.request(attempt.id()).is_none()
            && !self.victims.contains(&attempt.id())
    }
}

impl Lane {
    /// Preempts jobs of lower rank and larger size for jobs that lack slots: immediately for jobs that
    /// arrived, were measured or lost a slot, periodically for all.
    pub fn preempt_for_claimants(&mut self, round: &mut Round<'_, '_>) {
        let asking = std::mem::take(&mut self.asking);
        let is_due = round.now >= self.last_round + round.configuration.update_interval;
        if round.configuration.primitive == Primitive::Wait || (asking.is_empty() && !is_due) {
            return;
        }
        let mut turns: Vec<Rank> = if is_due {
            self.last_round = round.now;
            self.waiting.iter().take(LOOKS_MAX).copied().collect()
        } else {
            Vec::new()
        };
        turns.extend(
            asking
                .iter()
                .filter_map(|id| self.members.get(id)?.demand.turn),
        );
        turns.sort_unstable();
        turns.dedup();
        let available = round.view.free_slots(self.kind) + round.view.freeing(self.kind);
        let mut unclaimed = available.saturating_sub(self.promised);
        for turn in turns {
            // No job with preemptable slots ranks below this one or the later ones.
            if self.holders.last().is_none_or(|last| *last <= turn) {
                return;
            }
            let view = round.view;
            let (Some(member), Some(job)) = (self.members.get(&turn.job), view.job(turn.job))
            else {
                continue;
            };
            let demand = member.demand;
            let lacking = (demand.eligible + demand.suspended).saturating_sub(demand.promised);
            let claimed = lacking.min(unclaimed);
            unclaimed -= claimed;
            if lacking > claimed && !member.is_endless() {
                let remaining = self.remaining(round, turn.job);
                if self
                    .by_size
                    .last()
                    .is_none_or(|(largest, ..)| *largest <= remaining)
                {
                    continue;
                }
                self.claim(
                    Claimant {
                        job,
                        turn,
                        remaining,
                        lacking: lacking - claimed,
                    },
                    round,
                );
            }
        }
    }

    fn claim(&mut self, mut claimant: Claimant<'_>, round: &mut Round<'_, '_>) {
        self.claim_to_resume(&mut claimant, round);
        let lacking = claimant.lacking.min(claimant.job.eligible_count(self.kind));
        let after = |job: &JobId| {
            self.members[job]
                .demand
                .turn
                .is_some_and(|turn| turn > claimant.turn)
        };
        let larger = self.by_size.iter().rev().take(HOLDERS_MAX);
        let larger = larger.take_while(|(size, ..)| *size > claimant.remaining);
        let holders = larger.map(|(.., job)| *job).filter(after).map(|id| {
            let demand = self.members[&id].demand;
            let chosen = round.victims_of.get(&id).copied().unwrap_or_default();
            let tasks = (demand.holding - demand.requested).saturating_sub(chosen);
            LargerJob {
                id,
                remaining: self.remaining(round, id),
                tasks,
            }
        });
        let holders = holders.filter(|holder| holder.remaining > claimant.remaining);
        for (job, count) in select(&claimant.remaining, lacking, holders) {
            self.preempt_youngest(job, count, &claimant, round);
        }
    }

    /// Suspended tasks can resume on their own worker only, so slots are taken from larger jobs there.
    fn claim_to_resume(&mut self, claimant: &mut Claimant<'_>, round: &mut Round<'_, '_>) {
        let view = round.view;
        for (place, _) in claimant.job.suspended_attempts(self.kind).take(PLACES_MAX) {
            let Some(worker) = view.worker(place).filter(|_| claimant.lacking > 0) else {
                continue;
            };
            let promised = worker
                .reservation_of(claimant.job.id(), self.kind)
                .is_some()
                || self.attempts_on(worker).any(|id| {
                    view.request(id)
                        .is_some_and(|open| open.beneficiary == Some(claimant.job.id()))
                });
            let wants = round.claims.wants_on(claimant.job.id(), place);
            if promised || !wants || worker.free(self.kind) > worker.reserved(self.kind) {
                continue;
            }
            let gives = |id: &AttemptId| {
                let after = self.members.get(&id.task.job).filter(|member| {
                    member.trained && member.demand.turn.is_some_and(|turn| turn > claimant.turn)
                });
                after.is_some()
                    && view
                        .attempt(*id)
                        .is_some_and(|attempt| round.can_give(attempt))
            };
            let owners: SortedSet<JobId> = self
                .attempts_on(worker)
                .filter(gives)
                .map(|id| id.task.job)
                .collect();
            let sized = owners
                .into_iter()
                .map(|job| (self.remaining(round, job), job));
            let Some((_, largest)) = sized.filter(|(size, _)| *size > claimant.remaining).max()
            else {
                continue;
            };
            let of_largest = self
                .attempts_on(worker)
                .filter(|id| id.task.job == largest)
                .filter(gives);
            let youngest = of_largest
                .filter_map(|id| view.attempt(id))
                .max_by_key(|one| (one.launched(), one.id()));
            if let Some(victim) = youngest
                && self.may_suspend(victim.worker(), round)
            {
                round.preempt(victim, claimant);
                claimant.lacking -= 1;
            }
        }
    }

    /// Preempts the youngest attempts of a job. If the primitive keeps their work, attempts near the
    /// claimant's data go first.
    fn preempt_youngest(
        &mut self,
        job: JobId,
        count: u32,
        claimant: &Claimant<'_>,
        round: &mut Round<'_, '_>,
    ) {
        let view = round.view;
        let Some(known) = view.job(job) else { return };
        let all = known
            .attempts_of_kind(self.kind)
            .filter_map(|id| view.attempt(id));
        // Skip workers that the claimant avoids: the slot would return to the victim and be preempted again.
        let is_usable = |attempt: &Attempt| {
            claimant
                .job
                .next_task(self.kind, attempt.worker())
                .is_some()
        };
        let candidates = all.filter(|attempt| round.can_give(attempt) && is_usable(attempt));
        let mut candidates: Vec<&Attempt> = candidates.collect();
        let is_near = |attempt: &Attempt| {
            claimant
                .job
                .next_local(self.kind, attempt.worker())
                .is_some()
        };
        let keeps_work = round.configuration.primitive != Primitive::Kill;
        sort_by_key(&mut candidates, |attempt| {
            let far = !is_near(attempt);
            let age = Reverse(attempt.launched());
            (far && keeps_work, age, far, Reverse(attempt.id()))
        });
        let mut left = count;
        for victim in candidates.into_iter().take(count as usize + LOOKS_MAX) {
            if left == 0 {
                return;
            }
            let wants = round.claims.wants_on(claimant.job.id(), victim.worker());
            if wants && self.may_suspend(victim.worker(), round) {
                round.preempt(victim, claimant);
                left -= 1;
            }
        }
    }

    /// Whether another task may be suspended on a worker, within the limits per worker and cluster. Other
    /// primitives are not limited.
    fn may_suspend(&mut self, place: WorkerId, round: &Round<'_, '_>) -> bool {
        let configuration = round.configuration;
        if configuration.primitive != Primitive::Suspend {
            return true;
        }
        let Some(worker) = round.view.worker(place) else {
            return false;
        };
        let suspended = self
            .attempts_on(worker)
            .filter_map(|id| round.view.attempt(id))
            .filter(|attempt| {
                matches!(
                    attempt.state(),
                    AttemptState::Suspended | AttemptState::Suspending
                )
            });
        let suspended =
            suspended.count() as u32 + round.victims_on.get(&place).copied().unwrap_or_default();
        let slots = worker.slots(self.kind);
        let high = configuration
            .suspended_high
            .unwrap_or(slots.saturating_mul(2));
        let low = configuration
            .suspended_low
            .unwrap_or(slots)
            .min(high.saturating_sub(1));
        let here = self
            .hysteresis
            .get_or_default(place)
            .decide(suspended, high, low);
        let Some(high) = configuration.cluster_suspended_high else {
            return here == Mode::Eager;
        };
        let low = configuration
            .cluster_suspended_low
            .unwrap_or(high / 2)
            .min(high.saturating_sub(1));
        let suspending = round.view.freeing(self.kind) + round.victims.len() as u32;
        let everywhere = self
            .cluster_hysteresis
            .decide(self.suspended + suspending, high, low);
        here == Mode::Eager && everywhere == Mode::Eager
    }

    /// Returns the attempts of this kind on a worker.
    fn attempts_on<'w>(&self, worker: &'w Worker) -> impl Iterator<Item = AttemptId> + use<'w> {
        let kind = self.kind;
        worker.attempts().filter(move |id| id.task.kind == kind)
    }

    /// Returns the remaining work of a job: its size minus the work of its attempts, unless there are many of
    /// them.
    fn remaining(&self, round: &Round<'_, '_>, id: JobId) -> Span {
        let Some((member, job)) = self.members.get(&id).zip(round.view.job(id)) else {
            return Span::default();
        };
        if member.demand.holding + member.demand.suspended > EXACT_ATTEMPTS_MAX {
            return member.demand.size;
        }
        let attempts = job
            .attempts_of_kind(self.kind)
            .filter_map(|id| round.view.attempt(id));
        let done = attempts
            .map(|attempt| attempt.active_time(round.now).min(member.task_time).0)
            .sum();
        Span(member.demand.size.0.saturating_sub(done))
    }
}

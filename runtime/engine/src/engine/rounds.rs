//! Scheduling rounds: offers slots to the scheduler in order, carries out its actions, and manages the
//! timers.

use std::borrow::Cow;
use std::cmp::Reverse;

use crate::cluster::{Cluster, ClusterView, Deadline, OfferOrder};
use crate::effect::Effect;
use crate::engine::timers::PutOff;
use crate::engine::{Engine, Rules};
use crate::event::Event;
use crate::ids::{TaskKind, WorkerId};
use crate::refusal::ActionRefusal;
use crate::scheduler::{Action, Actions, Offer};
use crate::time::{Span, Time};

/// The delay of a wake-up that a policy requests for a past time, or repeatedly without effect: prevents a
/// busy loop of the driver.
const PUT_OFF: Span = Span::from_millis(100);

impl Engine {
    /// Offers every free slot that some job wants, then calls the policy once without an offer.
    pub(super) fn schedule(&mut self) {
        loop {
            let held = self.rules.cluster.slots.held();
            for kind in TaskKind::ALL {
                self.offer_slots(kind);
            }
            // A shared slot that was withheld from a map in favor of a reduce may still go to a map.
            if !self.rules.cluster.shares_slots || self.rules.cluster.slots.held() == held {
                break;
            }
        }
        self.withdraw_surplus();
        self.ask(None);
    }

    /// Offers the free slots of a kind one at a time, starting on the worker with the most. A worker whose
    /// slot was taken is offered again later in the order, with one slot less; one whose slot was declined is
    /// not.
    fn offer_slots(&mut self, kind: TaskKind) {
        let mut offered: Option<OfferOrder> = None;
        self.declined_kind = false;
        while self.rules.cluster.demand.launchable(kind) > 0 && !self.declined_kind {
            let Some(next) = self.rules.cluster.slots.free(kind).next(offered) else {
                return;
            };
            offered = Some(next);
            self.offer_worker(kind, next.1);
        }
        self.offer_where_suspended(kind, offered);
    }

    /// Offers slots on workers with suspended attempts, for use when nothing can be launched. Skips workers
    /// up to `offered` in the order, which were offered already.
    fn offer_where_suspended(&mut self, kind: TaskKind, offered: Option<OfferOrder>) {
        if self.declined_kind || self.rules.cluster.suspended.is_empty(kind) {
            return;
        }
        let workers = self.rules.cluster.suspended.workers(kind);
        let mut there: Vec<OfferOrder> = workers
            .map(|id| (Reverse(self.rules.cluster.workers[&id].free(kind)), id))
            .collect();
        there.sort_unstable();
        for (free, worker) in there {
            let new = offered.is_none_or(|last| (free, worker) > last);
            let mut left = if new { free.0 } else { 0 };
            while left > 0
                && self.rules.cluster.suspended.is_on(kind, worker)
                && !self.declined_kind
            {
                let listed = self
                    .rules
                    .cluster
                    .slots
                    .free(kind)
                    .contains(&(Reverse(left), worker));
                if !listed {
                    break;
                }
                self.offer_worker(kind, worker);
                let after = self.rules.cluster.workers[&worker].free(kind);
                left = if after < left { after } else { 0 };
            }
        }
    }

    /// Offers a worker's free slots: each reserved one to its job, and one unreserved one to all jobs.
    fn offer_worker(&mut self, kind: TaskKind, worker: WorkerId) {
        let known = &self.rules.cluster.workers[&worker];
        if known.reservations().is_empty() {
            return self.ask(Some(Offer {
                worker,
                kind,
                reserved_for: None,
            }));
        }
        let kept: Vec<_> = known
            .reservations()
            .iter()
            .filter(|kept| kept.kind == kind)
            .copied()
            .collect();
        for reservation in kept {
            let job = reservation.job;
            if self.rules.cluster.workers[&worker]
                .reservation_of(job, kind)
                .is_some()
            {
                self.ask(Some(Offer {
                    worker,
                    kind,
                    reserved_for: Some(job),
                }));
            }
        }
        let known = &self.rules.cluster.workers[&worker];
        if known.free(kind) > known.reserved(kind) {
            self.ask(Some(Offer {
                worker,
                kind,
                reserved_for: None,
            }));
        }
    }

    fn ask(&mut self, offer: Option<Offer>) {
        if let Some(offer) = offer {
            self.rules
                .cluster
                .worker_mut(offer.worker)
                .set_declined(offer.kind, None);
        }
        self.notify_policy();
        let mut actions = Actions::new(offer, std::mem::take(&mut self.actions));
        self.scheduler.schedule(
            self.rules.cluster.now,
            &ClusterView::new(&self.rules.cluster),
            &mut actions,
        );
        let mut taken = actions.into_taken();
        for action in taken.drain(..) {
            if let Err(why) = self.carry_out(&action, offer) {
                assert!(
                    !self.rules.settings.strict,
                    "illegal action {action:?}: {why}"
                );
                self.rules.cluster.tally.illegal_actions += 1;
                self.rules
                    .warn(format!("ignored {action:?} of the scheduler: {why}"));
            }
        }
        self.actions = taken;
    }

    /// Carries out one action; fails if it is not possible.
    fn carry_out(&mut self, action: &Action, offer: Option<Offer>) -> Result<(), ActionRefusal> {
        match *action {
            Action::Launch { task, worker, from } => self.rules.launch(task, worker, from),
            Action::Resume { attempt } => self.rules.resume(attempt),
            Action::Preempt(ref wish) => self.rules.preempt(wish),
            Action::Release(ref wish) => self.rules.release(wish),
            Action::Reserve {
                worker,
                kind,
                job,
                until,
            } => self.rules.cluster.keep_slot(worker, kind, job, until),
            Action::Warn { ref message } => {
                self.rules.warn(message.clone());
                Ok(())
            }
            Action::Submit { ref name } => {
                self.rules
                    .effects
                    .push(Effect::SubmitWanted { name: name.clone() });
                Ok(())
            }
            Action::Cancel { attempt } => self.rules.cancel(attempt),
            Action::WakeAt(time) => {
                if let Some(time) = self.rules.timely(Some(time)) {
                    self.rules.timers.add_wake(time);
                }
                Ok(())
            }
            Action::Decline { ref reason } => {
                self.rules.cluster.note_declined(offer, reason.clone())
            }
            Action::DeclineKind { ref reason } => {
                self.declined_kind = true;
                self.rules.cluster.note_declined(offer, reason.clone())
            }
        }
    }

    /// Requests the next wake-up from the driver, unless it is set already.
    pub(super) fn schedule_wakeup(&mut self) {
        let now = self.rules.cluster.now;
        let policy = self.scheduler.next_wakeup(now);
        let policy = self.rules.timely(policy);
        let due = self.rules.cluster.deadlines.next();
        if let Some(next) = self.rules.timers.arm(now, [policy, due]) {
            self.rules.effects.push(Effect::WakeAt(next));
        }
    }
}

impl Rules {
    /// Handles due deadlines: expired graces and reservations, and workers that get work again.
    pub(super) fn expire_deadlines(&mut self) {
        let now = self.cluster.now;
        while let Some(deadline) = self.cluster.deadlines.take_due(now) {
            match deadline {
                Deadline::Grace(attempt) => self.grace_over(attempt),
                Deadline::Earliest(attempt) => self.advance_request(attempt),
                Deadline::Overdue(attempt) => self.wait_overran(attempt),
                Deadline::Excluded(worker) => self.cluster.exclusion_over(worker),
                Deadline::AvoidanceOver(job) => self.cluster.avoidance_over(job),
                Deadline::Drained(worker) => self.saving_over(worker),
                Deadline::Reservation(worker) => {
                    self.cluster
                        .drop_reservations(worker, |_, kept| kept.until <= now);
                }
            }
        }
        self.timers.expire(now);
    }

    /// Counts consecutive wake-ups that had no effect and came without other events.
    pub(super) fn count_idle_wakeup(&mut self, events: &[Event]) {
        let idle = self.effects.is_empty() && events.iter().all(|event| *event == Event::Woken);
        self.timers.count_idle(idle);
    }

    /// Returns the wake-up time that a policy requests. It is delayed, with a warning, if it has passed or if
    /// many wake-ups in quick succession had no effect, so that a driver does not spin.
    fn timely(&mut self, wanted: Option<Time>) -> Option<Time> {
        let wanted = wanted?;
        let now = self.cluster.now;
        let Some(put_off) = self.timers.put_off(wanted, now) else {
            return Some(wanted);
        };
        let why = match put_off {
            PutOff::Spinning => "repeatedly without effect",
            PutOff::Past => "which is not in the future",
        };
        if self.cluster.tally.wakes_put_off == 0 || matches!(put_off, PutOff::Spinning) {
            self.warn(format!(
                "the scheduler requested a wake-up at {wanted}, {why}; delayed by {}",
                PUT_OFF.to_text()
            ));
        }
        self.cluster.tally.wakes_put_off += 1;
        Some(now + PUT_OFF)
    }
}

impl Cluster {
    fn note_declined(
        &mut self,
        offer: Option<Offer>,
        reason: Cow<'static, str>,
    ) -> Result<(), ActionRefusal> {
        let offer = offer.ok_or(ActionRefusal::NoOffer)?;
        self.worker_mut(offer.worker)
            .set_declined(offer.kind, Some(reason));
        self.tally.slots_declined += 1;
        Ok(())
    }
}

//! Requests to preempt, from the policy's request to the free slot: their life cycle (see `preemption`),
//! their orders, their grace, and the reservation of the freed slot.

use crate::cluster::{Cluster, Job, Planned, Reservation, UnusedSlot};
use crate::effect::{Order, Record};
use crate::engine::choices::Choice;
use crate::engine::{Engine, Rules};
use crate::ids::{AttemptId, JobId, TaskKind, WorkerId};
use crate::preemption::{CostEstimate, Lapsed, PreemptRequest, Primitive, RequestState, Requester};
use crate::primitive_choice::PrimitiveChoice;
use crate::refusal::ActionRefusal;
use crate::scheduler::Preempt;
use crate::settings::{EngineSettings, PreemptionSettings};
use crate::states::{AttemptInput, AttemptState, TaskState, WorkerState};
use crate::time::Span;

impl Engine {
    /// Withdraws requests for jobs that got other slots meanwhile and need fewer than they are promised, the
    /// latest first. Orders that were sent stand.
    pub(super) fn withdraw_surplus(&mut self) {
        self.notify_policy();
        for job in std::mem::take(&mut self.promised) {
            while let Some(id) = self.rules.cluster.surplus_request(job) {
                self.rules
                    .close_unordered(id, &format!("{job} needs no more slots"));
            }
        }
    }
}

impl Rules {
    /// Opens a request of the policy; fails if it is not possible. A repeated request has no effect while the
    /// first is open.
    pub(super) fn preempt(&mut self, wish: &Preempt) -> Result<(), ActionRefusal> {
        let Preempt {
            attempt: id,
            primitive: asked,
            grace,
            ref reason,
            beneficiary,
        } = *wish;
        let attempt = self
            .cluster
            .attempts
            .get(&id)
            .ok_or(ActionRefusal::NotLive(id))?;
        if attempt.is_master || self.cluster.requests.contains(&id) {
            return Ok(());
        }
        if attempt.state == AttemptState::Killing {
            return Err(ActionRefusal::BeingKilled(id));
        }
        if attempt.state == AttemptState::Suspended && asked == Primitive::Checkpoint {
            self.give_up(id, asked, Requester::Policy, reason.clone());
            return Ok(());
        }
        if !attempt.holds_slot && asked != Primitive::Kill {
            return Err(ActionRefusal::HoldsNoSlot(id));
        }
        if beneficiary == Some(id.task.job) {
            self.cluster.tally.requests_refused += 1;
            return Err(ActionRefusal::OwnJob(id));
        }
        if attempt.holds_slot && !self.cluster.workers[&attempt.worker].takes_attempts() {
            self.cluster.tally.requests_refused += 1;
            return Ok(());
        }
        if let Some(job) = beneficiary
            && self.cluster.active_job(job).is_none()
        {
            return Err(ActionRefusal::BeneficiaryEnded { attempt: id, job });
        }
        if !self.cluster.is_of_use(id, beneficiary) {
            self.cluster.tally.requests_useless += 1;
            return Ok(());
        }
        let now = self.cluster.now;
        let request = PreemptRequest::new(id, asked, Requester::Policy, reason.clone(), now);
        self.choose(PreemptRequest {
            grace,
            asked_grace: grace,
            beneficiary,
            ..request
        });
        Ok(())
    }

    /// Opens a request of the policy with the primitive that the settings choose. A victim that was already
    /// waited for is assumed to need at least as long again.
    fn choose(&mut self, wish: PreemptRequest) {
        let PreemptRequest {
            attempt: id,
            asked,
            asked_grace,
            beneficiary,
            waited,
            ..
        } = wish;
        let attempt = &self.cluster.attempts[&id];
        let settings = &self.settings.preemption;
        let task = self.cluster.task(id.task);
        let taken_enough = task.why_taken_enough(&settings.limits).is_some();
        let chooses = settings.chooses_by_cost() && attempt.holds_slot && !taken_enough;
        let chosen = if chooses {
            settings.cheapest(&self.cluster, attempt, beneficiary, waited)
        } else {
            None
        };
        let choice = match chosen {
            Some((cheapest, why)) => Choice {
                primitive: cheapest.primitive,
                why: Some(why),
                estimate: Some(cheapest),
                fallback: None,
            },
            None => settings.primitive_for(&self.cluster, attempt, asked, waited),
        };
        let Choice {
            primitive,
            why: mut instead,
            estimate,
            fallback,
        } = choice;
        let earliest = settings
            .earliest_for(&self.cluster, attempt, primitive)
            .map(|(at, why)| {
                instead = Some(format!("{}{why}", prefix(instead.take())));
                at
            });
        let counts = &mut self.cluster.tally.fallbacks;
        if let Some(fallback) = fallback {
            counts.add(fallback);
        }
        counts.delayed += u64::from(earliest.is_some());
        // The grace belongs to the requested primitive: a victim that may finish instead is not killed after
        // it, and a kill that replaces a slower primitive does not wait.
        let waits = self.settings.preemption.primitive == Some(PrimitiveChoice::Wait);
        let same = primitive == asked
            || (waits && primitive == Primitive::Wait)
            || matches!(primitive, Primitive::Suspend | Primitive::Checkpoint);
        let grace = asked_grace.filter(|_| same);
        if chooses {
            self.cluster.costs.add_choice(id.task.kind, primitive);
        }
        let reason = instead.map_or_else(
            || wish.reason.clone(),
            |why| format!("{} ({why})", wish.reason),
        );
        self.open_request(PreemptRequest {
            primitive,
            earliest,
            grace,
            reason,
            estimate,
            ..wish
        });
    }

    /// Decides again about an attempt that was allowed to finish and is overdue. It may be allowed to finish
    /// again, with the time already waited as the new estimate, so the decisions become rarer. A wait that
    /// ends in a kill has a fixed end already.
    pub(super) fn wait_overran(&mut self, id: AttemptId) {
        let now = self.cluster.now;
        let Some(before) = self.cluster.requests.get(&id) else {
            return;
        };
        let attempt = &self.cluster.attempts[&id];
        let may = before.state == RequestState::Created;
        let is_due = may && before.overdue().is_some_and(|overdue| overdue <= now);
        let stops = !attempt.holds_slot || attempt.state == AttemptState::Killing;
        if !is_due || stops || self.settings.preemption.killed_at(before).is_some() {
            return;
        }
        let wants = |job: &Job| job.wants_on(id.task.kind, attempt.worker);
        let wanted = before
            .beneficiary
            .is_none_or(|job| self.cluster.jobs.get(&job).is_some_and(wants));
        let Some(before) = self.cluster.remove_request(id, &self.settings.preemption) else {
            return;
        };
        let waited = now.since(before.begins());
        let expected = before.estimate.map_or(Span(0), |one| one.free);
        if !wanted || self.cluster.job(id.task.job).is_committing(id) {
            let estimate = before.estimate.map(|one| CostEstimate {
                free: waited,
                ..one
            });
            let request = PreemptRequest {
                created: now,
                estimate,
                ..before
            };
            return self.cluster.add_request(request, &self.settings.preemption);
        }
        let why = before.reason_before_overrun.unwrap_or(before.reason);
        let reason = format!(
            "{why}; waited for {}, and {} were expected",
            waited.rounded(),
            expected.rounded()
        );
        let reason_before_overrun = Some(why);
        let request = PreemptRequest {
            reason,
            reason_before_overrun,
            ..before
        };
        self.choose(PreemptRequest {
            created: now,
            earliest: None,
            waited,
            ..request
        });
    }

    /// Records a request and sends its order if that is possible now.
    pub(super) fn open_request(&mut self, request: PreemptRequest) {
        let PreemptRequest {
            attempt,
            primitive,
            asked,
            by,
            beneficiary,
            ..
        } = request;
        let reason = request.reason.clone();
        self.cluster.add_request(request, &self.settings.preemption);
        self.record(Record::PreemptRequested {
            attempt,
            primitive,
            asked,
            by,
            beneficiary,
            reason,
        });
        self.advance_request(attempt);
    }

    /// Withdraws a request of the policy, which may open another one even if the order was sent; fails if no
    /// request is open. For other requesters, only the promise is withdrawn.
    pub(super) fn cancel(&mut self, id: AttemptId) -> Result<(), ActionRefusal> {
        let request = self
            .cluster
            .requests
            .get(&id)
            .ok_or(ActionRefusal::NoRequest(id))?;
        if request.by == Requester::Policy && request.state != RequestState::Created {
            self.cluster.remove_request(id, &self.settings.preemption);
            self.cluster.tally.requests_cancelled += 1;
        } else {
            self.withdraw(id, "the scheduler withdrew the request");
        }
        Ok(())
    }

    /// Ends a request that nobody needs any more: the attempt keeps its slot if the policy asked for it and the
    /// order was not sent yet. Otherwise the order stands, and the freed slot is promised to nobody.
    fn withdraw(&mut self, id: AttemptId, reason: &str) {
        let Some(request) = self.cluster.requests.get(&id) else {
            return;
        };
        if request.by == Requester::Policy && request.state == RequestState::Created {
            self.close_unordered(id, reason);
        } else {
            self.cluster.drop_beneficiary(id, reason);
        }
    }

    /// Closes a request whose order was not sent; the attempt keeps its slot.
    pub(super) fn close_unordered(&mut self, id: AttemptId, reason: &str) {
        if self
            .cluster
            .remove_request(id, &self.settings.preemption)
            .is_some()
        {
            self.cluster.tally.requests_cancelled += 1;
            self.record(Record::PreemptWithdrawn {
                attempt: id,
                reason: reason.to_owned(),
            });
        }
    }

    /// Sends the order of a request if the state of the attempt allows it: not before its process has
    /// connected, and never while it commits, which is one short rename.
    pub(super) fn advance_request(&mut self, id: AttemptId) {
        let Some(request) = self.cluster.requests.get(&id) else {
            return;
        };
        let primitive = request.primitive;
        let begins = request.begins();
        let grace = request.grace;
        let now = self.cluster.now;
        if request.state != RequestState::Created
            || now < begins
            || self.cluster.job(id.task.job).is_committing(id)
        {
            return;
        }
        if self.cluster.put_off_spared(id, &self.settings.preemption) {
            return;
        }
        let attempt = self.cluster.attempt_mut(id);
        let state = attempt.state;
        let worker = attempt.worker;
        // Other attempts may have been suspended there since the request.
        if (primitive, state) == (Primitive::Suspend, AttemptState::Running)
            && let Some(why) =
                self.cluster.workers[&worker].why_full(self.settings.preemption.suspended_max)
        {
            let message = format!("{id} cannot be suspended and continues: {why}");
            return self.fall_back(id, &why, message);
        }
        let grace_over = now >= begins + grace.unwrap_or_default();
        let ordered = match (primitive, state) {
            (Primitive::Kill, _) if grace_over => self.order_kill(id),
            (Primitive::Suspend, AttemptState::Running) => self.order(
                id,
                AttemptInput::SuspendOrdered,
                Order::Suspend { attempt: id },
            ),
            (Primitive::Checkpoint, AttemptState::Running) => self.order(
                id,
                AttemptInput::CheckpointOrdered,
                Order::Checkpoint { attempt: id },
            ),
            // The order of a withdrawn request is still in progress.
            (Primitive::Suspend, AttemptState::Suspending) => true,
            (Primitive::Checkpoint, AttemptState::Checkpointing) => true,
            _ => false,
        };
        if ordered {
            self.cluster.requests.advance(&id, RequestState::Ordered);
        }
    }

    /// Ends the grace of a request: the attempt is killed, regardless of the primitive.
    pub(super) fn grace_over(&mut self, id: AttemptId) {
        let Some(request) = self.cluster.requests.get(&id) else {
            return;
        };
        if request.primitive == Primitive::Kill {
            self.advance_request(id);
        } else if !self.cluster.job(id.task.job).is_committing(id) && self.order_kill(id) {
            self.cluster.requests.advance(&id, RequestState::Forced);
        }
    }

    /// Kills an attempt for a reason other than a request to preempt; the first reason is kept.
    pub(super) fn kill(&mut self, id: AttemptId, reason: String) {
        if self.order_kill(id) {
            self.cluster.attempt_mut(id).kill_reason = Some(reason.into());
        }
    }

    /// Orders a kill; returns false if one is already ordered.
    pub(super) fn order_kill(&mut self, id: AttemptId) -> bool {
        let attempt = self.cluster.attempt_mut(id);
        if attempt.state == AttemptState::Killing {
            return false;
        }
        let worker = attempt.worker;
        if attempt.state == AttemptState::Suspended {
            attempt.waits_since = None;
            self.cluster.list_suspended(id, worker, false);
            self.cluster.refresh(id.task.job);
        }
        self.order(id, AttemptInput::KillOrdered, Order::Kill { attempt: id })
    }

    /// Moves an attempt to the state of a pending order and sends the order.
    pub(super) fn order(&mut self, id: AttemptId, input: AttemptInput, order: Order) -> bool {
        let possible = self.step(id, input).is_some();
        if possible {
            let now = self.cluster.now;
            let attempt = self.cluster.attempt_mut(id);
            attempt.ordered = now;
            let worker = attempt.worker;
            self.send(worker, order);
        }
        possible
    }

    /// Records the slots that were freed for jobs which did not use them.
    pub(super) fn record_unused(&mut self) {
        for slot in std::mem::take(&mut self.cluster.unused) {
            let UnusedSlot {
                freed,
                job,
                kind,
                worker,
                reason,
            } = slot;
            if !self.cluster.jobs.contains_key(&freed.task.job) {
                continue;
            }
            let reason = reason.unwrap_or_else(|| self.cluster.why_unused(job, kind, worker));
            self.cluster.tally.slots_unused += 1;
            self.record(Record::SlotUnused { freed, job, reason });
        }
    }

    /// Withdraws the requests for a job that wants no slots any more, for this reason.
    pub(super) fn withdraw_requests_for(&mut self, job: JobId, reason: &str) {
        let Some(known) = self.cluster.jobs.get(&job) else {
            return;
        };
        if TaskKind::ALL
            .iter()
            .all(|kind| known.slots.promised(*kind) == 0)
        {
            return;
        }
        let requests = self.cluster.requests.iter();
        let for_it = requests.filter(|request| request.beneficiary == Some(job));
        let victims: Vec<AttemptId> = for_it.map(|request| request.attempt).collect();
        for id in victims {
            self.withdraw(id, reason);
        }
    }

    /// Drops the reservations on a worker that gets no more attempts, and withdraws the requests of the policy
    /// there, since no job can use the slots.
    pub(super) fn promise_no_slots_of(&mut self, worker: WorkerId) {
        self.cluster.drop_reservations(worker, |_, _| true);
        let attempts: Vec<AttemptId> = self.cluster.workers[&worker].attempts().collect();
        for id in attempts {
            let Some(request) = self.cluster.requests.get(&id) else {
                continue;
            };
            if request.by == Requester::Policy {
                self.withdraw(id, &format!("{worker} takes no attempts any more"));
            }
        }
    }
}

impl Cluster {
    /// Returns whether the beneficiary of a request, if there is one, will use the slot of an attempt.
    pub(super) fn is_of_use(&self, id: AttemptId, beneficiary: Option<JobId>) -> bool {
        let attempt = &self.attempts[&id];
        let Some(job) = beneficiary.filter(|_| attempt.holds_slot) else {
            return true;
        };
        let kinds = if self.shares_slots {
            &TaskKind::ALL[..]
        } else {
            &[id.task.kind][..]
        };
        self.will_use(self.job(job), kinds, attempt.worker, &Planned::default())
    }

    /// Delays a policy's request for an attempt that must first do some work and did not run all the time
    /// since the request; returns false if no delay is needed.
    fn put_off_spared(&mut self, id: AttemptId, settings: &PreemptionSettings) -> bool {
        let now = self.now;
        let attempt = &self.attempts[&id];
        let rest = attempt.spared_for.0.saturating_sub(attempt.runs_for(now).0);
        let spared = attempt.is_spared(now);
        let asked = self
            .requests
            .get(&id)
            .filter(|request| request.by == Requester::Policy);
        if !spared || asked.is_none_or(|request| request.primitive == Primitive::Wait) {
            return false;
        }
        let Some(mut request) = self.remove_request(id, settings) else {
            return false;
        };
        request.earliest = Some(now + Span(rest));
        self.add_request(request, settings);
        true
    }

    /// Closes the request for an attempt that gave up its slot or ended after it had worked for `worked`, and
    /// reserves the slot for the beneficiary.
    pub(super) fn close_request(
        &mut self,
        id: AttemptId,
        worker: WorkerId,
        slot_freed: bool,
        worked: Span,
        settings: &EngineSettings,
    ) {
        let Some(request) = self.remove_request(id, &settings.preemption) else {
            return;
        };
        let is_suspended = self.attempts.contains_key(&id);
        if let Some(task) = self
            .jobs
            .get_mut(&id.task.job)
            .and_then(|job| job.task_mut(id.task))
            && slot_freed
            && task.state != TaskState::Done
        {
            task.preemptions += 1;
            if request.by != Requester::Operator {
                let kept = if is_suspended { worked } else { task.kept };
                task.preempted(kept, worked);
            }
        }
        if self.workers[&worker].state() != WorkerState::Up {
            self.tally.requests_cancelled += 1;
            return;
        }
        match request.state {
            RequestState::Forced => self.tally.requests_forced += 1,
            RequestState::Created | RequestState::Ordered => self.tally.requests_satisfied += 1,
        }
        if !slot_freed {
            return;
        }
        if let Some(Lapsed { job, reason }) = request.lapsed {
            let kind = id.task.kind;
            self.note_unused(UnusedSlot {
                freed: id,
                job,
                kind,
                worker,
                reason: Some(reason),
            });
        } else if let Some(job) = request.beneficiary {
            self.keep_freed_slot(&request, job, worker, settings.reservation);
        }
    }

    /// Reserves the slot that an attempt gave up for a job, if the job wants it. The slot is kept for some time
    /// after the grace of the request.
    fn keep_freed_slot(
        &mut self,
        request: &PreemptRequest,
        job: JobId,
        worker: WorkerId,
        kept_for: Span,
    ) {
        let id = request.attempt;
        let mut kinds = vec![id.task.kind];
        if job == id.task.job {
            // A reduce that gave way to its own job did so for a map.
            kinds = vec![TaskKind::Map];
        } else if self.shares_slots {
            kinds.extend(
                TaskKind::ALL
                    .into_iter()
                    .filter(|kind| *kind != id.task.kind),
            );
        }
        let mut wanted = None;
        if self.workers[&worker].takes_attempts()
            && let Some(known) = self.jobs.get(&job)
        {
            wanted = kinds.into_iter().find(|kind| known.wants_on(*kind, worker));
        }
        match wanted {
            Some(kind) => {
                let until = self.now + kept_for + request.grace.unwrap_or_default();
                self.reserve(
                    worker,
                    Reservation {
                        job,
                        kind,
                        until,
                        of: Some(id),
                    },
                );
            }
            None => {
                let kind = id.task.kind;
                self.add_unused(UnusedSlot {
                    freed: id,
                    job,
                    kind,
                    worker,
                    reason: None,
                });
            }
        }
    }

    /// Returns why a job did not use a slot that was freed for it.
    fn why_unused(&self, job: JobId, kind: TaskKind, worker: WorkerId) -> String {
        let wants = self.jobs.get(&job).is_some_and(|job| job.wants(kind));
        if !wants {
            return format!("{job} wanted no more {kind} slots");
        }
        let Some(known) = self.workers.get(&worker) else {
            return format!("{worker} was lost");
        };
        if !known.takes_attempts() {
            return format!("{worker} takes no attempts any more");
        }
        match known.declined(kind) {
            Some(declined) => declined.to_owned(),
            None => format!("{job} could start nothing on {worker}"),
        }
    }

    /// Returns the latest request for a job whose slot the job cannot use any more.
    pub(super) fn surplus_request(&self, job: JobId) -> Option<AttemptId> {
        let known = self.jobs.get(&job)?;
        let kinds = TaskKind::ALL.iter().map(std::slice::from_ref);
        let mut sets: Vec<&[TaskKind]> = kinds.collect();
        if self.shares_slots {
            sets = vec![&TaskKind::ALL];
        }
        for kinds in sets {
            if self.surplus(known, kinds) == 0 {
                continue;
            }
            let is_surplus = |request: &&PreemptRequest| {
                let victim = &self.attempts[&request.attempt];
                request.beneficiary == Some(job)
                    && request.by == Requester::Policy
                    && request.state == RequestState::Created
                    && kinds.contains(&request.attempt.task.kind)
                    && victim.holds_slot
                    && victim.state != AttemptState::Killing
                    && !self.serves_suspended(known, kinds, victim.worker)
            };
            let surplus = self.requests.iter().filter(is_surplus);
            let latest = surplus.max_by_key(|request| (request.created, request.attempt));
            if let Some(latest) = latest {
                return Some(latest.attempt);
            }
        }
        None
    }

    /// Removes the beneficiary from a request whose order stands.
    fn drop_beneficiary(&mut self, id: AttemptId, reason: &str) {
        let Some(job) = self.requests.drop_beneficiary(&id, reason) else {
            return;
        };
        if let Some(known) = self.jobs.get_mut(&job) {
            known.slots.remove_promised(id.task.kind);
            self.touch(job);
        }
    }
}

/// Returns the existing reason as a prefix for an addition.
fn prefix(reason: Option<String>) -> String {
    reason.map_or_else(String::new, |reason| format!("{reason}; "))
}

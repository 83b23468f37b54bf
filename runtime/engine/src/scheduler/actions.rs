//! The actions of a policy, and the collector for one call. The engine carries them out.

use std::borrow::Cow;

use crate::cluster::ClusterView;
use crate::effect::Start;
use crate::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use crate::preemption::{Primitive, TaskEviction};
use crate::time::{Span, Time};

/// A free slot offered to the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    pub worker: WorkerId,
    pub kind: TaskKind,
    /// The only job that may use it, if it was freed for one.
    pub reserved_for: Option<JobId>,
}

/// An action of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Start an attempt at a pending task in a free slot of a worker.
    Launch {
        task: TaskId,
        worker: WorkerId,
        /// At the beginning, or at the task's checkpoint.
        from: Start,
    },
    /// Continue a suspended attempt in a free slot of its worker.
    Resume { attempt: AttemptId },
    /// Take the slot of an attempt. A repeated request has no effect while the first is open.
    Preempt(Preempt),
    /// Take slots of a job; the engine chooses the attempts.
    Release(Release),
    /// Keep a free slot of a worker for a job until it is used, no longer wanted, or a given time. No effect
    /// if it is already kept.
    Reserve {
        worker: WorkerId,
        kind: TaskKind,
        job: JobId,
        /// Latest end of the reservation.
        until: Time,
    },
    /// Withdraw the open request for an attempt. An order already sent stands, but the slot is no longer
    /// reserved and the grace no longer ends in a kill.
    Cancel {
        /// The victim.
        attempt: AttemptId,
    },
    /// Call the policy again at this time.
    WakeAt(Time),
    /// Leave the offered slot empty; it is offered again after the next event.
    Decline {
        /// For people.
        reason: Cow<'static, str>,
    },
    /// Leave the offered slot and all other slots of its kind empty; none is offered before the next event.
    DeclineKind {
        /// For people.
        reason: Cow<'static, str>,
    },
    /// Log a warning about a misconfiguration or an anomaly.
    Warn {
        /// The warning, with the object concerned.
        message: String,
    },
    /// Ask the driver to submit the job with this name.
    Submit { name: String },
}

/// A policy's request for the slot of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preempt {
    /// The victim.
    pub attempt: AttemptId,
    /// The preferred primitive; the settings of the engine may replace it.
    pub primitive: Primitive,
    /// How long the victim may take before it is killed; `None`: no limit. `Kill` waits this long and then
    /// kills; the other primitives become a kill after it, if the settings allow that.
    pub grace: Option<Span>,
    /// The reason for choosing this victim; for people.
    pub reason: String,
    /// The job that gets the slot first.
    pub beneficiary: Option<JobId>,
}

/// A policy's request for slots of one job. `eviction` picks among its attempts that hold a slot and have no
/// open request; if there are fewer than requested, all of them are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The job that gives up slots.
    pub job: JobId,
    pub kind: TaskKind,
    pub count: u32,
    /// The order in which its attempts are taken.
    pub eviction: TaskEviction,
    /// The preferred primitive; the settings of the engine may replace it.
    pub primitive: Primitive,
    /// See [`Preempt::grace`].
    pub grace: Option<Span>,
    /// The reason for choosing this job; for people.
    pub reason: String,
    /// The job that gets the slots first.
    pub beneficiary: Option<JobId>,
}

/// Collects the actions of a policy in one call.
#[derive(Debug)]
pub struct Actions {
    offer: Option<Offer>,
    kinds: &'static [TaskKind],
    taken: Vec<Action>,
}

impl Actions {
    /// Creates an empty collector; `room` is an empty list to reuse.
    pub(crate) fn new(offer: Option<Offer>, room: Vec<Action>) -> Actions {
        Actions {
            offer,
            kinds: &TaskKind::ALL,
            taken: room,
        }
    }

    /// Returns the task kinds that the policy decides about: both, unless it is part of a composition.
    pub fn kinds(&self) -> &'static [TaskKind] {
        self.kinds
    }

    /// Returns whether the policy decides which kind of task a slot is used for: slots are shared by both
    /// kinds, and no other policy decides about the other kind.
    pub fn has_both_kinds(&self, view: &ClusterView<'_>) -> bool {
        view.shares_slots() && self.kinds.len() == TaskKind::ALL.len()
    }

    /// Returns whether the policy chooses the kind for the offered slot, which is not reserved.
    pub fn chooses_kind(&self, view: &ClusterView<'_>) -> bool {
        let kept = self.offer.is_none_or(|offer| offer.reserved_for.is_some());
        self.has_both_kinds(view) && !kept
    }

    /// Calls a policy that decides about these kinds only, and collects its actions.
    pub fn of_kinds(&mut self, kinds: &'static [TaskKind], decide: impl FnOnce(&mut Actions)) {
        let all = std::mem::replace(&mut self.kinds, kinds);
        decide(self);
        self.kinds = all;
    }

    pub(crate) fn into_taken(self) -> Vec<Action> {
        self.taken
    }

    /// Returns the free slot that this call is about.
    pub fn offer(&self) -> Option<Offer> {
        self.offer
    }

    /// Adds an action; actions are carried out in order.
    pub fn push(&mut self, action: Action) {
        self.taken.push(action);
    }

    /// Starts an attempt: see [`Action::Launch`].
    pub fn launch(&mut self, task: TaskId, worker: WorkerId, from: Start) {
        self.push(Action::Launch { task, worker, from });
    }

    /// Continues an attempt: see [`Action::Resume`].
    pub fn resume(&mut self, attempt: AttemptId) {
        self.push(Action::Resume { attempt });
    }

    /// Leaves the offered slot empty: see [`Action::Decline`].
    pub fn decline(&mut self, reason: impl Into<Cow<'static, str>>) {
        self.push(Action::Decline {
            reason: reason.into(),
        });
    }

    /// Leaves every slot of the offered kind empty: see [`Action::DeclineKind`].
    pub fn decline_kind(&mut self, reason: impl Into<Cow<'static, str>>) {
        self.push(Action::DeclineKind {
            reason: reason.into(),
        });
    }

    /// Takes the slot of an attempt: see [`Action::Preempt`].
    pub fn preempt(&mut self, wish: Preempt) {
        self.push(Action::Preempt(wish));
    }

    /// Takes slots of a job: see [`Action::Release`].
    pub fn release(&mut self, wish: Release) {
        self.push(Action::Release(wish));
    }

    /// Withdraws a request: see [`Action::Cancel`].
    pub fn cancel(&mut self, attempt: AttemptId) {
        // Two parts of a composition may withdraw the same request.
        let action = Action::Cancel { attempt };
        if !self.taken.contains(&action) {
            self.push(action);
        }
    }

    /// Keeps a free slot: see [`Action::Reserve`].
    pub fn reserve(&mut self, worker: WorkerId, kind: TaskKind, job: JobId, until: Time) {
        self.push(Action::Reserve {
            worker,
            kind,
            job,
            until,
        });
    }

    /// Requests another call: see [`Action::WakeAt`].
    pub fn wake_at(&mut self, time: Time) {
        self.push(Action::WakeAt(time));
    }

    /// Requests the submission of a job: see [`Action::Submit`].
    pub fn submit(&mut self, name: impl Into<String>) {
        self.push(Action::Submit { name: name.into() });
    }
}

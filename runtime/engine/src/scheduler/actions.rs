//! What a policy can decide.
//!
//! Owns the vocabulary and the collecting of actions in one call. Does not own what they do: that is
//! the engine's.

use std::borrow::Cow;

use crate::cluster::ClusterView;
use crate::effect::Start;
use crate::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use crate::preemption::{Primitive, TaskEviction};
use crate::time::{Span, Time};

/// A free slot on offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Where.
    pub worker: WorkerId,
    pub kind: TaskKind,
    /// The only job that may use it, when it was freed for one.
    pub reserved_for: Option<JobId>,
}

/// What a policy can decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Start an attempt at a pending task in a free slot of a worker.
    Launch {
        task: TaskId,
        /// Where.
        worker: WorkerId,
        /// At the beginning, or at the task's checkpoint.
        from: Start,
    },
    /// Continue a suspended attempt in a free slot of its worker.
    Resume { attempt: AttemptId },
    /// Take the slot of an attempt. While such a request is open, asking again changes nothing.
    Preempt(Preempt),
    /// Take slots of a job, which chooses the attempts that give them.
    Release(Release),
    /// Keep a free slot of a worker for a job, until it is used, no longer wanted, or a time. Kept already,
    /// it changes nothing.
    Reserve {
        /// Where.
        worker: WorkerId,
        kind: TaskKind,
        /// For whom.
        job: JobId,
        /// Until when, at most.
        until: Time,
    },
    /// Withdraw the open request for an attempt. An order that was sent is not taken back, but the slot is
    /// nobody's in particular and the grace no longer ends in a kill.
    Cancel {
        /// The victim.
        attempt: AttemptId,
    },
    /// Call again at this time.
    WakeAt(Time),
    /// Leave the offered slot empty for now; it is offered again after the next event.
    Decline {
        /// Why; for people.
        reason: Cow<'static, str>,
    },
    /// Leave the offered slot empty for now, and every other of its kind with it: none is offered before the
    /// next event.
    DeclineKind {
        /// Why; for people.
        reason: Cow<'static, str>,
    },
    /// Tell people of something that is not as it should be.
    Warn {
        /// What, naming the thing.
        message: String,
    },
    /// Ask the driver to submit a job that it knows by this name.
    Submit { name: String },
}

/// A wish for the slot of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preempt {
    /// The victim.
    pub attempt: AttemptId,
    /// How, if the settings of the engine allow it.
    pub primitive: Primitive,
    /// How long the victim may take before it is killed, if ever. `Kill` waits so long and then kills; the
    /// others become a kill after it, if the settings allow that.
    pub grace: Option<Span>,
    /// Why this one; for people.
    pub reason: String,
    /// The job that gets the slot first.
    pub beneficiary: Option<JobId>,
}

/// A wish for slots of one job. Of its attempts that hold one and that nobody wants to preempt yet,
/// `eviction` picks; when there are fewer of them than wanted, those.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The job that is to give.
    pub job: JobId,
    /// Which kind of slot.
    pub kind: TaskKind,
    pub count: u32,
    /// Which of its attempts go first.
    pub eviction: TaskEviction,
    /// How, if the settings of the engine allow it.
    pub primitive: Primitive,
    /// As for [`Preempt`].
    pub grace: Option<Span>,
    /// Why this job; for people.
    pub reason: String,
    /// The job that gets the slots first.
    pub beneficiary: Option<JobId>,
}

/// Collects what a policy decides in one call.
#[derive(Debug)]
pub struct Actions {
    offer: Option<Offer>,
    /// The kinds this policy is to decide about.
    kinds: &'static [TaskKind],
    taken: Vec<Action>,
}

impl Actions {
    /// Nothing yet; `room` is an empty list that is used again.
    pub(crate) fn new(offer: Option<Offer>, room: Vec<Action>) -> Actions {
        Actions { offer, kinds: &TaskKind::ALL, taken: room }
    }

    /// The kinds of task that the policy is to decide about: both, unless it is one of several.
    pub fn kinds(&self) -> &'static [TaskKind] {
        self.kinds
    }

    /// Whether the policy decides which kind of task a slot is used for: slots are of one kind, and no other
    /// policy decides about the other kind.
    pub fn has_both_kinds(&self, view: &ClusterView<'_>) -> bool {
        view.shares_slots() && self.kinds.len() == TaskKind::ALL.len()
    }

    /// Whether it decides that of the offered slot: this is kept for nobody.
    pub fn chooses_kind(&self, view: &ClusterView<'_>) -> bool {
        let kept = self.offer.is_none_or(|offer| offer.reserved_for.is_some());
        self.has_both_kinds(view) && !kept
    }

    /// Calls a policy that decides about these kinds only, and takes over what it decides.
    pub fn of_kinds(&mut self, kinds: &'static [TaskKind], decide: impl FnOnce(&mut Actions)) {
        let all = std::mem::replace(&mut self.kinds, kinds);
        decide(self);
        self.kinds = all;
    }

    pub(crate) fn into_taken(self) -> Vec<Action> {
        self.taken
    }

    /// The free slot this call is about.
    pub fn offer(&self) -> Option<Offer> {
        self.offer
    }

    /// Take an action; actions are carried out in the order taken.
    pub fn push(&mut self, action: Action) {
        self.taken.push(action);
    }

    /// Start an attempt: see [`Action::Launch`].
    pub fn launch(&mut self, task: TaskId, worker: WorkerId, from: Start) {
        self.push(Action::Launch { task, worker, from });
    }

    /// Continue an attempt: see [`Action::Resume`].
    pub fn resume(&mut self, attempt: AttemptId) {
        self.push(Action::Resume { attempt });
    }

    /// Leave the offered slot empty: see [`Action::Decline`].
    pub fn decline(&mut self, reason: impl Into<Cow<'static, str>>) {
        self.push(Action::Decline { reason: reason.into() });
    }

    /// Leave every slot of the offered kind empty: see [`Action::DeclineKind`].
    pub fn decline_kind(&mut self, reason: impl Into<Cow<'static, str>>) {
        self.push(Action::DeclineKind { reason: reason.into() });
    }

    /// Take the slot of an attempt: see [`Action::Preempt`].
    pub fn preempt(&mut self, wish: Preempt) {
        self.push(Action::Preempt(wish));
    }

    /// Take slots of a job: see [`Action::Release`].
    pub fn release(&mut self, wish: Release) {
        self.push(Action::Release(wish));
    }

    /// Withdraw a request: see [`Action::Cancel`].
    pub fn cancel(&mut self, attempt: AttemptId) {
        // Two parts of a composition may want the same.
        let action = Action::Cancel { attempt };
        if !self.taken.contains(&action) {
            self.push(action);
        }
    }

    /// Keep a free slot: see [`Action::Reserve`].
    pub fn reserve(&mut self, worker: WorkerId, kind: TaskKind, job: JobId, until: Time) {
        self.push(Action::Reserve { worker, kind, job, until });
    }

    /// Be called again: see [`Action::WakeAt`].
    pub fn wake_at(&mut self, time: Time) {
        self.push(Action::WakeAt(time));
    }

    /// Have a job submitted: see [`Action::Submit`].
    pub fn submit(&mut self, name: impl Into<String>) {
        self.push(Action::Submit { name: name.into() });
    }
}

//! What a policy is: three calls, and the actions it may take.
//!
//! Owns the trait and the vocabulary of actions. Does not own the execution: a policy decides, the engine acts, and
//! refuses what is not possible.

pub mod fair;
pub mod fcs;
mod fifo;
pub mod hfsp;
pub mod natjam;

pub use fifo::Fifo;

use crate::cluster::ClusterView;
use crate::effect::Start;
use crate::event::Event;
use crate::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use crate::preemption::Primitive;
use crate::time::{Span, Time};

/// A scheduling policy.
///
/// After each event the engine first tells the policy of it, then offers every free slot that some job wants, one call
/// of `schedule` each, and at last calls `schedule` once without an offer. Actions are carried out after each call, so
/// the next call sees what they did.
///
/// ```
/// use napreduce_core::{Actions, ClusterView, Engine, EngineSettings, Event, Scheduler, Time};
///
/// /// The newest job gets every slot it can use.
/// struct NewestFirst;
///
/// impl Scheduler for NewestFirst {
///     fn on_event(&mut self, _: Time, _: &Event, _: &ClusterView<'_>) {}
///
///     fn schedule(&mut self, _: Time, view: &ClusterView<'_>, actions: &mut Actions) {
///         let Some(offer) = actions.offer() else { return };
///         let newest = view.wanting(offer.kind).max_by_key(|job| job.id());
///         match newest.and_then(|job| Some((job, job.next_task(offer.kind, offer.worker)?))) {
///             Some((job, task)) => actions.launch(task, offer.worker, job.start_of(task)),
///             None => actions.decline("the newest job has no task for this worker"),
///         }
///     }
///
///     fn next_wakeup(&self, _: Time) -> Option<Time> {
///         None
///     }
/// }
///
/// let engine = Engine::new(Box::new(NewestFirst), EngineSettings::default());
/// assert_eq!(engine.check(), Ok(()));
/// ```
pub trait Scheduler: Send {
    /// Something happened; the view shows the state after it.
    fn on_event(&mut self, now: Time, event: &Event, view: &ClusterView<'_>);

    /// Decide. `actions.offer()` is the free slot offered; the usual answer is one launch or resume that takes it, or
    /// to decline it. Without an offer: the place for preemption, when all slots are given that can be.
    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions);

    /// What it remembers between calls, as text that only it reads, for a snapshot of the engine. A policy that decides
    /// by what the view shows alone remembers nothing.
    fn save(&self) -> Option<String> {
        None
    }

    /// Goes on, when new, from what another of its kind saved.
    ///
    /// # Errors
    /// Says what it cannot read; the engine then refuses the snapshot.
    fn restore(&mut self, saved: Option<&str>) -> Result<(), String> {
        match saved {
            Some(_) => Err("it remembers nothing, but the one before it did".to_owned()),
            None => Ok(()),
        }
    }

    /// When to be called again even if nothing happens; strictly later than `now`.
    fn next_wakeup(&self, now: Time) -> Option<Time>;
}

/// A free slot on offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Where.
    pub worker: WorkerId,
    /// Which kind.
    pub kind: TaskKind,
    /// The only job that may use it, when it was freed for one.
    pub reserved_for: Option<JobId>,
}

/// What a policy can decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Start an attempt at a pending task in a free slot of a worker.
    Launch {
        /// The task.
        task: TaskId,
        /// Where.
        worker: WorkerId,
        /// At the beginning, or at the task's checkpoint.
        from: Start,
    },
    /// Continue a suspended attempt in a free slot of its worker.
    Resume {
        /// The attempt.
        attempt: AttemptId,
    },
    /// Take the slot of an attempt. While such a request is open, asking again changes nothing.
    Preempt {
        /// The victim.
        attempt: AttemptId,
        /// How.
        primitive: Primitive,
        /// How long the victim may take before it is killed, if ever. `Kill` waits so long and then kills; the others
        /// become a kill after it, if the settings allow that.
        grace: Option<Span>,
        /// Why this one; for people.
        reason: String,
        /// The job that gets the slot first.
        beneficiary: Option<JobId>,
    },
    /// Withdraw the open request for an attempt. An order that was sent is not taken back, but the slot is nobody's in
    /// particular and the grace no longer ends in a kill.
    Cancel {
        /// The victim.
        attempt: AttemptId,
    },
    /// Call again at this time.
    WakeAt(Time),
    /// Leave the offered slot empty for now; it is offered again after the next event.
    Decline {
        /// Why; for people.
        reason: &'static str,
    },
}

/// Collects what a policy decides in one call.
#[derive(Debug)]
pub struct Actions {
    offer: Option<Offer>,
    taken: Vec<Action>,
}

impl Actions {
    pub(crate) fn new(offer: Option<Offer>) -> Actions {
        Actions { offer, taken: Vec::new() }
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
    pub fn decline(&mut self, reason: &'static str) {
        self.push(Action::Decline { reason });
    }
}

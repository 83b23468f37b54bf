//! The trait of scheduling policies, its actions, and FIFO, which embedded runs use. The other policies are in
//! `napreduce-schedulers`, so that a job program does not compile them; a cluster's coordinator gets its policy
//! as a [`PolicyChoice`].
//!
//! A policy decides; the engine acts, and refuses what is not possible.

mod actions;
mod choice;
mod fifo;
mod queues;
mod serving;

pub use actions::{Action, Actions, Offer, Preempt, Release};
pub use choice::{PolicyChoice, ReadPolicy};
pub use fifo::Fifo;
pub use queues::{QueueLimits, QueueShare};
pub use serving::{is_other_first, other_kind_first, serve};

use crate::cluster::{ClusterView, Job};
use crate::event::Event;
use crate::ids::JobId;
use crate::job::{JobChange, JobSpec};
use crate::time::Time;

/// A scheduling policy.
///
/// After each event the engine first tells the policy of it, then offers every free slot that some job wants,
/// one call of `schedule` each, and at last calls `schedule` once without an offer. Actions are carried out
/// after each call, so the next call sees what they did. Before each of these calls it names the jobs that
/// changed since the last one.
///
/// An event may lead to as many calls as there are free slots, so a call may not look at every job or worker:
/// what a policy needs in some order it keeps in that order, changed in `job_changed`.
///
/// ```
/// use napreduce_engine::{Actions, ClusterView, Engine, EngineSettings, Event, Scheduler, Time};
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

    /// What this job holds, wants, has suspended or is promised may be different from when it was last named
    /// here, or it is over and the view does not know it. After a restore every job is named.
    fn job_changed(&mut self, _now: Time, _job: JobId, _view: &ClusterView<'_>) {}

    /// Decide. `actions.offer()` is the free slot offered; the usual answer is one launch or resume that
    /// takes it, or to decline it. Without an offer: the place for preemption, when all slots are given that
    /// can be.
    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions);

    /// Whether it has a place for a job like this; one that it has none for fails when it is submitted.
    ///
    /// # Errors
    /// Says what is not there, and what is.
    fn admits(&self, _spec: &JobSpec) -> Result<(), String> {
        Ok(())
    }

    /// Whether it would let a job in that it has a place for: one that cannot be done by its deadline, or
    /// keeps others from theirs, fails when it is submitted.
    ///
    /// # Errors
    /// Says what is missing.
    fn can_meet(&self, _now: Time, _spec: &JobSpec, _view: &ClusterView<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Whether a job that is there may have another priority or queue. One that is changed leaves and comes
    /// back: it is named in `job_changed` when the view does not know it, and again as it is then, whatever
    /// it holds.
    ///
    /// # Errors
    /// Says why that would mean nothing, or what there is instead.
    fn can_change(&self, _change: &JobChange) -> Result<(), String> {
        Err("it settles the place of a job when that is submitted".to_owned())
    }

    /// The queues that it tells apart, each after the one it is part of; nothing, when there is no
    /// such thing.
    fn queues(&self, _view: &ClusterView<'_>) -> Option<Vec<QueueShare>> {
        None
    }

    /// The place of a job among those that wait for their masters; the smaller first, of equals the one that
    /// came first.
    fn rank(&self, spec: &JobSpec) -> i128 {
        -i128::from(spec.priority)
    }

    /// The queues with a maximum that a job like this would be in, and how many map slots of so many each may
    /// have: the masters of its jobs must leave one.
    fn maxima(&self, _spec: &JobSpec, _slots: u32) -> Vec<(String, u64)> {
        Vec::new()
    }

    /// The limit on running jobs for which a job waits, as a sentence.
    fn why_limited(&self, _job: JobId) -> Option<String> {
        None
    }

    /// What there is to say of a job, for people who ask why it does not get on.
    fn remarks(&self, _now: Time, _job: &Job, _view: &ClusterView<'_>) -> Vec<String> {
        Vec::new()
    }

    /// What it remembers between calls, as text that only it reads, for a snapshot of the engine. A policy
    /// that decides by what the view shows alone remembers nothing.
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

//! The trait of scheduling policies, its actions, and FIFO, which embedded runs use. The other policies are
//! in `napreduce-schedulers`, so that job programs do not compile them; a cluster's coordinator gets its
//! policy as a [`PolicyChoice`].
//!
//! A policy decides; the engine carries out its actions and rejects illegal ones.

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
use crate::ids::{JobId, TaskKind};
use crate::job::{JobChange, JobSpec};
use crate::refusal::PolicyRefusal;
use crate::time::Time;

/// A scheduling policy.
///
/// After each event the engine first calls `on_event`, then offers every free slot that some job wants, with
/// one call of `schedule` each, and finally calls `schedule` once without an offer. It carries out the
/// actions after each call, so the next call sees their effects. Before each of these calls it passes the
/// jobs that changed since the last one to `job_changed`.
///
/// An event may lead to as many calls as there are free slots, so a call should not scan all jobs or workers:
/// a policy keeps its own ordered indices and updates them in `job_changed`.
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
    /// Observes an event; the view shows the state after it.
    fn on_event(&mut self, now: Time, event: &Event, view: &ClusterView<'_>);

    /// Observes that the slots, demand, suspended attempts or promises of this job may have changed since the
    /// last call for it, or that it has ended and is not in the view. After a restore, the engine passes
    /// every job.
    fn job_changed(&mut self, _now: Time, _job: JobId, _view: &ClusterView<'_>) {}

    /// Decides about the free slot `actions.offer()`: the usual answer is one launch or resume that takes it,
    /// or a decline. A call without an offer, after all possible slots are given, is for preemption.
    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions);

    /// Checks that the policy has a queue for a job like this; otherwise the job fails when it is submitted.
    ///
    /// # Errors
    /// Reports what is missing and what is available.
    fn admits(&self, _spec: &JobSpec) -> Result<(), PolicyRefusal> {
        Ok(())
    }

    /// Checks that the policy admits a job: one that cannot meet its deadline, or would make others miss
    /// theirs, fails when it is submitted.
    ///
    /// # Errors
    /// Reports what is missing.
    fn can_meet(
        &self,
        _now: Time,
        _spec: &JobSpec,
        _view: &ClusterView<'_>,
    ) -> Result<(), PolicyRefusal> {
        Ok(())
    }

    /// Checks that the priority or queue of a running job may change. A changed job leaves and re-enters: the
    /// engine calls `job_changed` while the job is not in the view, and again with its new values, whatever
    /// slots it holds.
    ///
    /// # Errors
    /// Reports why the change has no effect, or the available values.
    fn can_change(&self, _change: &JobChange) -> Result<(), PolicyRefusal> {
        Err(PolicyRefusal::SetAtSubmission)
    }

    /// Returns the policy's queues, each after its parent; `None` if it has no queues.
    fn queues(&self, _view: &ClusterView<'_>) -> Option<Vec<QueueShare>> {
        None
    }

    /// Returns the position of a job among those that wait for their masters: smaller first, ties by
    /// submission.
    fn rank(&self, spec: &JobSpec) -> i128 {
        -i128::from(spec.priority)
    }

    /// Returns the queues with a maximum that a job like this would be in, and how many of `slots` map slots
    /// each may use: the masters of its jobs must leave one free.
    fn maxima(&self, _spec: &JobSpec, _slots: u32) -> Vec<(String, u64)> {
        Vec::new()
    }

    /// Returns the jobs that want a slot of a kind, in the order in which a free one would be offered to them
    /// now; those at a limit may be missing. The default is the order of [`ClusterView::wanting`].
    fn order(&self, kind: TaskKind, view: &ClusterView<'_>) -> Vec<JobId> {
        view.wanting(kind).map(Job::id).collect()
    }

    /// Returns whether one job gets every free slot of a kind that it can use before another job gets one.
    /// Jobs of which neither comes first share the slots. Used to estimate when jobs will be done.
    fn is_before(&self, _kind: TaskKind, _one: &Job, _other: &Job) -> bool {
        false
    }

    /// Returns the limit on running jobs that a job waits for, as a sentence.
    fn why_limited(&self, _job: JobId) -> Option<String> {
        None
    }

    /// Returns remarks about a job for people who ask why it makes no progress.
    fn remarks(&self, _now: Time, _job: &Job, _view: &ClusterView<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Returns the policy's state for a snapshot of the engine, in a format private to the policy. A policy
    /// that decides by the view alone has no state.
    fn save(&self) -> Option<String> {
        None
    }

    /// Restores the state that a policy of the same kind saved into a new policy.
    ///
    /// # Errors
    /// Reports what it cannot read; the engine then rejects the snapshot.
    fn restore(&mut self, saved: Option<&str>) -> Result<(), String> {
        match saved {
            Some(_) => Err("the policy has no state, but the saved policy had one".to_owned()),
            None => Ok(()),
        }
    }

    /// Returns when the policy must be called again without an event; strictly later than `now`.
    fn next_wakeup(&self, now: Time) -> Option<Time>;
}

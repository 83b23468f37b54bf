//! The default policy of scenarios. It has no state and never preempts.

use crate::{Actions, ClusterView, Event, Job, JobChange, Offer, PolicyRefusal, Scheduler, Time};

/// Serves jobs in the order in which the view lists them: by priority, then submit time, then id.
#[derive(Debug, Clone, Copy, Default)]
pub struct InOrder;

impl Scheduler for InOrder {
    fn on_event(&mut self, _now: Time, _event: &Event, _view: &ClusterView<'_>) {}

    fn schedule(&mut self, _now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        let Some(offer) = actions.offer() else { return };
        for job in view.wanting(offer.kind) {
            let may_use = offer.reserved_for.is_none_or(|only| only == job.id());
            if may_use && serve(job, offer, actions) {
                return;
            }
        }
        actions.decline("no job can use it");
    }

    fn can_change(&self, change: &JobChange) -> Result<(), PolicyRefusal> {
        if change.queue.is_some() {
            return Err(PolicyRefusal::NoQueues("in-order"));
        }
        Ok(())
    }

    fn next_wakeup(&self, _now: Time) -> Option<Time> {
        None
    }
}

/// Uses the slot for the job, if the job can use it: resumes a suspended attempt of this worker, or else launches a
/// task. Returns whether the slot is used.
fn serve(job: &Job, offer: Offer, actions: &mut Actions) -> bool {
    if let Some(attempt) = job.suspended_on(offer.kind, offer.worker) {
        actions.resume(attempt);
        return true;
    }
    let Some(task) = job.next_task(offer.kind, offer.worker) else {
        return false;
    };
    actions.launch(task, offer.worker, job.start_of(task));
    true
}

//! Gives an offered slot to the job that a policy chose: suspended work on that worker first, then a task whose
//! input or checkpoint is there, then one that has it on the same rack, then any task.

use super::{Actions, Offer};
use crate::cluster::{ClusterView, Job};
use crate::ids::TaskKind;

/// Gives the offered slot to a job, if the job has a use for it there; false if not. Suspended work comes
/// first: it is older, and it can go on nowhere else.
pub fn serve(job: &Job, offer: Offer, actions: &mut Actions) -> bool {
    if let Some(attempt) = job.suspended_on(offer.kind, offer.worker) {
        actions.resume(attempt);
        return true;
    }
    let Some(task) = job.next_task(offer.kind, offer.worker) else { return false };
    actions.launch(task, offer.worker, job.start_of(task));
    true
}

/// Where slots are of one kind: whether the first job in giving order wants the other kind of task. Of one
/// job maps go first.
pub fn other_kind_first(view: &ClusterView<'_>, kind: TaskKind) -> bool {
    is_other_first(kind, |kind| view.wanting(kind).next().map(Job::giving_order))
}

/// Whether, of the first in order that want each kind of task, the one for the other kind comes first. Of one
/// job maps go first.
pub fn is_other_first<K: Ord>(kind: TaskKind, first: impl Fn(TaskKind) -> Option<K>) -> bool {
    let [map, reduce] = TaskKind::ALL.map(first);
    match kind {
        TaskKind::Map => reduce.is_some_and(|reduce| map.is_none_or(|map| reduce < map)),
        TaskKind::Reduce => map.is_some_and(|map| reduce.is_none_or(|reduce| map <= reduce)),
    }
}

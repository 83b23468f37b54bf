//! Gives an offered slot to the job that a policy chose: suspended attempts on that worker first, then a task
//! with its input or checkpoint there, then one with it on the same rack, then any task.

use super::{Actions, Offer};
use crate::cluster::{ClusterView, Job};
use crate::ids::TaskKind;

/// Gives the offered slot to a job; returns false if the job cannot use it there. Suspended attempts come
/// first: they are older and cannot run on another worker.
pub fn serve(job: &Job, offer: Offer, actions: &mut Actions) -> bool {
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

/// Returns whether, with shared slots, the first job in the default order wants the other kind of task.
/// Within a job, maps come first.
pub fn other_kind_first(view: &ClusterView<'_>, kind: TaskKind) -> bool {
    is_other_first(kind, |kind| {
        view.wanting(kind).next().map(Job::default_order)
    })
}

/// Returns whether the first job that wants the other kind of task precedes the first that wants this kind.
/// Within a job, maps come first.
pub fn is_other_first<K: Ord>(kind: TaskKind, first: impl Fn(TaskKind) -> Option<K>) -> bool {
    let [map, reduce] = TaskKind::ALL.map(first);
    match kind {
        TaskKind::Map => reduce.is_some_and(|reduce| map.is_none_or(|map| reduce < map)),
        TaskKind::Reduce => map.is_some_and(|map| reduce.is_none_or(|reduce| map <= reduce)),
    }
}

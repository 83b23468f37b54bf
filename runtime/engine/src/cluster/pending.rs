//! The pending tasks of a job, and for each the workers that hold its input or its checkpoint.

use crate::cluster::attempt::SavedProgress;
use crate::cluster::job::{Job, preferred};
use crate::ids::{TaskId, WorkerId};
use crate::time::{Span, Time};

impl Job {
    /// Sets the checkpoint that a task continues from, with its worker and time; `None`: the task starts
    /// fresh.
    pub(crate) fn set_checkpoint(&mut self, task: TaskId, made: Option<(u32, WorkerId, Time)>) {
        let pending = self.phases[task.kind].pending.contains(task.index);
        if pending {
            self.remove_pending(task);
        }
        if let Some(known) = self.task_mut(task) {
            known.checkpoint = made.map(|(number, ..)| number);
            known.checkpoint_made = made.map(|(_, worker, at)| (worker, at));
            if made.is_none() {
                known.kept = Span::default();
                known.saved = SavedProgress::default();
            }
        }
        if pending {
            self.add_pending(task);
        }
    }

    /// Releases the hold on a task.
    pub(crate) fn release(&mut self, task: TaskId) {
        if let Some(known) = self.task_mut(task) {
            known.held = None;
        }
        if self.phases[task.kind].held.remove(&task.index) {
            self.add_pending(task);
        }
    }

    pub(crate) fn add_pending(&mut self, task: TaskId) {
        let preferred = preferred(&self.spec, task);
        self.phases[task.kind].add_pending(task.index, preferred, &self.racks);
    }

    pub(crate) fn remove_pending(&mut self, task: TaskId) {
        let preferred = preferred(&self.spec, task);
        self.phases[task.kind].remove_pending(task.index, preferred, &self.racks);
    }

    /// Returns the workers that hold the input or checkpoint of a pending task.
    pub(crate) fn holders(&self, task: TaskId) -> Vec<WorkerId> {
        match self.task(task).and_then(|known| known.checkpoint_made) {
            Some((worker, _)) => vec![worker],
            None => preferred(&self.spec, task).to_vec(),
        }
    }
}

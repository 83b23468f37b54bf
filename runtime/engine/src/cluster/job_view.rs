//! Queries about a job beyond its tasks, for policies: its demand, the slots promised to it, the durations of
//! its work.

use crate::cluster::Job;
use crate::cluster::accesses::count_access;
use crate::effect::Start;
use crate::ids::{AttemptId, TaskId, TaskKind, WorkerId};
use crate::states::{JobState, TaskState};
use crate::time::{Span, Time};

/// The history of a task over its attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskHistory {
    /// When its first attempt was launched.
    pub first_launched: Option<Time>,
    /// The work time of earlier attempts that its checkpoint preserves.
    pub service: Span,
    /// How often its slot was taken.
    pub preemptions: u32,
}

impl Job {
    /// Returns how many slots of a kind it holds or could use: its attempts, including suspended ones, and
    /// its launchable tasks.
    pub fn demand(&self, kind: TaskKind) -> u32 {
        self.demand_with(kind, self.eligible_count(kind))
    }

    /// Returns the same for a known number of launchable tasks.
    pub fn demand_with(&self, kind: TaskKind, eligible: u32) -> u32 {
        let suspended = if self.state == JobState::Active {
            self.suspended(kind)
        } else {
            0
        };
        self.holding(kind) + suspended + eligible
    }

    /// Returns the tasks of a kind that are held because an operator suspended their last attempt, which has
    /// ended.
    pub fn held_tasks(&self, kind: TaskKind) -> impl Iterator<Item = TaskId> + '_ {
        self.phases[kind].held.iter().map(move |&index| TaskId {
            job: self.id,
            kind,
            index,
        })
    }

    /// Returns whether a task is held and its suspended attempt has ended.
    pub(crate) fn is_held_without_attempt(&self, task: TaskId) -> bool {
        self.phases[task.kind].held.contains(&task.index)
    }

    /// Returns why an operator suspended a task, if one did: nothing is launched for it, or its attempt is
    /// suspended.
    pub fn why_held(&self, task: TaskId) -> Option<&str> {
        self.task(task)?.held.as_deref()
    }

    /// Returns the last attempt of a held task without a live attempt: the id by which an operator resumes
    /// it.
    pub fn held_attempt(&self, task: TaskId) -> Option<AttemptId> {
        if !self.is_held_without_attempt(task) {
            return None;
        }
        let number = self.task(task)?.launched;
        Some(AttemptId { task, number })
    }

    /// Returns how many slots of a kind are being freed or kept for it.
    pub fn promised(&self, kind: TaskKind) -> u32 {
        self.slots.promised(kind)
    }

    /// Returns how many open requests there are for slots of a kind that it holds.
    pub fn requested(&self, kind: TaskKind) -> u32 {
        self.slots.requested(kind)
    }

    /// Returns how many of its tasks of a kind are done, and the total work time for them.
    pub fn worked(&self, kind: TaskKind) -> (u32, Span) {
        (self.phases[kind].done, self.phases[kind].sums.worked)
    }

    /// Returns the mean work time of its completed tasks of a kind.
    pub(crate) fn mean_work(&self, kind: TaskKind) -> Option<Span> {
        let (done, worked) = self.worked(kind);
        let mean = worked.0.checked_div(u64::from(done))?;
        Some(Span(mean))
    }

    /// Returns the bytes that its finished maps wrote for reduces, as far as they were counted.
    pub fn map_output_bytes(&self) -> u64 {
        self.outputs.bytes()
    }

    /// Returns a task to launch on a worker that holds its input or checkpoint.
    pub fn next_local(&self, kind: TaskKind, worker: WorkerId) -> Option<TaskId> {
        self.next_of(kind, |phase| phase.next_local(worker))
    }

    /// Returns a task without a checkpoint to launch on a worker.
    pub fn next_fresh(&self, kind: TaskKind, worker: WorkerId) -> Option<TaskId> {
        self.next_of(kind, |phase| phase.next_fresh(worker))
    }

    /// Returns where the work of a new attempt at this task starts: at its checkpoint, if it has one.
    pub fn start_of(&self, task: TaskId) -> Start {
        match self.task(task).and_then(|task| task.checkpoint) {
            Some(number) => Start::Checkpoint(AttemptId { task, number }),
            None => Start::Fresh,
        }
    }

    /// Returns the live attempts at a task, at most two: the second is a duplicate of the first, which is
    /// slow.
    pub fn attempts_of(&self, task: TaskId) -> impl Iterator<Item = AttemptId> + '_ {
        let numbers = self.task(task).map_or(&[][..], |known| &known.live);
        numbers
            .iter()
            .map(move |&number| AttemptId { task, number })
    }

    /// Returns whether some launchable task has its input or a checkpoint on some worker.
    pub fn prefers_workers(&self, kind: TaskKind) -> bool {
        self.is_open(kind) && !self.phases[kind].local.is_empty()
    }

    /// Returns the launchable tasks with a checkpoint, and where and when that was made, oldest first.
    pub fn checkpointed(
        &self,
        kind: TaskKind,
    ) -> impl Iterator<Item = (TaskId, WorkerId, Time)> + '_ {
        let phase = &self.phases[kind];
        let tasks = self.is_open(kind).then_some(&phase.checkpointed);
        tasks
            .into_iter()
            .flatten()
            .inspect(|_| count_access())
            .filter_map(move |&(_, index)| {
                let (worker, made) = phase.task(index)?.checkpoint_made?;
                Some((
                    TaskId {
                        job: self.id,
                        kind,
                        index,
                    },
                    worker,
                    made,
                ))
            })
    }

    /// Returns its suspended attempts of a kind and their workers, by worker.
    pub fn suspended_attempts(
        &self,
        kind: TaskKind,
    ) -> impl Iterator<Item = (WorkerId, AttemptId)> + '_ {
        self.suspended[kind]
            .iter()
            .copied()
            .inspect(|_| count_access())
    }

    /// Returns its live attempts of a kind in order, including suspended ones.
    pub fn attempts_of_kind(
        &self,
        kind: TaskKind,
    ) -> impl DoubleEndedIterator<Item = AttemptId> + '_ {
        let (first, last) = AttemptId::range_of(self.id, kind);
        self.live
            .range(first..=last)
            .copied()
            .inspect(|_| count_access())
    }

    /// Returns the history of a task; `None` if the job has no such task.
    pub fn history(&self, task: TaskId) -> Option<TaskHistory> {
        let known = self.task(task)?;
        let service = known.kept;
        let preemptions = known.preemptions;
        Some(TaskHistory {
            first_launched: known.first_launched,
            service,
            preemptions,
        })
    }

    /// Returns the work time for a completed task.
    pub fn took(&self, task: TaskId) -> Option<Span> {
        self.task(task)
            .filter(|task| task.state == TaskState::Done)
            .map(|task| task.took)
    }
}

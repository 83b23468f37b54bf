//! What a policy may ask of a job beyond its tasks: what it wants in all, what is promised to it, what its
//! work took.
//!
//! Owns questions only. Does not own the numbers, which the cluster keeps in step.

use crate::cluster::Job;
use crate::cluster::looks::looked;
use crate::effect::Start;
use crate::ids::{AttemptId, TaskId, TaskKind, WorkerId};
use crate::states::{JobState, TaskState};
use crate::time::{Span, Time};

/// What is remembered of a task over its attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskHistory {
    /// When the first attempt at it was launched.
    pub first_launched: Option<Time>,
    /// How long attempts before the live one were at work for what its checkpoint holds.
    pub service: Span,
    /// How often its slot was taken from it.
    pub preemptions: u32,
}

impl Job {
    /// How many slots of a kind it holds or could use: its attempts, suspended ones included, and the tasks
    /// that may be launched.
    pub fn demand(&self, kind: TaskKind) -> u32 {
        self.demand_beside(kind, self.eligible_count(kind))
    }

    /// The same for who has asked already how many of its tasks may be launched.
    pub fn demand_beside(&self, kind: TaskKind, eligible: u32) -> u32 {
        let suspended = if self.state == JobState::Active { self.suspended(kind) } else { 0 };
        self.holding(kind) + suspended + eligible
    }

    /// The tasks of a kind that nothing is launched for since an operator suspended their last attempt, which
    /// is gone.
    pub fn held_tasks(&self, kind: TaskKind) -> impl Iterator<Item = TaskId> + '_ {
        self.phases[kind].held.iter().map(move |&index| TaskId { job: self.id, kind, index })
    }

    /// Why an operator suspended a task, if one did: nothing is launched for it, or its attempt is suspended.
    pub fn why_held(&self, task: TaskId) -> Option<&str> {
        self.task(task)?.held.as_deref()
    }

    /// By which name an operator resumes a task whose suspended attempt is gone: that of its last attempt.
    pub fn held_attempt(&self, task: TaskId) -> Option<AttemptId> {
        let held = self.phases[task.kind].held.contains(&task.index);
        let number = self.task(task).filter(|_| held)?.launched;
        Some(AttemptId { task, number })
    }

    /// How many slots of a kind are being freed for it or kept for it.
    pub fn promised(&self, kind: TaskKind) -> u32 {
        self.promised[kind]
    }

    /// How many of the slots of a kind that it holds somebody wants back: open requests for its attempts.
    pub fn requested(&self, kind: TaskKind) -> u32 {
        self.requested[kind]
    }

    /// How many of its tasks of a kind are done, and how long attempts were at work for them.
    pub fn worked(&self, kind: TaskKind) -> (u32, Span) {
        (self.phases[kind].done, self.phases[kind].worked)
    }

    /// Bytes its finished maps wrote for reduces, as far as they were counted.
    pub fn map_output_bytes(&self) -> u64 {
        self.map_output_bytes
    }

    /// A task to launch on a worker whose input, or checkpoint, is there.
    pub fn next_local(&self, kind: TaskKind, worker: WorkerId) -> Option<TaskId> {
        self.next_of(kind, |phase| phase.next_local(worker))
    }

    /// A task to launch on a worker that has no checkpoint.
    pub fn next_fresh(&self, kind: TaskKind, worker: WorkerId) -> Option<TaskId> {
        self.next_of(kind, |phase| phase.next_fresh(worker))
    }

    /// Where the work of a new attempt at this task can start: at its checkpoint, if it has one.
    pub fn start_of(&self, task: TaskId) -> Start {
        match self.task(task).and_then(|task| task.checkpoint) {
            Some(number) => Start::Checkpoint(AttemptId { task, number }),
            None => Start::Fresh,
        }
    }

    /// The live attempts at a task, at most two: the second is a duplicate of the first, which is slow.
    pub fn attempts_of(&self, task: TaskId) -> impl Iterator<Item = AttemptId> + '_ {
        let numbers = self.task(task).map_or(&[][..], |known| &known.live);
        numbers.iter().map(move |&number| AttemptId { task, number })
    }

    /// Whether some task that may be launched has its input, or a checkpoint, on some worker.
    pub fn prefers_workers(&self, kind: TaskKind) -> bool {
        self.is_open(kind) && !self.phases[kind].local.is_empty()
    }

    /// The tasks that may be launched from a checkpoint, with where and when that was made, the oldest first.
    pub fn checkpointed(&self, kind: TaskKind) -> impl Iterator<Item = (TaskId, WorkerId, Time)> + '_ {
        let phase = &self.phases[kind];
        let tasks = self.is_open(kind).then_some(&phase.checkpointed);
        tasks.into_iter().flatten().inspect(|_| looked()).filter_map(move |&(_, index)| {
            let (worker, made) = phase.task(index)?.checkpoint_made?;
            Some((TaskId { job: self.id, kind, index }, worker, made))
        })
    }

    /// Its suspended attempts of a kind and where they are, by worker.
    pub fn suspended_attempts(&self, kind: TaskKind) -> impl Iterator<Item = (WorkerId, AttemptId)> + '_ {
        self.suspended[kind].iter().copied().inspect(|_| looked())
    }

    /// Its live attempts of a kind, suspended ones included, in order.
    pub fn attempts_of_kind(&self, kind: TaskKind) -> impl DoubleEndedIterator<Item = AttemptId> + '_ {
        let (first, last) = AttemptId::range_of(self.id, kind);
        self.live.range(first..=last).copied().inspect(|_| looked())
    }

    /// What is remembered of a task; none when the job has no such task.
    pub fn history(&self, task: TaskId) -> Option<TaskHistory> {
        let known = self.task(task)?;
        let (service, preemptions) = (known.kept, known.preemptions);
        Some(TaskHistory { first_launched: known.first_launched, service, preemptions })
    }

    /// How long attempts were at work for a task that is done.
    pub fn took(&self, task: TaskId) -> Option<Span> {
        self.task(task).filter(|task| task.state == TaskState::Done).map(|task| task.took)
    }
}

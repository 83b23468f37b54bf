//! The progress of a job, including estimates of unknown bytes.

use napreduce_engine::{
    AttemptState, ByKind, ClusterView, Engine, Job, Start, TaskId, TaskKind, TaskState, Time,
};
use napreduce_protocol::{Counter, InputSplit, JobProgress, PhaseProgress};

use super::LiveJob;

/// Sums over all tasks; computing them for each request would take long for large jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// Bytes of all splits.
    input_bytes: u64,
    done: ByKind<Done>,
}

/// Sums over the completed tasks of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Done {
    tasks: u64,
    bytes: u64,
}

impl LiveJob {
    /// Returns the sums, computed once and then updated by records of the engine.
    fn sums(&self, job: &Job) -> Sums {
        if let Some(sums) = self.sums.get() {
            return sums;
        }
        let mut sums = Sums {
            input_bytes: self.input_bytes(),
            ..Sums::default()
        };
        for kind in TaskKind::ALL {
            let tasks = (0..job.tasks_total(kind)).map(|index| TaskId {
                job: self.id(),
                kind,
                index,
            });
            for task in tasks.filter(|task| job.task_state(*task) == Some(TaskState::Done)) {
                sums.done[kind].tasks += 1;
                sums.done[kind].bytes += self.task_bytes(task);
            }
        }
        self.sums.set(Some(sums));
        sums
    }

    /// Updates the sums when a task is completed or lost.
    pub(super) fn count_done(&mut self, task: TaskId, change: i64) {
        let Some(mut sums) = self.sums.get() else {
            return;
        };
        let done = &mut sums.done[task.kind];
        done.tasks = done.tasks.saturating_add_signed(change);
        let bytes = i64::try_from(self.task_bytes(task)).unwrap_or(i64::MAX);
        done.bytes = done
            .bytes
            .saturating_add_signed(bytes.saturating_mul(change));
        self.sums.set(Some(sums));
    }

    fn input_bytes(&self) -> u64 {
        self.accepted
            .plan
            .splits
            .iter()
            .map(InputSplit::length)
            .sum()
    }

    /// Returns the job's progress.
    pub(in crate::coordinator) fn progress(&self, engine: &Engine, now: Time) -> JobProgress {
        let view = engine.view();
        JobProgress {
            map: self.phase(&view, TaskKind::Map),
            reduce: self.phase(&view, TaskKind::Reduce),
            left: engine.time_left(self.id(), now),
        }
    }

    fn phase(&self, view: &ClusterView<'_>, kind: TaskKind) -> PhaseProgress {
        let Some(job) = view.job(self.id()) else {
            return self.phase_at_end(kind);
        };
        let mut bytes_done = 0_u64;
        let mut known_bytes = 0_u64;
        let mut known_tasks = 0_u64;
        // Includes attempts held by an operator.
        let mut stopped = 0;
        for attempt in job.attempts().filter(|attempt| attempt.task.kind == kind) {
            let Some(attempt) = view.attempt(attempt) else {
                continue;
            };
            stopped += u32::from(attempt.state() == AttemptState::Suspended);
            bytes_done += attempt.bytes_done();
            known_bytes += attempt.bytes_total();
            known_tasks += u64::from(attempt.bytes_total() > 0);
        }
        let sums = self.sums(job);
        bytes_done += sums.done[kind].bytes;
        known_bytes += sums.done[kind].bytes;
        known_tasks += sums.done[kind].tasks;
        let tasks = job.tasks_total(kind);
        let bytes_total = match kind {
            TaskKind::Map => sums.input_bytes,
            // Reduces that have not begun are estimated to have the average size of the others.
            TaskKind::Reduce => known_bytes.saturating_mul(u64::from(tasks)) / known_tasks.max(1),
        };
        let from_checkpoint = |task: &TaskId| matches!(job.start_of(*task), Start::Checkpoint(_));
        PhaseProgress {
            tasks,
            done: job.tasks_done(kind),
            running: job.holding(kind),
            suspended: stopped + u32::try_from(job.held_tasks(kind).count()).unwrap_or(u32::MAX),
            checkpointed: if self.book.has_checkpoints() {
                u32::try_from(job.eligible(kind).filter(from_checkpoint).count())
                    .unwrap_or(u32::MAX)
            } else {
                0
            },
            // Two attempts at one task may both have read it.
            bytes_done: bytes_done.min(bytes_total.max(known_bytes)),
            bytes_total,
        }
    }

    /// Returns the progress of a job that the engine has forgotten.
    fn phase_at_end(&self, kind: TaskKind) -> PhaseProgress {
        let tasks = self.tasks_total(kind);
        let done: Vec<TaskId> = self
            .results
            .keys()
            .filter(|task| task.kind == kind)
            .copied()
            .collect();
        let bytes_done = done.iter().map(|task| self.task_bytes(*task)).sum::<u64>();
        let finished = u32::try_from(done.len()).unwrap_or(u32::MAX);
        let bytes_total = match kind {
            TaskKind::Map => self.input_bytes(),
            TaskKind::Reduce => {
                bytes_done.saturating_mul(u64::from(tasks)) / u64::from(finished.max(1))
            }
        };
        PhaseProgress {
            tasks,
            done: finished,
            bytes_done,
            bytes_total,
            ..PhaseProgress::default()
        }
    }

    fn tasks_total(&self, kind: TaskKind) -> u32 {
        match kind {
            TaskKind::Map => u32::try_from(self.accepted.plan.splits.len()).unwrap_or(u32::MAX),
            TaskKind::Reduce => self.accepted.plan.reduces,
        }
    }

    /// Returns the input bytes of a completed task.
    fn task_bytes(&self, task: TaskId) -> u64 {
        match task.kind {
            TaskKind::Map => {
                let split = usize::try_from(task.index)
                    .ok()
                    .and_then(|index| self.accepted.plan.splits.get(index));
                split.map_or(0, InputSplit::length)
            }
            TaskKind::Reduce => {
                let result = self.results.get(&task);
                result.map_or(0, |result| result.counters.of(Counter::ReduceShuffleBytes))
            }
        }
    }
}

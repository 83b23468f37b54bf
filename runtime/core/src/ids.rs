//! Identifiers of jobs, tasks, attempts and workers, and how they print.
//!
//! Owns the one readable form used by logs, errors and interfaces alike: `job_0007`, `job_0007_m_0003`,
//! `job_0007_r_0001.2`, `worker_0001`. Does not own who hands identifiers out: the runtime numbers jobs and workers,
//! the engine numbers attempts.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A job; numbers start at 1 and are never reused by one coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobId(pub u32);

/// A worker; numbers start at 1 and are never reused by one coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkerId(pub u32);

/// The two kinds of task, which are also the two kinds of slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaskKind {
    /// Reads a split and emits records.
    Map,
    /// Merges one partition and writes one part of the output.
    Reduce,
}

/// One unit of a job: a map over split `index`, or a reduce over partition `index`; indices start at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskId {
    /// The job it belongs to.
    pub job: JobId,
    /// Map or reduce.
    pub kind: TaskKind,
    /// The split or the partition, from 0.
    pub index: u32,
}

/// One try at a task; `number` starts at 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AttemptId {
    /// The task tried.
    pub task: TaskId,
    /// Which try, from 1.
    pub number: u32,
}

impl TaskKind {
    /// Both kinds, maps first.
    pub const ALL: [TaskKind; 2] = [TaskKind::Map, TaskKind::Reduce];
}

impl AttemptId {
    /// The smallest and the largest attempt of one kind of one job, as the bounds of a range of attempts.
    pub(crate) fn range_of(job: JobId, kind: TaskKind) -> (AttemptId, AttemptId) {
        let at = |index, number| AttemptId { task: TaskId { job, kind, index }, number };
        (at(0, 0), at(u32::MAX, u32::MAX))
    }
}

impl TaskId {
    /// Job, kind and index one after the other: indices compare ids more often than anything else.
    fn in_order(self) -> u128 {
        u128::from(self.job.0) << 64 | (self.kind as u128) << 32 | u128::from(self.index)
    }
}

impl Ord for TaskId {
    fn cmp(&self, other: &TaskId) -> Ordering {
        self.in_order().cmp(&other.in_order())
    }
}

impl PartialOrd for TaskId {
    fn partial_cmp(&self, other: &TaskId) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for AttemptId {
    fn cmp(&self, other: &AttemptId) -> Ordering {
        let in_order = |id: &AttemptId| id.task.in_order() << 32 | u128::from(id.number);
        in_order(self).cmp(&in_order(other))
    }
}

impl PartialOrd for AttemptId {
    fn partial_cmp(&self, other: &AttemptId) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job_{:04}", self.0)
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker_{:04}", self.0)
    }
}

impl fmt::Display for TaskKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TaskKind::Map => "map",
            TaskKind::Reduce => "reduce",
        })
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.kind {
            TaskKind::Map => 'm',
            TaskKind::Reduce => 'r',
        };
        write!(f, "{}_{}_{:04}", self.job, letter, self.index)
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.task, self.number)
    }
}

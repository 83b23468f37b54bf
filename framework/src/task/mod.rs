//! What runs inside a task process: the loop of a map over its split, the loop of a reduce over its groups.
//!
//! Owns the path from input format through user code to collector or part file. Does not own processes, retries or
//! commits (live runtime) nor sorting and merging (data plane).

pub(crate) mod errors;
mod groups;
pub(crate) mod map;
pub(crate) mod map_only;
mod reading;
pub(crate) mod reduce;
mod saving;

use std::path::Path;

use napreduce_core::{AttemptId, TaskId};

/// What user code may know about the attempt it runs in.
#[derive(Debug, Clone, Copy)]
pub struct TaskInfo<'a> {
    attempt: AttemptId,
    input: Option<&'a Path>,
}

impl<'a> TaskInfo<'a> {
    pub(crate) fn new(attempt: AttemptId, input: Option<&'a Path>) -> TaskInfo<'a> {
        TaskInfo { attempt, input }
    }

    /// The attempt, which prints as `job_0007_m_0003.1`.
    pub fn attempt(&self) -> AttemptId {
        self.attempt
    }

    /// The task.
    pub fn task(&self) -> TaskId {
        self.attempt.task
    }

    /// For a map: the input file.
    pub fn input(&self) -> Option<&'a Path> {
        self.input
    }
}

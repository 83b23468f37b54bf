//! What lines of a log are about: spans of jobs, tasks and attempts.
//!
//! Owns their names. Does not own what is said in them.

use napreduce_core::AttemptId;
use tracing::{Span, debug_span};

/// The span of an attempt, within that of its task, within that of its job.
pub(crate) fn of_attempt(id: AttemptId) -> Span {
    let job = debug_span!(target: "napreduce", "job", id = %id.task.job);
    let task = debug_span!(target: "napreduce", parent: &job, "task", id = %id.task);
    debug_span!(target: "napreduce", parent: &task, "attempt", %id)
}

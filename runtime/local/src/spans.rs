//! Log spans of jobs, tasks and attempts.

use napreduce_engine::AttemptId;
use tracing::{Span, info_span};

/// What they are of, whatever is worth a line: who reads a line wants to know what it is about.
pub const SPAN_TARGET: &str = "napreduce";

/// The span of an attempt, within that of its task, within that of its job.
pub(crate) fn of_attempt(id: AttemptId) -> Span {
    let job = info_span!(target: SPAN_TARGET, "job", id = %id.task.job);
    let task = info_span!(target: SPAN_TARGET, parent: &job, "task", id = %id.task);
    info_span!(target: SPAN_TARGET, parent: &task, "attempt", %id)
}

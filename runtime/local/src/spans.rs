//! Log spans of jobs, tasks and attempts.

use napreduce_engine::AttemptId;
use tracing::{Span, info_span};

/// The target of the spans. Every log filter enables it, so that each line names its job and attempt.
pub const SPAN_TARGET: &str = "napreduce";

/// Returns the span of an attempt, nested in those of its task and job.
pub(crate) fn of_attempt(id: AttemptId) -> Span {
    let job = info_span!(target: SPAN_TARGET, "job", id = %id.task.job);
    let task = info_span!(target: SPAN_TARGET, parent: &job, "task", id = %id.task);
    info_span!(target: SPAN_TARGET, parent: &task, "attempt", %id)
}

//! Errors of processes that ended without reporting an outcome.

use std::process::ExitStatus;

use napreduce_engine::FaultPlace;
use napreduce_protocol::TaskError;

use crate::process::describe_exit;

/// Returns the error of a process that ended by itself. SIGKILL comes from outside: from a user, or from the
/// kernel when memory is short, which prefers suspended processes. Every other end is the task's own fault.
pub(super) fn end_without_outcome(
    status: ExitStatus,
    stopped: bool,
    short_of_memory: bool,
) -> TaskError {
    use std::os::unix::process::ExitStatusExt;
    let message = describe_exit(status);
    if status.signal() != Some(libc::SIGKILL) {
        return TaskError::task(message);
    }
    match (stopped, short_of_memory) {
        (true, _) => TaskError::retryable(format!("{message} while suspended"))
            .at(FaultPlace::HostMemory),
        (false, true) => TaskError::retryable(format!(
            "{message}; the kernel killed processes on this host for lack of memory: lower --task-memory, or give the \
             worker fewer slots"
        ))
        .at(FaultPlace::TaskMemory),
        (false, false) => TaskError::retryable(message),
    }
}

/// Adds the OOM kill of a child process, such as a command, to the error that it probably caused.
pub(super) fn with_bounds(error: TaskError, exceeded: Option<TaskError>) -> TaskError {
    let Some(exceeded) = exceeded else {
        return error;
    };
    TaskError {
        message: format!("{} ({})", exceeded.message, error.message),
        ..exceeded
    }
}

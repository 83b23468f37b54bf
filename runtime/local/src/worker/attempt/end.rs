//! Errors of processes that ended without reporting an outcome.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use napreduce_engine::FaultPlace;
use napreduce_protocol::TaskError;

use crate::process::describe_exit;

/// The end of a process that did not report an outcome.
pub(super) struct Death {
    pub(super) status: ExitStatus,
    pub(super) while_stopped: bool,
    /// Whether the kernel has killed processes on this host for lack of memory since it was started.
    pub(super) after_oom_kill: bool,
}

impl Death {
    /// Returns the error of the attempt. SIGKILL comes from outside: from a user, or from the kernel when memory is
    /// short, which prefers suspended processes. Every other end is the task's own fault.
    pub(super) fn error(&self) -> TaskError {
        let message = describe_exit(self.status);
        if self.status.signal() != Some(libc::SIGKILL) {
            return TaskError::task(message);
        }
        if self.while_stopped {
            let error = TaskError::retryable(format!("{message} while suspended"));
            return error.at(FaultPlace::HostMemory);
        }
        if self.after_oom_kill {
            let error = TaskError::retryable(format!(
                "{message}; the kernel killed processes on this host for lack of memory: lower --task-memory, or give \
                 the worker fewer slots"
            ));
            return error.at(FaultPlace::TaskMemory);
        }
        TaskError::retryable(message)
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

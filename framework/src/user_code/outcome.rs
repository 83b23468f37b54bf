//! What a user's closure may return: nothing, or a result whose error fails the task with its message.
//!
//! Owns that one conversion. Does not own retries: the coordinator counts the failures of a task.

use std::any::Any;
use std::fmt::Display;

use napreduce_live::TaskError;

/// What `map` and `reduce` closures return: `()`, or `Result<(), E>` with any printable error.
///
/// The error of a closure is its task's own fault, and the task is tried again.
///
/// ```
/// use std::num::ParseIntError;
///
/// use napreduce::{Emit, Job};
///
/// let job = Job::text()
///     .map(|line: &str, out: &mut Emit<u64, ()>| -> Result<(), ParseIntError> {
///         out.emit(line.trim().parse()?, ());
///         Ok(())
///     })
///     .reduce(|number, _, out| out.emit(number, ()));
/// # let _ = job;
/// ```
///
/// A [`TaskError`] stays what it is. So a closure says that no further try can help, and the job fails at
/// once:
///
/// ```
/// use napreduce::{Emit, Job, TaskError};
///
/// let job = Job::text()
///     .map(|line: &str, out: &mut Emit<u64, ()>| -> Result<(), TaskError> {
///         out.emit(line.parse().map_err(|_| TaskError::fatal(format!("not a number: {line:?}")))?, ());
///         Ok(())
///     })
///     .reduce(|number, _, out| out.emit(number, ()));
/// # let _ = job;
/// ```
pub trait Outcome {
    /// Turns the value into the task's result.
    ///
    /// ```
    /// use napreduce::TaskError;
    /// use napreduce::builder::Outcome;
    ///
    /// assert_eq!(().outcome(), Ok(()));
    /// assert_eq!("x".parse::<u8>().map(drop).outcome(), Err(TaskError::task("invalid digit found in string")));
    /// ```
    fn outcome(self) -> Result<(), TaskError>;
}

impl Outcome for () {
    #[inline]
    fn outcome(self) -> Result<(), TaskError> {
        Ok(())
    }
}

impl<E: Display + 'static> Outcome for Result<(), E> {
    #[inline]
    fn outcome(self) -> Result<(), TaskError> {
        self.map_err(task_error)
    }
}

#[cold]
fn task_error<E: Display + 'static>(error: E) -> TaskError {
    match (&error as &dyn Any).downcast_ref::<TaskError>() {
        Some(own) => own.clone(),
        None => TaskError::task(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closure_decides_whether_another_try_may_help() {
        assert_eq!(Err(TaskError::fatal("no")).outcome(), Err(TaskError::fatal("no")));
        assert_eq!(Err(TaskError::retryable("later")).outcome(), Err(TaskError::retryable("later")));
        assert_eq!(Err("bad row").outcome(), Err(TaskError::task("bad row")));
        assert_eq!(Ok::<(), String>(()).outcome(), Ok(()));
    }
}

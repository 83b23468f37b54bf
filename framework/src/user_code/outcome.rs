//! What a user's closure may return: nothing, or a result whose error fails the task with its message.
//!
//! Owns that one conversion. Does not own retries: the coordinator counts the failures of a task.

use std::fmt::Display;

use napreduce_live::TaskError;

/// What `map` and `reduce` closures return: `()`, or `Result<(), E>` with any printable error.
///
/// ```
/// use napreduce::{Emit, Job};
///
/// let job = Job::text()
///     .map(|line: &str, out: &mut Emit<u64, ()>| -> Result<(), std::num::ParseIntError> {
///         out.emit(line.trim().parse()?, ());
///         Ok(())
///     })
///     .reduce(|number, _, out| out.emit(number, ()));
/// # let _ = job;
/// ```
pub trait Outcome {
    /// Turns the value into the task's result; an error is the task's own fault and counts towards its attempts.
    fn outcome(self) -> Result<(), TaskError>;
}

impl Outcome for () {
    #[inline]
    fn outcome(self) -> Result<(), TaskError> {
        Ok(())
    }
}

impl<E: Display> Outcome for Result<(), E> {
    #[inline]
    fn outcome(self) -> Result<(), TaskError> {
        self.map_err(|error| TaskError::task(error.to_string()))
    }
}

//! Return types of user closures: nothing, or a result whose error fails the task with its message.

use std::any::Any;
use std::fmt::{self, Display};

use napreduce_engine::{FailureClass, FaultPlace};
use napreduce_protocol::TaskError;

use crate::input::InputPlace;

/// The return type of `map` and `reduce` closures: `()`, or `Result<(), E>` with any printable error.
///
/// The error of a closure is its task's own fault, and the task is retried.
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
/// A [`TaskError`] is passed on unchanged. A closure can thus report that retries cannot help, and the job
/// fails at once:
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
#[diagnostic::on_unimplemented(
    message = "a map or reduce must return `()` or `Result<(), E>`, not `{Self}`",
    label = "returns `{Self}`",
    note = "end the closure with `;`, or with `Ok(())` and the type of its error: `-> Result<(), String>`"
)]
pub trait Outcome {
    /// Converts the value to the task's result.
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

/// Names the return type of a function.
pub trait Returns {
    /// The return type.
    type Returned;
}

impl<T> Returns for fn() -> T {
    type Returned = T;
}

/// The type `!`, which has no stable name yet: the return type of a closure that always panics, such as
/// `todo!()`.
type Never = <fn() -> ! as Returns>::Returned;

impl Outcome for Never {
    fn outcome(self) -> Result<(), TaskError> {
        self
    }
}

impl<E: Display + 'static> Outcome for Result<(), E> {
    #[inline]
    fn outcome(self) -> Result<(), TaskError> {
        self.map_err(task_error)
    }
}

/// The error for a record that a map cannot process. The job fails at once, unless `--bad-input skip` or a
/// number allows skipping such records. They are counted as `BAD_RECORDS`, and the log of a task quotes its
/// first one with file and line.
///
/// `?` converts any error to it, and [`BadRecord::new`] a text. Records already emitted for the bad one stay
/// emitted.
///
/// ```
/// use napreduce::builder::{BadRecord, Sum};
/// use napreduce::input::Skip;
/// use napreduce::testing::JobTest;
/// use napreduce::{Emit, Job};
///
/// let sums = || {
///     Job::text()
///         .map(|line: &str, out: &mut Emit<String, u64>| -> Result<(), BadRecord> {
///             let (name, number) = line.split_once(' ').ok_or_else(|| BadRecord::new("there is no number"))?;
///             out.emit(name, number.parse()?);
///             Ok(())
///         })
///         .combine(Sum::add)
///         .reduce_total(|name, sum, out| out.emit(name, sum))
/// };
/// let test = JobTest::new(sums).input("a 1\nb\na x\na 2\n").on_bad_input(Skip::All);
/// let output = test.run();
/// assert_eq!((output.text().as_str(), output.counters.get("BAD_RECORDS")), ("a\t3\n", 2));
/// test.assert_preemption_safe();
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct BadRecord {
    reason: String,
}

impl BadRecord {
    /// Creates the error; `reason` is the problem with the record.
    pub fn new(reason: impl Into<String>) -> BadRecord {
        BadRecord {
            reason: reason.into(),
        }
    }
}

/// `BadRecord` does not implement [`Error`](std::error::Error), so that all errors can be converted to it.
impl<E: std::error::Error> From<E> for BadRecord {
    fn from(error: E) -> BadRecord {
        BadRecord::new(error.to_string())
    }
}

impl Display for BadRecord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.reason)
    }
}

impl fmt::Debug for BadRecord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, formatter)
    }
}

/// Adds to the error of a map closure the record and the remedy. Bad records are described when it is known
/// that they are not skipped; a `TaskError` that is not the task's own fault is not about a record.
#[cold]
pub(super) fn about_record(error: TaskError, place: Option<&InputPlace>) -> TaskError {
    if error.class != FailureClass::Task || error.is_located {
        return error;
    }
    let Some(record) = place.and_then(InputPlace::describe) else {
        return error;
    };
    let message = format!(
        "{}, reading {record}; fix the record, or return builder::BadRecord for it and pass --bad-input skip",
        error.message
    );
    TaskError { message, ..error }.located()
}

#[cold]
fn task_error<E: Display + 'static>(error: E) -> TaskError {
    match (&error as &dyn Any).downcast_ref::<TaskError>() {
        Some(own) => own.clone(),
        None if (&error as &dyn Any).is::<BadRecord>() => {
            TaskError::fatal(error.to_string()).at(FaultPlace::Input)
        }
        None => TaskError::task(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closure_error_decides_about_retry() {
        assert_eq!(
            Err(TaskError::fatal("no")).outcome(),
            Err(TaskError::fatal("no"))
        );
        assert_eq!(
            Err(TaskError::retryable("later")).outcome(),
            Err(TaskError::retryable("later"))
        );
        assert_eq!(Err("bad row").outcome(), Err(TaskError::task("bad row")));
        assert_eq!(Ok::<(), String>(()).outcome(), Ok(()));
        let bad = TaskError::fatal("no number").at(FaultPlace::Input);
        assert_eq!(Err(BadRecord::new("no number")).outcome(), Err(bad));
    }
}

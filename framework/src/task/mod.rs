//! Code inside a task process: the loop of a map over its split and of a reduce over its groups, from the
//! input format through user code to the collector or part file.
//!
//! The public items are the identities of tasks, and their errors:
//!
//! ```
//! use napreduce::task::{FailureClass, TaskError};
//!
//! fn is_worth_another_try(error: &TaskError) -> bool {
//!     error.class != FailureClass::Fatal
//! }
//!
//! assert!(is_worth_another_try(&TaskError::task("line 3 has no date")));
//! ```

pub(crate) mod bad_records;
pub(crate) mod errors;
mod groups;
pub(crate) mod map;
pub(crate) mod map_only;
mod reading;
pub(crate) mod reduce;
mod saving;
pub(crate) mod values_in_keys;

/// One attempt at a task; it prints as in logs and commands.
///
/// ```
/// use napreduce::task::{AttemptId, JobId, TaskId, TaskKind};
///
/// let task = TaskId { job: JobId(7), kind: TaskKind::Map, index: 3 };
/// assert_eq!(AttemptId { task, number: 1 }.to_string(), "job_0007_m_0003.1");
/// ```
pub use napreduce_engine::AttemptId;

/// The consequence of a task's error for its job.
///
/// ```
/// use napreduce::TaskError;
/// use napreduce::task::FailureClass;
///
/// assert_eq!(TaskError::task("a bad row").class, FailureClass::Task);
/// assert_eq!(TaskError::retryable("no answer yet").class, FailureClass::Retryable);
/// assert_eq!(TaskError::fatal("no such table").class, FailureClass::Fatal);
/// ```
pub use napreduce_engine::FailureClass;

/// The cause of a failure, which a retry may avoid.
///
/// ```
/// use napreduce::TaskError;
/// use napreduce::task::FaultPlace;
///
/// let error = TaskError::fatal("line 3 has no date").at(FaultPlace::Input);
/// assert_eq!(error.place.in_words(), "input");
/// ```
pub use napreduce_engine::FaultPlace;

/// The id of a job, as in `nap`.
///
/// ```
/// assert_eq!(napreduce::task::JobId(7).to_string(), "job_0007");
/// ```
pub use napreduce_engine::JobId;

/// The id of a map or reduce task.
///
/// ```
/// use napreduce::task::{JobId, TaskId, TaskKind};
///
/// let task = TaskId { job: JobId(7), kind: TaskKind::Reduce, index: 0 };
/// assert_eq!(task.to_string(), "job_0007_r_0000");
/// ```
pub use napreduce_engine::TaskId;

/// The phase of a job that a task belongs to.
///
/// ```
/// use napreduce::TaskInfo;
/// use napreduce::task::TaskKind;
///
/// fn is_map(task: &TaskInfo) -> bool {
///     task.task().kind == TaskKind::Map
/// }
/// # let _ = is_map;
/// ```
pub use napreduce_engine::TaskKind;

/// The error of a task, and whether a retry may help.
///
/// ```
/// use napreduce::{Emit, Job, TaskError};
///
/// let job = Job::text()
///     .map(|line: &str, out: &mut Emit<String, u64>| -> Result<(), TaskError> {
///         let (word, count) = line.split_once('=').ok_or_else(|| TaskError::fatal("expected WORD=COUNT"))?;
///         out.emit(word, count.parse().map_err(|error| TaskError::task(format!("{count:?}: {error}")))?);
///         Ok(())
///     })
///     .reduce(|word, counts, out| out.emit(word, counts.sum()));
/// # let _ = job;
/// ```
pub use napreduce_protocol::TaskError;

/// A counter identified by its name.
///
/// ```
/// use napreduce::task::UserCounter;
///
/// let rows: UserCounter = napreduce::counter("rows of the documentation");
/// rows.add(2);
/// assert_eq!(rows.get(), 2);
/// ```
pub use napreduce_task::UserCounter;

pub use crate::user_code::TaskInfo;

//! Information for user code about its attempt.

use std::path::Path;

use napreduce_engine::{AttemptId, TaskId};
use napreduce_task::TaskContext;

/// Information for user code about its attempt.
///
/// ```
/// use napreduce::input::TextLines;
/// use napreduce::{Emit, Mapper, TaskError, TaskInfo};
///
/// /// Emits each line with the name of its file.
/// #[derive(Clone, Default)]
/// struct Located(String);
///
/// impl Mapper for Located {
///     type Input = TextLines;
///     type Key = String;
///     type Value = String;
///
///     fn setup(&mut self, task: &TaskInfo) -> Result<(), TaskError> {
///         self.0 = task.input().map(|path| path.display().to_string()).unwrap_or_default();
///         eprintln!("{} reads {}, as {}", task.task(), self.0, task.attempt());
///         Ok(())
///     }
///
///     fn map(&mut self, line: &str, out: &mut Emit<String, String>) -> Result<(), TaskError> {
///         out.emit(line, &self.0);
///         Ok(())
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct TaskInfo<'a> {
    attempt: AttemptId,
    input: Option<&'a Path>,
    /// `None` while the input is sampled.
    pub(crate) context: Option<&'a TaskContext>,
    /// The attempt's own directory; it is removed when the attempt ends.
    #[cfg_attr(
        not(feature = "streaming"),
        expect(dead_code, reason = "commands alone need it")
    )]
    pub(crate) scratch: Option<&'a Path>,
}

impl<'a> TaskInfo<'a> {
    pub(crate) fn new(
        context: &'a TaskContext,
        input: Option<&'a Path>,
        scratch: &'a Path,
    ) -> TaskInfo<'a> {
        TaskInfo {
            attempt: context.attempt(),
            input,
            context: Some(context),
            scratch: Some(scratch),
        }
    }

    /// Creates the information for sampling some input, before there is a task.
    pub(crate) fn of_sample(attempt: AttemptId, input: &'a Path) -> TaskInfo<'a> {
        TaskInfo {
            attempt,
            input: Some(input),
            context: None,
            scratch: None,
        }
    }

    /// Returns the attempt, which prints as `job_0007_m_0003.1`.
    pub fn attempt(&self) -> AttemptId {
        self.attempt
    }

    /// Returns the task.
    pub fn task(&self) -> TaskId {
        self.attempt.task
    }

    /// For a map, returns the input file. A task that reads several small files has a mapper for each, which
    /// is set up and finished as in a task of its own.
    pub fn input(&self) -> Option<&'a Path> {
        self.input
    }
}

//! A command as a reducer.

use napreduce_protocol::TaskError;
use napreduce_task::CommandLine;

use super::conversation::{Conversation, suspended_with_conversation};
use crate::output::{Output, Text};
use crate::user_code::{Reducer, TaskInfo};
use crate::values::Values;

/// A reducer that is a command: it reads the lines `key TAB value` of one partition, sorted by key, and
/// writes the lines of the part file.
///
/// Keys and values are not escaped: a key must not contain a TAB or a newline, and a value no newline. See
/// the [module](crate::streaming).
///
/// ```
/// use napreduce::streaming::CommandReducer;
/// use napreduce::testing::JobTest;
/// use napreduce::{Emit, Job};
///
/// let job = || {
///     Job::bytes()
///         .map(|line: &[u8], out: &mut Emit<Vec<u8>, Vec<u8>>| out.emit(line, b""))
///         .reducer(CommandReducer::new("cut -f 1 | uniq"))
/// };
/// assert_eq!(JobTest::new(job).input("to be\nto be\n").run().text(), "to be\n");
/// ```
#[derive(Debug, Clone)]
#[must_use = "a command runs in a job: give it to `reducer`"]
pub struct CommandReducer {
    conversation: Conversation,
}

impl CommandReducer {
    /// Creates a reducer that runs `command` with `sh -c`.
    pub fn new(command: impl Into<String>) -> CommandReducer {
        CommandReducer {
            conversation: Conversation::new(CommandLine::new("reducer", command)),
        }
    }
}

// `save` is not supported: a command cannot be asked for its state.
impl Reducer for CommandReducer {
    type Group = Vec<u8>;
    type Key = Vec<u8>;
    type Value = Vec<u8>;
    type Output = Text;

    fn setup(&mut self, task: &TaskInfo<'_>, _: &mut Output<Text>) -> Result<(), TaskError> {
        self.conversation.start(task)
    }

    fn reduce(
        &mut self,
        key: &[u8],
        values: &mut Values<'_, Vec<u8>, Vec<u8>>,
        out: &mut Output<Text>,
    ) -> Result<(), TaskError> {
        while let Some(value) = values.next() {
            self.conversation.send(&[key, b"\t", value, b"\n"], out)?;
        }
        Ok(())
    }

    /// The command does not see the boundaries between calls, so it is also notified of a suspend inside a
    /// group.
    fn resumes_in_group(&self) -> bool {
        true
    }

    suspended_with_conversation!();

    fn finish(&mut self, out: &mut Output<Text>) -> Result<(), TaskError> {
        self.conversation.finish(out)
    }
}

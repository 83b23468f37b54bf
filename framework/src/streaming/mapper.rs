//! A command as the map of a job, with and without a reduce.

use std::num::NonZeroU32;

use napreduce_protocol::TaskError;
use napreduce_task::{CommandLine, SuspendHooks};

use super::conversation::{Conversation, Records, suspended_with_conversation};
use super::lines::FirstFields;
use crate::emit::Emit;
use crate::input::ByteLines;
use crate::output::{Output, Text};
use crate::state::Save;
use crate::user_code::{Mapper, PartMap, TaskInfo};

/// The default separator of fields.
pub(super) const TAB: u8 = b'\t';

/// A mapper that is a command: it reads lines, each with a newline, and writes lines of `key TAB value`.
///
/// See the [module](crate::streaming).
///
/// ```
/// use napreduce::Job;
/// use napreduce::streaming::CommandMapper;
/// use napreduce::testing::JobTest;
///
/// let job = || Job::bytes().mapper(CommandMapper::new("tr a-z A-Z")).reduce(|line, _, out| out.emit(line, ()));
/// assert_eq!(JobTest::new(job).input("to be\n").run().text(), "TO BE\n");
/// ```
#[derive(Debug, Clone)]
#[must_use = "a command runs in a job: give it to `mapper`"]
pub struct CommandMapper {
    conversation: Conversation,
    key: FirstFields,
}

impl CommandMapper {
    /// Creates a mapper that runs `command` with `sh -c`.
    pub fn new(command: impl Into<String>) -> CommandMapper {
        CommandMapper::of(CommandLine::new("mapper", command))
    }

    pub(super) fn of(line: CommandLine) -> CommandMapper {
        let key = FirstFields {
            count: NonZeroU32::MIN,
            separator: TAB,
        };
        CommandMapper {
            conversation: Conversation::new(line),
            key,
        }
    }

    /// Sets how many fields of a line, with the TABs between them, are the key (default one). A line with
    /// fewer fields is all key.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    ///
    /// use napreduce::Job;
    /// use napreduce::streaming::{CommandMapper, CommandReducer};
    /// use napreduce::testing::JobTest;
    ///
    /// let two = NonZeroU32::new(2).expect("not 0");
    /// let sorted = || Job::bytes().mapper(CommandMapper::new("cat").key_fields(two)).reducer(CommandReducer::new("cat"));
    /// let by_both = JobTest::new(sorted).input("a\t2\tx\na\t1\ty\n");
    /// assert_eq!(by_both.run().text(), "a\t1\ty\na\t2\tx\n");
    /// ```
    pub fn key_fields(self, key_fields: NonZeroU32) -> CommandMapper {
        CommandMapper {
            key: FirstFields {
                count: key_fields,
                ..self.key
            },
            ..self
        }
    }

    /// Sets the separator of the fields of a line (default TAB). A reducer always reads key TAB value.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::streaming::{CommandMapper, CommandReducer};
    /// use napreduce::testing::JobTest;
    ///
    /// let rows = || Job::bytes().mapper(CommandMapper::new("cat").separator(b',')).reducer(CommandReducer::new("cat"));
    /// assert_eq!(JobTest::new(rows).input("b,1\na,2\n").run().text(), "a\t2\nb\t1\n");
    /// ```
    pub fn separator(self, separator: u8) -> CommandMapper {
        CommandMapper {
            key: FirstFields {
                separator,
                ..self.key
            },
            ..self
        }
    }
}

// `save` is not supported: a command cannot be asked for its state.
impl Mapper for CommandMapper {
    type Input = ByteLines;
    type Key = Vec<u8>;
    type Value = Vec<u8>;

    fn setup(&mut self, task: &TaskInfo<'_>) -> Result<(), TaskError> {
        self.conversation.start(task)
    }

    fn map(&mut self, line: &[u8], out: &mut Emit<Vec<u8>, Vec<u8>>) -> Result<(), TaskError> {
        self.conversation
            .send(&[line, b"\n"], &mut Records { out, key: self.key })
    }

    suspended_with_conversation!();

    fn finish(&mut self, out: &mut Emit<Vec<u8>, Vec<u8>>) -> Result<(), TaskError> {
        self.conversation
            .finish(&mut Records { out, key: self.key })
    }
}

/// The command of a job without reduce: its output lines are the part file.
#[derive(Debug, Clone)]
pub(super) struct CommandPart {
    conversation: Conversation,
}

impl CommandPart {
    pub(super) fn new(command: String) -> CommandPart {
        CommandPart {
            conversation: Conversation::new(CommandLine::new("mapper", command)),
        }
    }
}

impl PartMap<ByteLines, Text> for CommandPart {
    fn setup(&mut self, task: &TaskInfo<'_>) -> Result<(), TaskError> {
        self.conversation.start(task)
    }

    fn map(&mut self, line: &[u8], out: &mut Output<Text>) -> Result<(), TaskError> {
        self.conversation.send(&[line, b"\n"], out)
    }

    fn save(&self, _: &mut Vec<u8>) -> Result<Save, TaskError> {
        Ok(Save::Unsupported)
    }

    fn finish(&mut self, out: &mut Output<Text>) -> Result<(), TaskError> {
        self.conversation.finish(out)
    }
}

impl SuspendHooks for CommandPart {
    suspended_with_conversation!();
}

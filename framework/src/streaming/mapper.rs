//! A command as the mapper of a job with a reduce.
//!
//! Owns what the command reads. Does not own the command's process (`conversation`).

use napreduce_live::{SuspendHooks, TaskError};

use super::conversation::Conversation;
use crate::emit::Emit;
use crate::input::ByteLines;
use crate::user_code::{Mapper, TaskInfo};

/// A mapper that is a command: it reads lines, each with a newline, and writes lines of `key TAB value`.
///
/// See the [module](crate::streaming).
#[derive(Debug, Clone)]
pub struct CommandMapper {
    conversation: Conversation,
}

impl CommandMapper {
    /// A command for `sh -c`.
    pub fn new(command: impl Into<String>) -> CommandMapper {
        CommandMapper { conversation: Conversation::new("mapper", command.into()) }
    }
}

// It says nothing about its state: there is no way to ask a command for it.
impl Mapper for CommandMapper {
    type Input = ByteLines;
    type Key = Vec<u8>;
    type Value = Vec<u8>;

    fn setup(&mut self, task: &TaskInfo<'_>) -> Result<(), TaskError> {
        self.conversation.begin(task)
    }

    fn map(&mut self, line: &[u8], out: &mut Emit<Vec<u8>, Vec<u8>>) -> Result<(), TaskError> {
        self.conversation.say(&[line, b"\n"], out)
    }

    fn on_suspend(&mut self) -> Result<(), TaskError> {
        self.conversation.on_suspend()
    }

    fn on_resume(&mut self) -> Result<(), TaskError> {
        self.conversation.on_resume()
    }

    fn finish(&mut self, out: &mut Emit<Vec<u8>, Vec<u8>>) -> Result<(), TaskError> {
        self.conversation.end(out)
    }
}

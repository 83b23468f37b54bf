//! A command as the map of a job without reduce.

use napreduce_protocol::TaskError;
use napreduce_task::{CommandLine, SuspendHooks};

use super::conversation::{Conversation, suspended_with_conversation};
use crate::input::ByteLines;
use crate::output::{Output, Text};
use crate::state::Save;
use crate::user_code::{PartMap, TaskInfo};

/// Lines in, lines of a part file out.
#[derive(Debug, Clone)]
pub(super) struct CommandPart {
    conversation: Conversation,
}

impl CommandPart {
    pub(super) fn new(command: String) -> CommandPart {
        CommandPart { conversation: Conversation::new(CommandLine::new("mapper", command)) }
    }
}

impl PartMap<ByteLines, Text> for CommandPart {
    fn setup(&mut self, task: &TaskInfo<'_>) -> Result<(), TaskError> {
        self.conversation.begin(task)
    }

    fn map(&mut self, line: &[u8], out: &mut Output<Text>) -> Result<(), TaskError> {
        self.conversation.say(&[line, b"\n"], out)
    }

    fn save(&self, _: &mut Vec<u8>) -> Result<Save, TaskError> {
        Ok(Save::Unsupported)
    }

    fn finish(&mut self, out: &mut Output<Text>) -> Result<(), TaskError> {
        self.conversation.end(out)
    }
}

impl SuspendHooks for CommandPart {
    suspended_with_conversation!();
}

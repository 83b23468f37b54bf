//! The command of one attempt: lines in, lines out.

use napreduce_engine::FaultPlace;
use napreduce_protocol::TaskError;
use napreduce_task::{CommandLine, RunningCommand, SuspendHooks};

use super::lines::{FirstFields, LineTooLong, OutputLines};
use super::place::make_place;
use crate::emit::Emit;
use crate::output::{Output, Text};
use crate::task::errors::collect_error;
use crate::user_code::TaskInfo;

/// Forwards a suspend to the command in `conversation`.
macro_rules! suspended_with_conversation {
    () => {
        fn on_suspend(&mut self) -> Result<(), napreduce_protocol::TaskError> {
            napreduce_task::SuspendHooks::on_suspend(&mut self.conversation)
        }

        fn on_resume(&mut self) -> Result<(), napreduce_protocol::TaskError> {
            napreduce_task::SuspendHooks::on_resume(&mut self.conversation)
        }
    };
}

pub(super) use suspended_with_conversation;

/// A receiver of the command's lines.
pub(super) trait Lines {
    fn line(&mut self, line: &[u8]);

    /// Returns a kept error. A command may write forever without reading a record.
    fn check(&mut self) -> Result<(), TaskError>;
}

/// Records for the reduces.
pub(super) struct Records<'out> {
    pub(super) out: &'out mut Emit<Vec<u8>, Vec<u8>>,
    pub(super) key: FirstFields,
}

impl Lines for Records<'_> {
    #[inline]
    fn line(&mut self, line: &[u8]) {
        let (key, value) = self.key.key_and_value(line);
        self.out.emit(key, value);
    }

    fn check(&mut self) -> Result<(), TaskError> {
        self.out.check().map_err(collect_error)
    }
}

/// Lines of a part file, unchanged.
impl Lines for Output<Text> {
    #[inline]
    fn line(&mut self, line: &[u8]) {
        self.emit(line, ());
    }

    fn check(&mut self) -> Result<(), TaskError> {
        Ok(Output::check(self)?)
    }
}

/// A command in a job; its running process belongs to one attempt and is not cloned.
#[derive(Debug)]
pub(super) struct Conversation {
    line: CommandLine,
    at_work: Option<(RunningCommand, OutputLines)>,
}

impl Clone for Conversation {
    fn clone(&self) -> Conversation {
        Conversation::new(self.line.clone())
    }
}

impl Conversation {
    pub(super) fn new(line: CommandLine) -> Conversation {
        Conversation { line, at_work: None }
    }

    /// Starts the command.
    pub(super) fn begin(&mut self, task: &TaskInfo<'_>) -> Result<(), TaskError> {
        let (Some(context), Some(scratch)) = (task.context, task.scratch) else {
            let (role, command) = self.line.first();
            return Err(TaskError::fatal(format!(
                "the input of the {role} `{command}` cannot be sampled for a total order: a command is run on whole splits only"
            )));
        };
        let place = make_place(scratch, task.input())?;
        let mut running = RunningCommand::start(&self.line, &place, context.presence())?;
        running.judge_by_output();
        let longest = usize::try_from(context.memory()).unwrap_or(usize::MAX);
        self.at_work = Some((running, OutputLines::new(longest)));
        Ok(())
    }

    /// Writes more input to the command, in parts.
    pub(super) fn say(&mut self, parts: &[&[u8]], out: &mut impl Lines) -> Result<(), TaskError> {
        let (role, command) = self.line.first();
        let Some((running, lines)) = &mut self.at_work else { return Err(never_begun(role, command)) };
        running.feed(parts, &mut |piece| pass_on(piece, lines, out, role, command))
    }

    /// Reads the remaining output of the command, and waits for its end.
    pub(super) fn end(&mut self, out: &mut impl Lines) -> Result<(), TaskError> {
        let (role, command) = self.line.first();
        let Some((running, lines)) = &mut self.at_work else { return Err(never_begun(role, command)) };
        running.finish(&mut |piece| pass_on(piece, lines, out, role, command))?;
        lines.finish(|line| out.line(line));
        self.at_work = None;
        out.check()
    }
}

fn pass_on(
    piece: &[u8],
    lines: &mut OutputLines,
    out: &mut impl Lines,
    role: &str,
    command: &str,
) -> Result<(), TaskError> {
    lines.take(piece, |line| out.line(line)).map_err(|error: LineTooLong| {
        let message = format!("the {role} `{command}` wrote {error}");
        TaskError::fatal(message).at(FaultPlace::TaskMemory)
    })?;
    out.check()
}

/// The loops of tasks call `setup` first; a user's test may not.
fn never_begun(role: &str, command: &str) -> TaskError {
    TaskError::task(format!("the {role} `{command}` was given a record before its set-up"))
}

impl SuspendHooks for Conversation {
    fn on_suspend(&mut self) -> Result<(), TaskError> {
        self.at_work.as_mut().map_or(Ok(()), |(running, _)| running.on_suspend())
    }

    fn on_resume(&mut self) -> Result<(), TaskError> {
        self.at_work.as_mut().map_or(Ok(()), |(running, _)| running.on_resume())
    }
}

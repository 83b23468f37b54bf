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

/// A command in a job. Its process belongs to one attempt and is not cloned.
#[derive(Debug)]
pub(super) struct Conversation {
    line: CommandLine,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    command: RunningCommand,
    lines: OutputLines,
}

impl Clone for Conversation {
    fn clone(&self) -> Conversation {
        Conversation::new(self.line.clone())
    }
}

impl Conversation {
    pub(super) fn new(line: CommandLine) -> Conversation {
        Conversation {
            line,
            running: None,
        }
    }

    pub(super) fn start(&mut self, task: &TaskInfo<'_>) -> Result<(), TaskError> {
        let (Some(context), Some(scratch)) = (task.context, task.scratch) else {
            let (role, command) = self.line.first();
            return Err(TaskError::fatal(format!(
                "the {role} `{command}` cannot be sampled for a total order: it can only run on whole splits; \
                 remove `total_order` or sample with a mapper in Rust"
            )));
        };
        let place = make_place(scratch, task.input())?;
        let mut command = RunningCommand::start(&self.line, &place, context.presence())?;
        command.judge_by_output();
        let limit = usize::try_from(context.memory()).unwrap_or(usize::MAX);
        self.running = Some(Running {
            command,
            lines: OutputLines::new(limit),
        });
        Ok(())
    }

    /// Writes more input to the command, in parts.
    pub(super) fn send(&mut self, parts: &[&[u8]], out: &mut impl Lines) -> Result<(), TaskError> {
        let Some(Running { command, lines }) = &mut self.running else {
            return Err(not_started(&self.line));
        };
        command.feed(parts, &mut |piece| forward(piece, lines, out, &self.line))
    }

    /// Reads the remaining output of the command, and waits for its end.
    pub(super) fn finish(&mut self, out: &mut impl Lines) -> Result<(), TaskError> {
        let Some(Running { command, lines }) = &mut self.running else {
            return Err(not_started(&self.line));
        };
        command.finish(&mut |piece| forward(piece, lines, out, &self.line))?;
        lines.finish(|line| out.line(line));
        self.running = None;
        out.check()
    }
}

fn forward(
    piece: &[u8],
    lines: &mut OutputLines,
    out: &mut impl Lines,
    line: &CommandLine,
) -> Result<(), TaskError> {
    lines
        .take(piece, |line| out.line(line))
        .map_err(|error: LineTooLong| {
            let (role, command) = line.first();
            let message = format!("the {role} `{command}` wrote {error}");
            TaskError::fatal(message).at(FaultPlace::TaskMemory)
        })?;
    out.check()
}

/// Task loops call `setup` first; a user's test may not.
fn not_started(line: &CommandLine) -> TaskError {
    let (role, command) = line.first();
    TaskError::task(format!(
        "the {role} `{command}` received a record before `setup`; call `setup` first"
    ))
}

impl SuspendHooks for Conversation {
    fn on_suspend(&mut self) -> Result<(), TaskError> {
        self.running
            .as_mut()
            .map_or(Ok(()), |running| running.command.on_suspend())
    }

    fn on_resume(&mut self) -> Result<(), TaskError> {
        self.running
            .as_mut()
            .map_or(Ok(()), |running| running.command.on_resume())
    }
}

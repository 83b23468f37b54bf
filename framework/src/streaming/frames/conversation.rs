//! The program of one attempt: its life cycle, messages and errors.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use napreduce_protocol::TaskError;
use napreduce_task::{CommandLine, Presence, RunningCommand, SuspendHooks};

use super::super::place::make_place;
use super::batch::Batch;
use super::frame::{Frame, FrameError, FrameKind};
use super::hello::{Greeting, Role, VERSION};
use super::places::Places;
use super::program::{FramesProgram, environment};
use super::receiver::{Answer, ProgramError, Receiver, TakeBatch};
use crate::input::InputPlace;
use crate::state::Save;
use crate::user_code::TaskInfo;

/// Time to exit for a program that has closed its input, before it is killed.
const EXIT_GRACE: Duration = Duration::from_secs(5);

/// A program in a job. Its process belongs to one attempt and is not cloned.
#[derive(Debug)]
pub(super) struct Conversation {
    program: Arc<FramesProgram>,
    role: Role,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    title: Title,
    command: RunningCommand,
    receiver: Receiver,
    batch: Batch,
    places: Places,
    presence: Presence,
    /// Number of records or values sent.
    sent: u64,
    /// The greeting, until it is sent.
    greeting: Option<PendingGreeting>,
}

#[derive(Debug)]
struct PendingGreeting {
    input: Option<String>,
    attempt: String,
    /// The checkpoint to restore.
    state: Option<Vec<u8>>,
}

impl Clone for Conversation {
    fn clone(&self) -> Conversation {
        Conversation::new(Arc::clone(&self.program), self.role)
    }
}

impl Conversation {
    pub(super) fn new(program: Arc<FramesProgram>, role: Role) -> Conversation {
        Conversation {
            program,
            role,
            running: None,
        }
    }

    /// Starts the program. The greeting is sent with the first input, so that a state can still be added.
    pub(super) fn start(&mut self, task: &TaskInfo<'_>) -> Result<(), TaskError> {
        let (Some(context), Some(scratch)) = (task.context, task.scratch) else {
            return Err(TaskError::fatal(format!(
                "the program `{}` cannot be sampled for a total order: it can only run on whole splits",
                self.program.name
            )));
        };
        let mut place = make_place(scratch, task.input())?;
        place
            .environment
            .extend(environment(&place, &self.program.py_files));
        let role = if self.role == Role::Map {
            "mapper"
        } else {
            "reducer"
        };
        let line = CommandLine::new(role, &self.program.command);
        let command = RunningCommand::start(&line, &place, context.presence())?;
        let limit = usize::try_from(context.memory()).unwrap_or(usize::MAX);
        self.running = Some(Running {
            title: Title {
                role,
                name: self.program.name.clone(),
            },
            command,
            receiver: Receiver::new(self.program.description.clone(), limit),
            batch: Batch::default(),
            places: Places::default(),
            presence: context.presence(),
            sent: 0,
            greeting: Some(PendingGreeting {
                input: task.input().map(|path| path.display().to_string()),
                attempt: task.attempt().to_string(),
                state: None,
            }),
        });
        Ok(())
    }

    /// Sets the state to restore, which is part of the greeting.
    pub(super) fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        if let Some(greeting) = &mut self.running()?.greeting {
            greeting.state = Some(state.to_vec());
        }
        Ok(())
    }

    /// Adds a record to the batch, and sends the batch if it is full.
    #[inline]
    pub(super) fn record(
        &mut self,
        record: &[u8],
        place: &InputPlace,
        out: &mut impl TakeBatch,
    ) -> Result<(), TaskError> {
        let running = self.running()?;
        running.places.note(place);
        running.collect(record)?;
        if running.batch.is_full() {
            self.send_batch(FrameKind::RecordBatch, out)
        } else {
            Ok(())
        }
    }

    pub(super) fn group(&mut self, key: &[u8], out: &mut impl TakeBatch) -> Result<(), TaskError> {
        self.send(FrameKind::Group, key, out)
    }

    /// Adds a value of the group to the batch, and sends the batch if it is full.
    #[inline]
    pub(super) fn value(
        &mut self,
        value: &[u8],
        out: &mut impl TakeBatch,
    ) -> Result<(), TaskError> {
        let running = self.running()?;
        running.collect(value)?;
        if running.batch.is_full() {
            self.send_batch(FrameKind::Values, out)
        } else {
            Ok(())
        }
    }

    pub(super) fn end_group(&mut self, out: &mut impl TakeBatch) -> Result<(), TaskError> {
        self.send_batch(FrameKind::Values, out)?;
        self.send(FrameKind::GroupEnd, b"", out)
    }

    /// Sends all pending input and requests the state, if the program supports that.
    pub(super) fn request_state(&mut self, out: &mut impl TakeBatch) -> Result<(), TaskError> {
        if !self.is_saved() {
            return Ok(());
        }
        self.send_batch(FrameKind::RecordBatch, out)?;
        self.running()?.receiver.expect_state();
        self.send(FrameKind::Save, b"", out)?;
        let running = self.running()?;
        while running.receiver.answer().is_none() {
            if running.command.has_ended() || !running.command.takes_input() {
                return Err(running.ended_early(out));
            }
            running.attend(out)?;
        }
        running.presence.answer(running.sent);
        out.check()
    }

    /// Appends the received state. Before a request, returns whether saving is supported.
    pub(super) fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        if !self.is_saved() {
            return Ok(Save::Unsupported);
        }
        let Some(running) = &self.running else {
            return Ok(Save::Stateless);
        };
        match running.receiver.answer() {
            Some(Answer::Stateless) => Ok(Save::Stateless),
            Some(Answer::State(answer)) => {
                state.extend_from_slice(answer);
                Ok(Save::Saved)
            }
            None => Err(TaskError::task(format!(
                "`{}`: `save` was called before `flush`, which requests the state",
                self.program.name
            ))),
        }
    }

    /// Signals the end of input, reads the remaining output, and waits for the exit.
    pub(super) fn finish(&mut self, out: &mut impl TakeBatch) -> Result<(), TaskError> {
        if self.role == Role::Map {
            self.send_batch(FrameKind::RecordBatch, out)?;
        }
        self.running()?.receiver.expect_finish();
        self.send(FrameKind::End, b"", out)?;
        let Running {
            title,
            command,
            receiver,
            places,
            presence,
            ..
        } = self.running()?;
        command.finish(&mut |piece| {
            let result = receiver
                .take(piece, out)
                .map_err(|error| title.task_error(error, places));
            presence.answer(receiver.done());
            result
        })?;
        if let Some(missing) = receiver.missing() {
            return Err(title.error(format_args!("ended {missing}")));
        }
        self.running = None;
        out.check()
    }

    fn is_saved(&self) -> bool {
        let saves = &self.program.description.saves;
        if self.role == Role::Map {
            saves.map
        } else {
            saves.reduce
        }
    }

    fn send_batch(&mut self, kind: FrameKind, out: &mut impl TakeBatch) -> Result<(), TaskError> {
        let running = self.running()?;
        if running.batch.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut running.batch);
        running.places.end_batch();
        running.sent += batch.count();
        running.presence.give(running.sent);
        let frame = batch
            .frame(kind)
            .map_err(|error| running.title.frame_error(&error))?;
        let sent = self.feed(&frame.parts(), out);
        let running = self.running()?;
        // Reuses the buffers.
        running.batch = batch;
        running.batch.clear();
        sent
    }

    fn send(
        &mut self,
        kind: FrameKind,
        payload: &[u8],
        out: &mut impl TakeBatch,
    ) -> Result<(), TaskError> {
        let running = self.running()?;
        let frame = Frame { kind, payload }
            .encoded()
            .map_err(|error| running.title.frame_error(&error))?;
        self.feed(&[&frame], out)
    }

    fn feed(&mut self, parts: &[&[u8]], out: &mut impl TakeBatch) -> Result<(), TaskError> {
        let program = Arc::clone(&self.program);
        let role = self.role;
        let running = self.running()?;
        let greeting = match running.greeting.take() {
            Some(PendingGreeting {
                input,
                attempt,
                state,
            }) => {
                let greeting = Greeting {
                    version: VERSION,
                    role,
                    attempt: Some(attempt),
                    input,
                    parameters: &program.parameters,
                    restores: state.is_some(),
                    tells_done: true,
                };
                let frame = greeting.frame(state.as_deref());
                Some(frame.map_err(|error| running.title.frame_error(&error))?)
            }
            None => None,
        };
        let Running {
            title,
            command,
            receiver,
            places,
            presence,
            ..
        } = running;
        let mut take = |piece: &[u8]| {
            let result = receiver
                .take(piece, out)
                .map_err(|error| title.task_error(error, places));
            presence.answer(receiver.done());
            result
        };
        if let Some(greeting) = greeting {
            command.feed(&[&greeting], &mut take)?;
        }
        command.feed(parts, &mut take)?;
        if running.command.takes_input() {
            out.check()
        } else {
            Err(running.ended_early(out))
        }
    }

    /// Task loops call `setup` first; a user's test may not.
    fn running(&mut self) -> Result<&mut Running, TaskError> {
        let Conversation {
            program, running, ..
        } = self;
        running.as_mut().ok_or_else(|| {
            let name = &program.name;
            TaskError::task(format!(
                "`{name}` received a record before `setup`; call `setup` first"
            ))
        })
    }
}

impl Running {
    #[inline]
    fn collect(&mut self, string: &[u8]) -> Result<(), TaskError> {
        if self.sent == 0 && self.batch.is_empty() {
            self.presence.give(0);
        }
        self.batch
            .push(string)
            .map_err(|error| self.title.frame_error(&error))
    }

    /// Waits for output or progress, and handles it.
    fn attend(&mut self, out: &mut impl TakeBatch) -> Result<(), TaskError> {
        let Running {
            title,
            command,
            receiver,
            places,
            ..
        } = self;
        command.attend(&mut |piece| {
            receiver
                .take(piece, out)
                .map_err(|error| title.task_error(error, places))
        })
    }

    /// Waits until a program that has closed its input exits; returns the error.
    fn ended_early(&mut self, out: &mut impl TakeBatch) -> TaskError {
        let begin = Instant::now();
        while !self.command.has_ended() {
            if let Err(error) = self.attend(out) {
                return error;
            }
            if begin.elapsed() > EXIT_GRACE {
                return self
                    .title
                    .error("closed its input before reading all of it");
            }
        }
        let missing = self
            .receiver
            .missing()
            .unwrap_or("before reading all of its input");
        self.title.error(format_args!("ended {missing}"))
    }
}

/// Role and name of the program in messages.
#[derive(Debug)]
struct Title {
    role: &'static str,
    name: String,
}

impl Title {
    fn error(&self, what: impl Display) -> TaskError {
        TaskError::task(format!("the {} `{}` {what}", self.role, self.name)).located()
    }

    fn frame_error(&self, error: &FrameError) -> TaskError {
        TaskError::fatal(format!(
            "the {} `{}` cannot be sent {error}",
            self.role, self.name
        ))
    }

    fn task_error(&self, error: ProgramError, places: &Places) -> TaskError {
        match error {
            ProgramError::Protocol(what) => self.error(format_args!("sent {what}")),
            ProgramError::Changed => {
                let error = self.error(
                    "describes another job than at submission; the description must not depend on where the \
                     program runs",
                );
                TaskError::fatal(error.message).located()
            }
            ProgramError::Failed(failure) => {
                let place = failure.record.and_then(|record| places.of(record));
                let place = place
                    .map(|place| format!(", mapping {place}"))
                    .unwrap_or_default();
                self.error(format_args!(
                    "failed{place}: {}",
                    failure.message.trim_end()
                ))
            }
        }
    }
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

//! The program of one attempt: its life cycle, messages and errors.

use std::sync::Arc;
use std::time::{Duration, Instant};

use napreduce_protocol::TaskError;
use napreduce_task::{CommandLine, Presence, RunningCommand, SuspendHooks};

use super::super::place::make_place;
use super::batch::Batch;
use super::frame::{Frame, FrameError, FrameKind};
use super::frames_program::{FramesProgram, environment};
use super::hello::{Greeting, Role, VERSION};
use super::places::Places;
use super::talk::{Answer, TakeBatch, Talk, Wrong};
use crate::input::InputPlace;
use crate::state::Save;
use crate::user_code::TaskInfo;

/// Time to exit for a program that has stopped reading, before it is killed.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A program in a job; its running process belongs to one attempt and is not cloned.
#[derive(Debug)]
pub(super) struct Conversation {
    program: Arc<FramesProgram>,
    role: Role,
    at_work: Option<AtWork>,
}

#[derive(Debug)]
struct AtWork {
    who: Who,
    running: RunningCommand,
    talk: Talk,
    batch: Batch,
    places: Places,
    presence: Presence,
    /// Records or values sent.
    sent: u64,
    /// The greeting, until it is sent.
    untold: Option<Untold>,
}

#[derive(Debug)]
struct Untold {
    input: Option<String>,
    attempt: String,
    /// Of another one, that it goes on from.
    state: Option<Vec<u8>>,
}

impl Clone for Conversation {
    fn clone(&self) -> Conversation {
        Conversation::new(Arc::clone(&self.program), self.role)
    }
}

impl Conversation {
    pub(super) fn new(program: Arc<FramesProgram>, role: Role) -> Conversation {
        Conversation { program, role, at_work: None }
    }

    /// Starts the program. The greeting is sent with the first input, so that a state can still be added.
    pub(super) fn begin(&mut self, task: &TaskInfo<'_>) -> Result<(), TaskError> {
        let (Some(context), Some(scratch)) = (task.context, task.scratch) else {
            return Err(TaskError::fatal(format!(
                "the input of `{}` cannot be sampled for a total order: a program is run on whole splits only",
                self.program.name
            )));
        };
        let mut place = make_place(scratch, task.input())?;
        place.environment.extend(environment(&place, &self.program.py_files));
        let role = if self.role == Role::Map { "mapper" } else { "reducer" };
        let running = RunningCommand::start(
            &CommandLine::new(role, &self.program.command),
            &place,
            context.presence(),
        )?;
        let limit = usize::try_from(context.memory()).unwrap_or(usize::MAX);
        self.at_work = Some(AtWork {
            who: Who { role, name: self.program.name.clone() },
            running,
            talk: Talk::new(self.program.description.clone(), limit),
            batch: Batch::default(),
            places: Places::default(),
            presence: context.presence(),
            sent: 0,
            untold: Some(Untold {
                input: task.input().map(|path| path.display().to_string()),
                attempt: task.attempt().to_string(),
                state: None,
            }),
        });
        Ok(())
    }

    /// Sets the state to restore, which is part of the greeting.
    pub(super) fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        if let Some(untold) = &mut self.at_work()?.untold {
            untold.state = Some(state.to_vec());
        }
        Ok(())
    }

    /// Sends a record, as soon as a batch is full.
    #[inline]
    pub(super) fn record(
        &mut self,
        record: &[u8],
        place: &InputPlace,
        out: &mut impl TakeBatch,
    ) -> Result<(), TaskError> {
        let at_work = self.at_work()?;
        at_work.places.note(place);
        at_work.collect(record)?;
        if at_work.batch.is_full() { self.send_batch(FrameKind::RecordBatch, out) } else { Ok(()) }
    }

    /// Begins a group.
    pub(super) fn group(&mut self, key: &[u8], out: &mut impl TakeBatch) -> Result<(), TaskError> {
        self.send(FrameKind::Group, key, out)
    }

    /// Sends a value of the group, as soon as a batch is full.
    #[inline]
    pub(super) fn value(&mut self, value: &[u8], out: &mut impl TakeBatch) -> Result<(), TaskError> {
        let at_work = self.at_work()?;
        at_work.collect(value)?;
        if at_work.batch.is_full() { self.send_batch(FrameKind::Values, out) } else { Ok(()) }
    }

    /// Ends the group.
    pub(super) fn end_group(&mut self, out: &mut impl TakeBatch) -> Result<(), TaskError> {
        self.send_batch(FrameKind::Values, out)?;
        self.send(FrameKind::GroupEnd, b"", out)
    }

    /// Sends all pending input and requests the state, if the program supports that.
    pub(super) fn ask_for_state(&mut self, out: &mut impl TakeBatch) -> Result<(), TaskError> {
        if !self.is_saved() {
            return Ok(());
        }
        self.send_batch(FrameKind::RecordBatch, out)?;
        self.at_work()?.talk.want_state();
        self.send(FrameKind::Save, b"", out)?;
        let AtWork { who, running, talk, places, presence, sent, .. } = self.at_work()?;
        while talk.answer().is_none() {
            if running.has_ended() || !running.takes_input() {
                return Err(who.gone(running, talk, places, out));
            }
            running.attend(&mut |piece| talk.take(piece, out).map_err(|wrong| who.told(wrong, places)))?;
        }
        presence.answer(*sent);
        out.check()
    }

    /// Appends the received state; before a request, returns whether it is supported.
    pub(super) fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        if !self.is_saved() {
            return Ok(Save::Unsupported);
        }
        match self.at_work.as_ref().map(|at_work| at_work.talk.answer()) {
            None | Some(Some(Answer::Stateless)) => Ok(Save::Stateless),
            Some(Some(Answer::State(answered))) => {
                state.extend_from_slice(answered);
                Ok(Save::Saved)
            }
            Some(None) => {
                Err(TaskError::task(format!("`{}` was not asked for its state", self.program.name)))
            }
        }
    }

    /// Signals the end of input, reads the remaining output, and waits for the exit.
    pub(super) fn end(&mut self, out: &mut impl TakeBatch) -> Result<(), TaskError> {
        if self.role == Role::Map {
            self.send_batch(FrameKind::RecordBatch, out)?;
        }
        self.at_work()?.talk.say_end();
        self.send(FrameKind::End, b"", out)?;
        let AtWork { who, running, talk, places, presence, .. } = self.at_work()?;
        running.finish(&mut |piece| {
            let taken = talk.take(piece, out).map_err(|wrong| who.told(wrong, places));
            presence.answer(talk.done());
            taken
        })?;
        if let Some(missing) = talk.missing() {
            return Err(who.wrong(format_args!("ended {missing}")));
        }
        self.at_work = None;
        out.check()
    }

    fn is_saved(&self) -> bool {
        let saves = &self.program.description.saves;
        if self.role == Role::Map { saves.map } else { saves.reduce }
    }

    fn send_batch(&mut self, kind: FrameKind, out: &mut impl TakeBatch) -> Result<(), TaskError> {
        let at_work = self.at_work()?;
        if at_work.batch.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut at_work.batch);
        at_work.places.end_batch();
        at_work.sent += batch.count();
        at_work.presence.give(at_work.sent);
        let frame = batch.frame(kind).map_err(|error| at_work.who.too_much(&error))?;
        let sent = self.feed(&frame.parts(), out);
        let at_work = self.at_work()?;
        // Its buffers are used again.
        at_work.batch = batch;
        at_work.batch.clear();
        sent
    }

    fn send(&mut self, kind: FrameKind, payload: &[u8], out: &mut impl TakeBatch) -> Result<(), TaskError> {
        let at_work = self.at_work()?;
        let frame = Frame { kind, payload }.encoded().map_err(|error| at_work.who.too_much(&error))?;
        self.feed(&[&frame], out)
    }

    fn feed(&mut self, parts: &[&[u8]], out: &mut impl TakeBatch) -> Result<(), TaskError> {
        let (program, role) = (Arc::clone(&self.program), self.role);
        let AtWork { who, running, talk, places, presence, untold, .. } = self.at_work()?;
        let greeting = untold.take().map(|Untold { input, attempt, state }| {
            let (attempt, parameters) = (Some(attempt), &program.parameters);
            let restores = state.is_some();
            let tells_done = true;
            Greeting { version: VERSION, role, attempt, input, parameters, restores, tells_done }
                .frame(state.as_deref())
        });
        let greeting = greeting.transpose().map_err(|error| who.too_much(&error))?;
        let mut take = |piece: &[u8]| {
            let taken = talk.take(piece, out).map_err(|wrong| who.told(wrong, places));
            presence.answer(talk.done());
            taken
        };
        if let Some(greeting) = greeting {
            running.feed(&[&greeting], &mut take)?;
        }
        running.feed(parts, &mut take)?;
        match running.takes_input() {
            true => out.check(),
            false => Err(who.gone(running, talk, places, out)),
        }
    }

    /// The loops of tasks call `setup` first; a test of one's own may not.
    fn at_work(&mut self) -> Result<&mut AtWork, TaskError> {
        let Conversation { program, at_work, .. } = self;
        let never_begun =
            || TaskError::task(format!("`{}` was given a record before its set-up", program.name));
        at_work.as_mut().ok_or_else(never_begun)
    }
}

impl AtWork {
    #[inline]
    fn collect(&mut self, string: &[u8]) -> Result<(), TaskError> {
        if self.sent == 0 && self.batch.is_empty() {
            self.presence.give(0);
        }
        self.batch.push(string).map_err(|error| self.who.too_much(&error))
    }
}

/// Whom errors are about.
#[derive(Debug)]
struct Who {
    role: &'static str,
    name: String,
}

impl Who {
    fn wrong(&self, what: impl std::fmt::Display) -> TaskError {
        TaskError::task(format!("the {} `{}` {what}", self.role, self.name)).located()
    }

    /// It reads no more before its time: it has ended, is about to, or has to be ended.
    fn gone(
        &self,
        running: &mut RunningCommand,
        talk: &mut Talk,
        places: &Places,
        out: &mut impl TakeBatch,
    ) -> TaskError {
        let begin = Instant::now();
        while !running.has_ended() {
            let attended =
                running.attend(&mut |piece| talk.take(piece, out).map_err(|wrong| self.told(wrong, places)));
            match attended {
                Err(error) => return error,
                Ok(()) if begin.elapsed() > LAST_WORDS => {
                    return self.wrong(format_args!("closed its input before the end of it"));
                }
                Ok(()) => {}
            }
        }
        self.wrong(format_args!("ended {}", talk.missing().unwrap_or("before it had all of its input")))
    }

    fn too_much(&self, error: &FrameError) -> TaskError {
        TaskError::fatal(format!("the {} `{}` cannot be sent {error}", self.role, self.name))
    }

    fn told(&self, wrong: Wrong, places: &Places) -> TaskError {
        match wrong {
            Wrong::Sent(what) => self.wrong(format_args!("sent {what}")),
            Wrong::Other(what) => TaskError::fatal(self.wrong(what).message).located(),
            Wrong::Failed(failure) => {
                let place = failure.record.and_then(|record| places.of(record));
                let place = place.map(|place| format!(", mapping {place}")).unwrap_or_default();
                self.wrong(format_args!("failed{place}: {}", failure.message.trim_end()))
            }
        }
    }
}

impl SuspendHooks for Conversation {
    fn on_suspend(&mut self) -> Result<(), TaskError> {
        self.at_work.as_mut().map_or(Ok(()), |at_work| at_work.running.on_suspend())
    }

    fn on_resume(&mut self) -> Result<(), TaskError> {
        self.at_work.as_mut().map_or(Ok(()), |at_work| at_work.running.on_resume())
    }
}

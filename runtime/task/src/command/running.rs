//! A running command: feeds its input, takes its output, and suspends it with its task.
//!
//! One loop waits for all of these, so that the two sides cannot deadlock.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use napreduce_protocol::{Counter, TaskError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use wait4::Wait4;

use super::command_line::CommandLine;
use super::command_process::{CommandPlace, start_command};
use super::error::CommandError;
use super::family::Family;
use super::pipes::Pipes;
use super::reporter::Reporter;
use crate::context::{InFlight, Presence, SuspendHooks};

/// Input is buffered up to this size and written at once.
const KEPT_BYTES: usize = 64 << 10;
/// Interval of checks whether a command has completed its stop handler.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 2_000_000,
};
/// Interval of these checks for a command that may stop itself late.
const LATE_LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Interval of memory samples.
const MEMORY_EVERY: Duration = Duration::from_secs(1);
const MEMORY_LOOK: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Input that a command, or the programs of a pipeline, may have read but not processed.
const READ_AHEAD: u64 = 128 << 10;

/// A command that accepts no more input has usually ended; otherwise it is checked again after this many
/// pieces.
const UNWANTED_PER_LOOK: u64 = 1024;

/// Maximum pieces read from a pipe after the end of the command: more than a pipe holds.
const LAST_PIECES: u32 = 16;

/// Takes output of a command, in pieces of any length.
pub type TakeOutput<'t> = dyn FnMut(&[u8]) -> Result<(), TaskError> + 't;

/// A started command, killed on drop.
#[derive(Debug)]
pub struct RunningCommand {
    line: CommandLine,
    directory: Option<PathBuf>,
    child: Child,
    end: OwnedFd,
    /// Set once it is reaped; its process id may be reused then.
    status: Option<ExitStatus>,
    pipes: Pipes,
    reporter: Reporter,
    /// Whether all output is read and it has ended.
    done: bool,
    /// Pieces of input offered after it stopped reading.
    unwanted: u64,
    presence: Presence,
    /// It may handle SIGTSTP, which it gets at a boundary.
    _in_flight: InFlight,
    /// Bytes of input written to it.
    fed: u64,
    /// Whether progress is derived from its output rather than its input.
    is_judged_by_output: bool,
    /// Time of the last memory sample.
    looked: Instant,
    /// Whether it was sent SIGTSTP, which it handles.
    was_asked_to_stop: bool,
    /// Whether it was stopped before its stop handler had completed; it may still stop itself.
    may_stop_late: bool,
}

impl RunningCommand {
    /// Starts a command by `sh -c`.
    ///
    /// # Errors
    ///
    /// Fails if the shell cannot be started. A missing command is detected at its end.
    pub fn start(
        line: &CommandLine,
        place: &CommandPlace,
        presence: Presence,
    ) -> Result<RunningCommand, CommandError> {
        let failed = |error: io::Error| {
            let (role, command) = line.first();
            CommandError::NotStarted {
                role,
                command: command.to_owned(),
                error,
            }
        };
        let mut child = start_command(&line.script, place).map_err(failed)?;
        let missing = || io::Error::other("it has no pipes");
        let opened = presence.bell().and_then(|_| {
            let input = child.stdin.take().ok_or_else(missing)?;
            let output = child.stdout.take().ok_or_else(missing)?;
            let errors = child.stderr.take().ok_or_else(missing)?;
            // Not reaped yet, so its process id is not reused.
            Ok((
                pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?,
                Pipes::new(input, output, errors)?,
            ))
        });
        match opened {
            Ok((end, pipes)) => {
                presence.take_back();
                Ok(RunningCommand {
                    line: line.clone(),
                    directory: place.directory.clone(),
                    child,
                    end,
                    status: None,
                    pipes,
                    reporter: Reporter::default(),
                    done: false,
                    unwanted: 0,
                    _in_flight: presence.begin_in_flight(),
                    presence,
                    fed: 0,
                    is_judged_by_output: false,
                    looked: Instant::now(),
                    was_asked_to_stop: false,
                    may_stop_late: false,
                })
            }
            Err(error) => {
                // An error means that it has ended already.
                let _ = child.kill();
                let _ = child.wait();
                Err(failed(error))
            }
        }
    }

    /// Derives the attempt's progress from the command's output: a command that writes has processed its
    /// earlier input except for read-ahead. A command that writes only at its end shows no progress until
    /// then.
    pub fn judge_by_output(&mut self) {
        self.is_judged_by_output = true;
    }

    /// Writes input to the command and takes available output meanwhile. Input not read by a command that
    /// succeeds is dropped.
    ///
    /// # Errors
    ///
    /// Fails if the command has failed or its output cannot be taken.
    pub fn feed(&mut self, input: &[&[u8]], take: &mut TakeOutput<'_>) -> Result<(), TaskError> {
        if !self.pipes.takes_input() {
            self.unwanted += 1;
            if self.unwanted.is_multiple_of(UNWANTED_PER_LOOK) {
                self.look_for_failure()?;
            }
            return Ok(());
        }
        if self.is_judged_by_output && self.fed == 0 {
            self.presence.give(0);
        }
        self.pipes.append(input);
        self.fed += input.iter().map(|part| part.len() as u64).sum::<u64>();
        if self.is_judged_by_output && self.pipes.unwritten() >= KEPT_BYTES {
            self.presence.give(self.fed);
        }
        while self.pipes.unwritten() >= KEPT_BYTES {
            self.attend(take)?;
        }
        Ok(())
    }

    /// Returns whether it still accepts input.
    pub fn takes_input(&self) -> bool {
        self.pipes.takes_input()
    }

    /// Returns whether it has ended and all of its output was taken.
    pub fn has_ended(&self) -> bool {
        self.done
    }

    /// Closes the input, takes the rest of the output and waits for the end.
    ///
    /// # Errors
    ///
    /// See [`feed`](RunningCommand::feed).
    pub fn finish(&mut self, take: &mut TakeOutput<'_>) -> Result<(), TaskError> {
        while !self.done {
            if self.pipes.unwritten() == 0 && self.pipes.takes_input() {
                self.look_at_memory();
                self.pipes.close_input();
            }
            self.attend(take)?;
        }
        Ok(())
    }

    /// Waits for an event, at most a second, and handles it: writes input, takes output.
    ///
    /// # Errors
    ///
    /// See [`feed`](RunningCommand::feed).
    pub fn attend(&mut self, take: &mut TakeOutput<'_>) -> Result<(), TaskError> {
        let presence = self.presence.clone();
        presence.stand_still(self)?;
        let timeout = if self.may_stop_late {
            LATE_LOOK
        } else {
            MEMORY_LOOK
        };
        let waited = presence.bell().and_then(|bell| {
            let ready = self.pipes.wait(bell.as_fd(), &self.end, timeout)?;
            // Cleared before requests are checked, so that a later ring is not lost.
            bell.take();
            Ok(ready)
        });
        let ready = waited.map_err(|error| self.broken("wait for", error))?;
        if self.looked.elapsed() >= MEMORY_EVERY {
            self.look_at_memory();
        }
        if self.may_stop_late
            && let Some(family) = self.family()
        {
            family.continue_stopped();
        }
        if ready.input {
            self.pipes
                .write()
                .map_err(|error| self.broken("write to", error))?;
            presence.is_well();
            if !self.pipes.takes_input() {
                // Standard error is more informative than the status.
                for _ in 0..LAST_PIECES {
                    if !self.take_output(take)? {
                        break;
                    }
                }
                self.look_for_failure()?;
            }
        }
        if ready.output {
            self.take_output(take)?;
        }
        if ready.errors {
            self.listen()?;
        }
        if ready.ended {
            let Some(status) = self.reap()? else {
                return Ok(());
            };
            self.done = true;
            self.listen_to_the_end()?;
            self.judge(status)?;
        }
        Ok(())
    }

    /// Takes available output, at most a pipe full; returns whether there was any.
    fn take_output(&mut self, take: &mut TakeOutput<'_>) -> Result<bool, TaskError> {
        let taken = self.pipes.taken();
        let line = &self.line;
        let output = self
            .pipes
            .read()
            .map_err(|error| broken(line, "read from", error))?;
        if output.is_empty() {
            return Ok(false);
        }
        self.presence.is_well();
        if let Some(taken) = taken.filter(|_| self.is_judged_by_output) {
            self.presence.answer(taken.saturating_sub(READ_AHEAD));
        }
        take(output)?;
        Ok(true)
    }

    /// Checks whether a command that accepts no more input has failed, so that the failure is found before
    /// the end of the input.
    fn look_for_failure(&mut self) -> Result<(), TaskError> {
        if self.was_asked_to_stop {
            let (role, command) = self.line.first();
            return Err(CommandError::Disturbed {
                role,
                command: command.to_owned(),
            }
            .into());
        }
        let Some(status) = self.reap()? else {
            return Ok(());
        };
        self.listen_to_the_end()?;
        self.judge(status)
    }

    /// Returns the exit status if it has ended. Its CPU time is counted at that point.
    fn reap(&mut self) -> Result<Option<ExitStatus>, TaskError> {
        if self.status.is_none()
            && let Some(ended) = self
                .child
                .try_wait4()
                .map_err(|error| self.broken("wait for", error))?
        {
            self.status = Some(ended.status);
            let took = (ended.rusage.utime + ended.rusage.stime).as_millis();
            let counters = self.presence.counters();
            counters.add(
                Counter::CommandCpuMillis,
                u64::try_from(took).unwrap_or(u64::MAX),
            );
        }
        Ok(self.status)
    }

    /// Samples its memory.
    pub(super) fn look_at_memory(&mut self) {
        self.looked = Instant::now();
        if let Some(family) = self.family() {
            self.presence
                .counters()
                .add(Counter::PeakCommandBytes, family.peak_bytes());
        }
    }

    /// Takes its standard error; returns whether there was any.
    fn listen(&mut self) -> Result<bool, TaskError> {
        let line = &self.line;
        let piece = self
            .pipes
            .read_errors()
            .map_err(|error| broken(line, "listen to", error))?;
        let is_there = !piece.is_empty();
        if self.reporter.take(piece, &mut io::stderr().lock()) {
            self.presence.is_well();
        }
        Ok(is_there)
    }

    /// Takes standard error written before its end. Its orphans may continue to write and are not awaited.
    fn listen_to_the_end(&mut self) -> Result<(), TaskError> {
        for _ in 0..LAST_PIECES {
            if !self.listen()? {
                break;
            }
        }
        self.reporter.finish(&mut io::stderr().lock());
        Ok(())
    }

    /// Returns it with its descendants while it exists.
    fn family(&self) -> Option<Family> {
        self.status
            .is_none()
            .then(|| Family::new(Pid::from_child(&self.child)))
    }

    fn judge(&self, status: ExitStatus) -> Result<(), TaskError> {
        if status.success() {
            return Ok(());
        }
        let (role, command, status) = self.line.failed(self.directory.as_deref(), status);
        Err(CommandError::Failed {
            role,
            command: command.to_owned(),
            status,
        }
        .into())
    }

    fn broken(&self, doing: &'static str, error: io::Error) -> TaskError {
        broken(&self.line, doing, error)
    }
}

fn broken(line: &CommandLine, doing: &'static str, error: io::Error) -> TaskError {
    let (role, command) = line.first();
    CommandError::Pipe {
        doing,
        role,
        command: command.to_owned(),
        error,
    }
    .into()
}

impl SuspendHooks for RunningCommand {
    /// Sends SIGTSTP to programs that handle it. They have until the worker stops the process group; the wait
    /// ends early when they have stopped themselves.
    fn on_suspend(&mut self) -> Result<(), TaskError> {
        let Some(family) = self.family() else {
            return Ok(());
        };
        let asked = family.ask_to_stop();
        if asked.is_empty() {
            return Ok(());
        }
        self.was_asked_to_stop = true;
        let mut is_in_order = false;
        while self.presence.is_stopping() && !is_in_order {
            let bell = self
                .presence
                .bell()
                .map_err(|error| self.broken("wait for", error))?;
            let mut interest = [PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN)];
            // An interrupted poll counts as a check.
            let _ = poll(&mut interest, Some(&LOOK));
            bell.take();
            is_in_order = !family.is_getting_ready(&asked);
        }
        self.may_stop_late |= !is_in_order;
        Ok(())
    }

    /// Handles the resume of the process group by the worker. Processes that stop themselves later are
    /// continued when detected.
    fn on_resume(&mut self) -> Result<(), TaskError> {
        Ok(())
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        self.presence.take_back();
        if let Some(family) = self.family() {
            family.kill();
            // An error means that it has ended already.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

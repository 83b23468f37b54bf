//! A command at work: it is fed, its output is taken, and it stands still when its task does.
//!
//! Owns the one loop in which all of that is waited for, so that neither side ever waits for the other for
//! good. Does not own the pipes (`pipes`) nor the signals (`process`).

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
use super::error::CommandError;
use super::pipes::Pipes;
use super::reporter::Reporter;
use crate::context::{Presence, SuspendHooks};
use crate::process::{CommandPlace, Family, start_command};

/// So much input is kept until it is written in one go.
const KEPT_BYTES: usize = 64 << 10;
/// Between two looks at a command that gets itself in order before it is stopped.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
/// Between two looks at one that may stop itself when it is too late for that.
const LATE_LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Between two looks at its memory.
const MEMORY_EVERY: Duration = Duration::from_secs(1);
const MEMORY_LOOK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// A command, or the programs of a pipeline, may have read so much without having worked on it.
const READ_AHEAD: u64 = 128 << 10;

/// A command that wants no more input has mostly ended when that is seen; if not, it is looked at again now
/// and then.
const UNWANTED_PER_LOOK: u64 = 1024;

/// Pieces of a pipe that are read after its end: more than one holds.
const LAST_PIECES: u32 = 16;

/// Takes output of a command, in pieces of any length.
pub type TakeOutput<'t> = dyn FnMut(&[u8]) -> Result<(), TaskError> + 't;

/// A command that was started. It is killed when this is dropped.
#[derive(Debug)]
pub struct RunningCommand {
    line: CommandLine,
    directory: Option<PathBuf>,
    child: Child,
    end: OwnedFd,
    /// Once it is reaped; its number may be somebody else's then.
    status: Option<ExitStatus>,
    pipes: Pipes,
    reporter: Reporter,
    /// All there was to read is read, and it has ended.
    done: bool,
    /// Pieces of input that came after it had enough.
    unwanted: u64,
    presence: Presence,
    /// Bytes of input that it was fed.
    fed: u64,
    /// Its output says how far it is; if not, whoever feeds it does.
    is_judged_by_output: bool,
    /// When its memory was.
    looked: Instant,
    /// It was sent SIGTSTP, which it handles.
    was_asked_to_stop: bool,
    /// It handles stop requests and was stopped before it had done so: it may yet stop itself.
    may_stop_late: bool,
}

impl RunningCommand {
    fn of(
        line: &CommandLine,
        directory: Option<PathBuf>,
        child: Child,
        end: OwnedFd,
        pipes: Pipes,
        presence: Presence,
    ) -> RunningCommand {
        RunningCommand {
            line: line.clone(),
            directory,
            child,
            end,
            status: None,
            pipes,
            reporter: Reporter::default(),
            done: false,
            unwanted: 0,
            presence,
            fed: 0,
            is_judged_by_output: false,
            looked: Instant::now(),
            was_asked_to_stop: false,
            may_stop_late: false,
        }
    }
}

impl RunningCommand {
    /// Starts a command, by `sh -c`, at its place.
    ///
    /// # Errors
    ///
    /// When no shell could be started. Whether there is such a command is seen when it ends.
    pub fn start(
        line: &CommandLine,
        place: &CommandPlace,
        presence: Presence,
    ) -> Result<RunningCommand, CommandError> {
        let failed = |error: io::Error| {
            let (role, command) = line.first();
            CommandError::NotStarted { role, command: command.to_owned(), error }
        };
        let mut child = start_command(&line.script, place).map_err(failed)?;
        let missing = || io::Error::other("it has no pipes");
        let opened = presence.bell().and_then(|_| {
            let input = child.stdin.take().ok_or_else(missing)?;
            let output = child.stdout.take().ok_or_else(missing)?;
            let errors = child.stderr.take().ok_or_else(missing)?;
            // Not reaped yet, so its number is its own.
            Ok((
                pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?,
                Pipes::new(input, output, errors)?,
            ))
        });
        match opened {
            Ok((end, pipes)) => {
                presence.take_back();
                Ok(RunningCommand::of(line, place.directory.clone(), child, end, pipes, presence))
            }
            Err(error) => {
                // Errors only say that it is gone already.
                let _ = child.kill();
                let _ = child.wait();
                Err(failed(error))
            }
        }
    }

    /// Has its output say how far the attempt is: a command that writes has worked on what it had read then,
    /// but for what programs read ahead. One that writes only at its end is at its beginning until then.
    pub fn judge_by_output(&mut self) {
        self.is_judged_by_output = true;
    }

    /// Gives it more input, and takes what output there is meanwhile. What a command does not read that ends
    /// well is not missed by anybody.
    ///
    /// # Errors
    ///
    /// When the command has failed, or its output could not be taken.
    pub fn feed(&mut self, input: &[&[u8]], take: &mut TakeOutput<'_>) -> Result<(), TaskError> {
        if !self.pipes.takes_input() {
            self.unwanted += 1;
            return match self.unwanted.is_multiple_of(UNWANTED_PER_LOOK) {
                true => self.look_for_failure(),
                false => Ok(()),
            };
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

    /// Whether it still takes input.
    pub fn takes_input(&self) -> bool {
        self.pipes.takes_input()
    }

    /// Whether it has ended, and all of its output was taken.
    pub fn has_ended(&self) -> bool {
        self.done
    }

    /// Says that there is no more input, takes the rest of its output and waits for its end.
    ///
    /// # Errors
    ///
    /// As [`feed`](RunningCommand::feed).
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

    /// Waits for anything to happen, a second at most, and sees to it: writes what it was fed, takes
    /// its output.
    ///
    /// # Errors
    ///
    /// As [`feed`](RunningCommand::feed).
    pub fn attend(&mut self, take: &mut TakeOutput<'_>) -> Result<(), TaskError> {
        let presence = self.presence.clone();
        presence.stand_still(self)?;
        let timeout = if self.may_stop_late { LATE_LOOK } else { MEMORY_LOOK };
        let waited = presence.bell().and_then(|bell| {
            let ready = self.pipes.wait(bell.as_fd(), &self.end, timeout)?;
            // What is asked for is looked at after this, and so are asks that ring from here on.
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
            self.pipes.write().map_err(|error| self.broken("write to", error))?;
            presence.is_well();
            if !self.pipes.takes_input() {
                // Its own words say more than its status.
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
            let Some(status) = self.reap()? else { return Ok(()) };
            self.done = true;
            self.listen_to_the_end()?;
            self.judge(status)?;
        }
        Ok(())
    }

    /// Takes what there is of its output, at most a pipe full; whether there was anything.
    fn take_output(&mut self, take: &mut TakeOutput<'_>) -> Result<bool, TaskError> {
        let taken = self.pipes.taken();
        let line = &self.line;
        let output = self.pipes.read().map_err(|error| broken(line, "read from", error))?;
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

    /// A command that wants no more input has maybe ended; if not well, that is known now and not after all
    /// of the input.
    fn look_for_failure(&mut self) -> Result<(), TaskError> {
        if self.was_asked_to_stop {
            let (role, command) = self.line.first();
            return Err(CommandError::Disturbed { role, command: command.to_owned() }.into());
        }
        let Some(status) = self.reap()? else { return Ok(()) };
        self.listen_to_the_end()?;
        self.judge(status)
    }

    /// How it has ended, if it has. The time that it took is counted when that is heard of.
    fn reap(&mut self) -> Result<Option<ExitStatus>, TaskError> {
        if self.status.is_none()
            && let Some(ended) = self.child.try_wait4().map_err(|error| self.broken("wait for", error))?
        {
            self.status = Some(ended.status);
            let took = (ended.rusage.utime + ended.rusage.stime).as_millis();
            let counters = self.presence.counters();
            counters.add(Counter::CommandCpuMillis, u64::try_from(took).unwrap_or(u64::MAX));
        }
        Ok(self.status)
    }

    /// Notes how much memory it has had.
    pub(super) fn look_at_memory(&mut self) {
        self.looked = Instant::now();
        if let Some(family) = self.family() {
            self.presence.counters().add(Counter::PeakCommandBytes, family.peak_bytes());
        }
    }

    /// Takes what it has written to standard error; whether there was anything.
    fn listen(&mut self) -> Result<bool, TaskError> {
        let line = &self.line;
        let piece = self.pipes.read_errors().map_err(|error| broken(line, "listen to", error))?;
        let is_there = !piece.is_empty();
        if self.reporter.take(piece, &mut io::stderr().lock()) {
            self.presence.is_well();
        }
        Ok(is_there)
    }

    /// What it has written before its end. What it has left behind may go on writing, and is not waited for.
    fn listen_to_the_end(&mut self) -> Result<(), TaskError> {
        for _ in 0..LAST_PIECES {
            if !self.listen()? {
                break;
            }
        }
        self.reporter.finish(&mut io::stderr().lock());
        Ok(())
    }

    /// It and what it has started, while it is there.
    fn family(&self) -> Option<Family> {
        self.status.is_none().then(|| Family::of(Pid::from_child(&self.child)))
    }

    fn judge(&self, status: ExitStatus) -> Result<(), TaskError> {
        if status.success() {
            return Ok(());
        }
        let (role, command, status) = self.line.failed(self.directory.as_deref(), status);
        Err(CommandError::Failed { role, command: command.to_owned(), status }.into())
    }

    fn broken(&self, doing: &'static str, error: io::Error) -> TaskError {
        broken(&self.line, doing, error)
    }
}

fn broken(line: &CommandLine, doing: &'static str, error: io::Error) -> TaskError {
    let (role, command) = line.first();
    CommandError::Pipe { doing, role, command: command.to_owned(), error }.into()
}

impl SuspendHooks for RunningCommand {
    /// Programs that handle SIGTSTP get one, and the time until the worker stops them all to get themselves
    /// in order. Those that stop themselves when they are, are waited for no longer.
    fn on_suspend(&mut self) -> Result<(), TaskError> {
        let Some(family) = self.family() else { return Ok(()) };
        if !family.ask_to_stop() {
            return Ok(());
        }
        self.was_asked_to_stop = true;
        let mut is_in_order = false;
        while self.presence.is_suspending() && !is_in_order {
            let bell = self.presence.bell().map_err(|error| self.broken("wait for", error))?;
            let mut interest = [PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN)];
            // An interruption is as good as a look.
            let _ = poll(&mut interest, Some(&LOOK));
            bell.take();
            is_in_order = !family.is_getting_ready();
        }
        self.may_stop_late |= !is_in_order;
        Ok(())
    }

    /// The worker has continued the whole process group. What stops itself later is continued when
    /// that is seen.
    fn on_resume(&mut self) -> Result<(), TaskError> {
        Ok(())
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        self.presence.take_back();
        if let Some(family) = self.family() {
            family.kill();
            // Errors only say that it is gone already.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

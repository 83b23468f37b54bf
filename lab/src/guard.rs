//! Owns that nothing of an experiment is left behind however it ends: a process of its own that outlives the
//! experiment by the moments it takes to end daemons, switch off swap and remove folders. The experiment
//! tells it of each thing before or as it comes to be; the end of the pipe, closed or broken, is the sign to
//! clean up.

mod charges;
mod service;

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

pub use charges::{Charge, start_of};
use napreduce_live::printing::print_error;
use rustix::process::Pid;

use crate::jobs::{called, own_binary};

/// The name that makes a program the guard.
const GUARD_PROGRAM: &str = "nap-lab-guard";

/// The guard cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    #[error("cannot start the guard {program}: {source}")]
    Start { program: PathBuf, source: io::Error },
    /// It cannot be spoken to.
    #[error("the guard that cleans up after the experiment does not answer: {0}")]
    Silent(#[from] io::Error),
    /// It was asked for something that the system refuses.
    #[error("{0}")]
    Refused(String),
    /// Something is left.
    #[error("not everything was cleaned up: {0}")]
    Left(String),
}

/// The experiment's end of its guard. Dropped, it has everything cleaned up and waits for that.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    /// Absent once the guard was told to clean up.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// Whether this process is to be a guard.
pub fn guard_requested() -> bool {
    called(GUARD_PROGRAM)
}

/// The main function of a guard.
pub fn guard_program() -> ExitCode {
    if let Err(error) = service::ignore_signals() {
        print_error(format_args!("{GUARD_PROGRAM}: cannot ignore signals: {error}"));
        return ExitCode::FAILURE;
    }
    let left = service::serve(io::stdin().lock(), io::stdout());
    for what in &left {
        print_error(format_args!("{GUARD_PROGRAM}: {what}"));
    }
    // Whoever waits for it hears it; nobody may be there any more.
    let said = writeln!(io::stdout(), "{}", left.join("; "));
    if left.is_empty() && said.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Guard {
    /// Starts one: this binary, which becomes a guard when it is called so.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start() -> Result<Guard, GuardError> {
        let program = own_binary();
        let mut command = Command::new(&program);
        // A group of its own: a Ctrl-C at the terminal is not for it.
        command.arg0(GUARD_PROGRAM).process_group(0).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let failed = |source| GuardError::Start { program: program.clone(), source };
        let mut child = command.spawn().map_err(failed)?;
        let orders = child.stdin.take();
        let answers = child.stdout.take().ok_or_else(|| failed(io::Error::other("it has no output")))?;
        Ok(Guard { child, orders, answers: BufReader::new(answers) })
    }

    /// Puts something in its charge; what is not there yet is made by it.
    ///
    /// # Errors
    /// When it cannot be made, or the guard is gone.
    pub fn take(&mut self, charge: &Charge) -> Result<(), GuardError> {
        let Some(orders) = &mut self.orders else { return Ok(()) };
        let mut line = serde_json::to_string(charge).map_err(io::Error::from)?;
        line.push('\n');
        orders.write_all(line.as_bytes())?;
        let answer = self.answer()?;
        if answer.is_empty() { Ok(()) } else { Err(GuardError::Refused(answer)) }
    }

    /// Puts a process that was just started in its charge.
    ///
    /// # Errors
    /// When the guard is gone.
    pub fn take_process(&mut self, id: Pid) -> Result<(), GuardError> {
        // One that is gone needs no guard.
        let Some(started) = start_of(id) else { return Ok(()) };
        self.take(&Charge::Process { id: id.as_raw_nonzero().get(), started })
    }

    /// Has it clean up, and waits.
    ///
    /// # Errors
    /// When something is left.
    pub fn clean_up(mut self) -> Result<(), GuardError> {
        self.end()
    }

    fn answer(&mut self) -> Result<String, GuardError> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(line.trim_end().to_owned())
    }

    fn end(&mut self) -> Result<(), GuardError> {
        if self.orders.take().is_none() {
            return Ok(());
        }
        let left = self.answer();
        let status = self.child.wait()?;
        match left? {
            left if left.is_empty() && status.success() => Ok(()),
            left if left.is_empty() => Err(GuardError::Left(format!("the guard ended with {status}"))),
            left => Err(GuardError::Left(left)),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Who wants to know what is left has called `clean_up`; it was printed in any case.
        let _ = self.end();
    }
}

/// The lines of `/proc/swaps` that are about this file.
pub(crate) fn is_swapped_on(path: &Path) -> bool {
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let named = path.to_string_lossy();
    swaps.lines().any(|line| line.split_whitespace().next() == Some(&*named))
}

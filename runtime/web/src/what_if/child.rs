//! Runs the simulator as a child process with a memory limit, a time limit and a process group of its own, which
//! is killed at the end.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, kill_process_group, pidfd_open, prlimit,
};

/// Limit of the address space.
pub const MEMORY_BYTES_MAX: u64 = 2 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    Exited(ExitStatus),
    /// Killed at the time limit.
    TooLong,
}

/// Runs `command` to its end. Calls `killable` with the process once it can be killed, and with `None` before
/// it is reaped, after which its ID may belong to another process.
pub fn run(
    mut command: Command,
    time_max: Duration,
    killable: impl Fn(Option<Pid>),
) -> io::Result<RunEnd> {
    let mut child = command.process_group(0).spawn()?;
    let process = Pid::from_child(&child);
    let in_time = bound(process).and_then(|()| {
        killable(Some(process));
        ends_within(process, time_max)
    });
    killable(None);
    let status = end(&mut child, process)?;
    Ok(if in_time? {
        RunEnd::Exited(status)
    } else {
        RunEnd::TooLong
    })
}

/// Kills the process group of a run. The thread in [`run`] sees the end.
pub fn kill(process: Pid) {
    // Fails if the group has already ended.
    let _ = kill_process_group(process, Signal::KILL);
}

fn bound(process: Pid) -> io::Result<()> {
    let most = Rlimit {
        current: Some(MEMORY_BYTES_MAX),
        maximum: Some(MEMORY_BYTES_MAX),
    };
    prlimit(Some(process), Resource::As, most)?;
    // A killed child must not leave a core dump either.
    prlimit(
        Some(process),
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    )?;
    Ok(())
}

/// Waits for the child without reaping it; returns whether it ended in time.
fn ends_within(process: Pid, time_max: Duration) -> io::Result<bool> {
    let watched = pidfd_open(process, PidfdFlags::empty())?;
    let until = Instant::now() + time_max;
    loop {
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        match poll(&mut [PollFd::new(&watched, PollFlags::IN)], left.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Kills what is left of the process group and reaps the child.
fn end(child: &mut Child, process: Pid) -> io::Result<ExitStatus> {
    kill(process);
    child.wait()
}

//! One run of the program that simulates, within bounds.
//!
//! Owns that it has so much memory, so much time, and no more priority than its thread; and that nothing of
//! it is left when it is over. Does not own what it is told.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal, kill_process_group, pidfd_open, prlimit};

/// Addresses that it may use.
pub const MEMORY_BYTES_MAX: u64 = 2 << 30;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    Exited(ExitStatus),
    /// It was killed when its time was over.
    TooLong,
}

/// Runs it to its end. It is told of the process when it may be killed, and when it may not any more: its
/// number may be another's then.
pub fn run(mut command: Command, time_max: Duration, killable: impl Fn(Option<Pid>)) -> io::Result<RunEnd> {
    let mut child = command.process_group(0).spawn()?;
    let process = Pid::from_child(&child);
    let in_time = bound(process).and_then(|()| {
        killable(Some(process));
        ends_within(process, time_max)
    });
    killable(None);
    let status = end(&mut child, process)?;
    Ok(if in_time? { RunEnd::Exited(status) } else { RunEnd::TooLong })
}

/// Kills a run; whoever waits for it learns of its end.
pub fn kill(process: Pid) {
    // One that has ended by itself has no group any more.
    let _ = kill_process_group(process, Signal::KILL);
}

fn bound(process: Pid) -> io::Result<()> {
    let most = Rlimit { current: Some(MEMORY_BYTES_MAX), maximum: Some(MEMORY_BYTES_MAX) };
    prlimit(Some(process), Resource::As, most)?;
    // No image of its memory is left on the disk either.
    prlimit(Some(process), Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(())
}

/// Whether it ended by itself; it is still there to be waited for.
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

/// Ends it and all that it has started, if that is not over.
fn end(child: &mut Child, process: Pid) -> io::Result<ExitStatus> {
    kill(process);
    child.wait()
}

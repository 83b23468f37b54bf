//! The arguments and the environment variable that identify task processes and fork servers.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// First argument of a task process; the second is the process id of its parent.
pub const MARKER: &str = "--napreduce-task-process";

/// First argument of a prestarted process until it gets an attempt. As long as `MARKER`, which then replaces
/// it.
pub const IDLE_MARKER: &str = "--napreduce-idle-process";

/// First argument of a fork server, which waits before `main`; its forks have `IDLE_MARKER`.
pub const FORK_MARKER: &str = "--napreduce-fork-process";

/// The environment variable that marks a prestarted process and its children.
pub const PRESTART_VARIABLE: &str = "NAPREDUCE_PRESTART";

/// The first bytes that a fork server sends; they identify the version of its protocol.
pub const FORK_SERVER_READY: &[u8; 8] = b"NAPFORK1";

/// Digits of the number of a fork, at the end of the value of `PRESTART_VARIABLE`.
pub const PRESTART_NUMBER_DIGITS: usize = 20;

/// Returns the process id of the parent if this process was started as a task process.
pub fn parent_of_task_process() -> Option<OsString> {
    let mut arguments = std::env::args_os().skip(1);
    let marker = arguments.next()?;
    [MARKER, IDLE_MARKER, FORK_MARKER]
        .iter()
        .any(|known| marker == *known)
        .then(|| arguments.next().unwrap_or_default())
}

/// Returns whether this is a prestarted process without an attempt, or a fork server that cannot fork and has
/// therefore reached `main`.
pub fn is_idle() -> bool {
    std::env::args_os()
        .nth(1)
        .is_some_and(|marker| marker == IDLE_MARKER || marker == FORK_MARKER)
}

/// Marks this process as one with an attempt, visible in listings of processes.
pub fn stop_being_idle() -> io::Result<()> {
    const _: () =
        assert!(MARKER.len() == IDLE_MARKER.len() && IDLE_MARKER.len() == FORK_MARKER.len());
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // Field 48 of the file. The fields after the name in parentheses begin with field 3, the state.
    let start = stat
        .rsplit(')')
        .next()
        .and_then(|fields| fields.split_whitespace().nth(45)?.parse::<u64>().ok());
    let start =
        start.ok_or_else(|| io::Error::other("/proc/self/stat has no address of the arguments"))?;
    let name = std::env::args_os().next().unwrap_or_default();
    let place = start + name.len() as u64 + 1;
    let memory = File::options()
        .read(true)
        .write(true)
        .open("/proc/self/mem")?;
    let mut found = [0; IDLE_MARKER.len()];
    memory.read_exact_at(&mut found, place)?;
    if found != IDLE_MARKER.as_bytes() {
        return Err(io::Error::other(
            "the arguments are not at the address in /proc/self/stat",
        ));
    }
    memory.write_all_at(MARKER.as_bytes(), place)
}

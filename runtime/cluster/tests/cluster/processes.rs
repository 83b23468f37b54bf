//! The daemon and its task processes, as a test that started them sees them.
//!
//! Owns that nothing a test has started outlives it. Does not own what is said on connections (`line`).

use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::task::spawn_blocking;

use super::script::{DEADLINE, soon};

/// A daemon that was started.
pub struct Daemon {
    child: Child,
    watched: Process,
    log: PathBuf,
}

impl Daemon {
    /// One that was just started, and prints to `log`.
    pub fn new(child: Child, log: PathBuf) -> Daemon {
        let watched = Process::watch(Pid::from_child(&child));
        Daemon { child, watched, log }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// What it says on standard error so far.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits for its end.
    pub async fn end(&mut self) -> ExitStatus {
        self.watched.assert_gone().await;
        self.child.wait().unwrap()
    }
}

impl Drop for Daemon {
    /// A test that failed leaves no daemon behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process whose end is awaited.
pub struct Process {
    id: Pid,
    watched: OwnedFd,
}

impl Process {
    pub fn watch(id: Pid) -> Process {
        Process { id, watched: pidfd_open(id, PidfdFlags::empty()).unwrap() }
    }

    pub fn id(&self) -> i32 {
        self.id.as_raw_nonzero().get()
    }

    /// The letters of the states of all its threads.
    pub fn states(&self) -> String {
        states_of(self.id())
    }

    /// For a process that is paused, and so not yet reaped.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.id, signal).unwrap();
    }

    pub async fn assert_gone(&self) {
        let watched = self.watched.try_clone().unwrap();
        let ended = spawn_blocking(move || is_readable(&watched, DEADLINE)).await.unwrap();
        assert!(ended, "process {:?} did not end", self.id);
    }

    /// Without waiting.
    pub fn is_gone(&self) -> bool {
        is_readable(&self.watched, Duration::ZERO)
    }
}

/// The letters of the states of all threads of a process; none when it is gone.
pub fn states_of(process: i32) -> String {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return String::new() };
    let stats = threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    stats.filter_map(|stat| stat.rsplit_once(") ")?.1.chars().next()).collect()
}

fn is_readable(watched: &OwnedFd, within: Duration) -> bool {
    let within = Timespec { tv_sec: within.as_secs().try_into().unwrap(), tv_nsec: 0 };
    poll(&mut [PollFd::new(watched, PollFlags::IN)], Some(&within)).unwrap() == 1
}

/// A task that has come to a pause.
pub struct Moment {
    pub attempt: String,
    pub process: Process,
    pub stream: BufReader<UnixStream>,
}

impl Moment {
    /// What the task says next.
    pub async fn line(&mut self) -> String {
        let mut line = String::new();
        soon("a word of a task", self.stream.read_line(&mut line)).await.unwrap();
        line.trim().to_owned()
    }

    /// Lets the task go on and still hears it.
    pub async fn let_go(&mut self) {
        self.stream.write_all(b"!").await.unwrap();
    }

    /// Lets the task go on.
    pub async fn go_on(mut self) -> Process {
        self.stream.write_all(b"!").await.unwrap();
        self.process
    }
}

//! The daemon and its task processes. Nothing that a test has started outlives the test.

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

/// A started daemon.
pub struct Daemon {
    child: Child,
    watched: Process,
    log: PathBuf,
}

impl Daemon {
    /// Takes over a started daemon that logs to `log`.
    pub fn new(child: Child, log: PathBuf) -> Daemon {
        let watched = Process::watch(Pid::from_child(&child));
        Daemon {
            child,
            watched,
            log,
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Returns its standard error so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits for the daemon to end.
    pub async fn end(&mut self) -> ExitStatus {
        self.watched.assert_gone().await;
        self.child.wait().unwrap()
    }
}

impl Drop for Daemon {
    /// Kills the daemon if the test has failed.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process to wait for.
pub struct Process {
    id: Pid,
    watched: OwnedFd,
}

impl Process {
    pub fn watch(id: Pid) -> Process {
        Process {
            id,
            watched: pidfd_open(id, PidfdFlags::empty()).unwrap(),
        }
    }

    pub fn id(&self) -> i32 {
        self.id.as_raw_nonzero().get()
    }

    /// Returns the state letters of all its threads.
    pub fn states(&self) -> String {
        states_of(self.id())
    }

    /// Sends a signal. The process must be paused and therefore not reaped.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.id, signal).unwrap();
    }

    pub async fn assert_gone(&self) {
        let watched = self.watched.try_clone().unwrap();
        let ended = spawn_blocking(move || is_readable(&watched, DEADLINE))
            .await
            .unwrap();
        assert!(ended, "process {:?} did not end", self.id);
    }

    /// Returns whether the process has ended, without waiting.
    pub fn is_gone(&self) -> bool {
        is_readable(&self.watched, Duration::ZERO)
    }
}

/// Returns the state letters of all threads of a process; empty if it has ended.
pub fn states_of(process: i32) -> String {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else {
        return String::new();
    };
    let stats = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    stats
        .filter_map(|stat| stat.rsplit_once(") ")?.1.chars().next())
        .collect()
}

fn is_readable(watched: &OwnedFd, within: Duration) -> bool {
    let within = Timespec {
        tv_sec: within.as_secs().try_into().unwrap(),
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(watched, PollFlags::IN)], Some(&within)).unwrap() == 1
}

/// A task that has paused at a point chosen by the test.
pub struct Moment {
    pub attempt: String,
    pub process: Process,
    pub stream: BufReader<UnixStream>,
}

impl Moment {
    /// Returns the next line from the task.
    pub async fn line(&mut self) -> String {
        let mut line = String::new();
        soon("a line from a task", self.stream.read_line(&mut line))
            .await
            .unwrap();
        line.trim().to_owned()
    }

    /// Continues the task and keeps the connection to it.
    pub async fn let_go(&mut self) {
        self.stream.write_all(b"!").await.unwrap();
    }

    /// Continues the task.
    pub async fn go_on(mut self) -> Process {
        self.stream.write_all(b"!").await.unwrap();
        self.process
    }
}

//! The handle of a task process until it is reaped. It never signals a reused process id.
#![allow(unsafe_code)] // Only to have a descriptor watched, which tokio cannot check.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process_group, pidfd_open, waitpid};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;

use super::control_groups::{ControlGroup, ControlGroups};

/// Task processes that are not reaped.
#[derive(Debug, Clone, Default)]
pub(super) struct Own(Arc<Mutex<BTreeSet<i32>>>);

impl Own {
    pub(super) fn numbers(&self) -> BTreeSet<i32> {
        self.lock().clone()
    }

    /// A panic while it was held can only have come between whole changes.
    fn lock(&self) -> MutexGuard<'_, BTreeSet<i32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A child of this process and its group, killed and reaped on drop.
#[derive(Debug)]
struct Kept {
    child: Pid,
    reaped: bool,
    own: Own,
}

impl Kept {
    fn begin(child: Pid, own: &Own) -> Kept {
        own.lock().insert(child.as_raw_nonzero().get());
        Kept { child, reaped: false, own: own.clone() }
    }

    fn signal(&self, signal: Signal) {
        if !self.reaped {
            // Not reaped, so the group's number is its own; an error says that no member is left to signal.
            let _ = kill_process_group(self.child, signal);
        }
    }

    fn reap(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        let waited = retry_on_intr(|| waitpid(Some(self.child), WaitOptions::empty()))?;
        let (_, status) = waited.ok_or(Errno::CHILD)?;
        self.reaped = true;
        self.own.lock().remove(&self.child.as_raw_nonzero().get());
        Ok(ExitStatus::from_raw(status.as_raw()))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if !self.reaped {
            // An error means that it has ended.
            let _ = self.reap();
            self.own.lock().remove(&self.child.as_raw_nonzero().get());
        }
    }
}

/// A running process that is not watched yet.
#[derive(Debug)]
pub(super) struct Started {
    kept: Kept,
    pidfd: OwnedFd,
    pub(super) control: StdUnixStream,
    pub(super) marks: Vec<String>,
    /// The process is reaped first, so the group is empty on drop.
    group: Option<ControlGroup>,
    /// Whether it was to be put into one.
    pub(super) was_to_enter: bool,
}

impl Started {
    /// For the thread that started it, before anything else. The marks are variables, with their values, of
    /// all that it leaves.
    pub(super) fn begin(
        child: Pid,
        control: StdUnixStream,
        marks: Vec<String>,
        own: &Own,
    ) -> io::Result<Started> {
        let kept = Kept::begin(child, own);
        // The child is not reaped yet, so its number is still its own.
        let pidfd = pidfd_open(kept.child, PidfdFlags::NONBLOCK)?;
        Ok(Started { kept, pidfd, control, marks, group: None, was_to_enter: false })
    }

    /// Moves it into a control group; otherwise it is bounded when it gets an attempt.
    pub(super) fn enter(&mut self, groups: &Arc<ControlGroups>) {
        self.was_to_enter = true;
        self.group = groups.take_ahead(self.kept.child).ok();
    }
}

/// A task process that has not been reaped.
#[derive(Debug)]
pub struct TaskProcess {
    kept: Kept,
    pidfd: AsyncFd<OwnedFd>,
    /// The control channel; see `ToTask` and `FromTask`.
    pub control: UnixStream,
    /// Environment entries that identify its descendants when it has ended.
    pub marks: Vec<String>,
    group: Option<ControlGroup>,
}

impl TaskProcess {
    pub(super) fn watch(started: Started) -> io::Result<TaskProcess> {
        let Started { kept, pidfd, control, marks, group, .. } = started;
        let control = UnixStream::from_std(control)?;
        // SAFETY: the descriptor is open, and owned by the result until that is dropped; nobody else
        // gets at it.
        let pidfd = unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }?;
        Ok(TaskProcess { kept, pidfd, control, marks, group })
    }

    /// Takes the control group of a prestarted process, if it is in one. The group must outlive the process:
    /// dropping it kills the process.
    pub fn take_group(&mut self) -> Option<ControlGroup> {
        self.group.take()
    }

    /// Waits until the process has ended; it is then a zombie and its id is not reused.
    pub async fn ended(&self) -> io::Result<()> {
        self.pidfd.readable().await.map(|_| ())
    }

    /// Kills the process and every descendant in its group.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Signals the process and every descendant in its group.
    pub fn signal(&self, signal: Signal) {
        self.kept.signal(signal);
    }

    /// Returns the process id, valid until it is reaped.
    pub fn id(&self) -> Pid {
        self.kept.child
    }

    /// Returns a descriptor for waiting separately from this value.
    pub fn to_await(&self) -> io::Result<OwnedFd> {
        Ok(pidfd_open(self.id(), PidfdFlags::empty())?)
    }

    /// Reaps the ended process after killing its remaining group.
    pub fn reap(&mut self) -> io::Result<ExitStatus> {
        self.kept.reap()
    }
}

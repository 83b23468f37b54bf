//! The handle of a task process until it is reaped. It never signals a reused process id.
#![allow(unsafe_code)] // registers a raw descriptor with tokio

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use napreduce_protocol::lock;
use napreduce_task::{PagedProcess, Paging};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process_group, pidfd_open, waitpid,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use super::control::ControlChannel;
use super::control_groups::{ControlGroup, ControlGroups};
use super::family::Family;
use super::memory::{oom_score_adjustment, set_oom_score_adjustment};
use super::processes::{Pending, TaskProcess};
use super::stops::{Awaited, ChildEvent, await_turn};

/// Time for the descendants of a task process to stop after it; most task processes have none.
const DESCENDANTS_PATIENCE: Duration = Duration::from_secs(2);
/// Interval at which the states of a task process are read, since the kernel reports no second stop of a stopped
/// process, and none while a thread waits for a child between `vfork` and `exec`.
const LOOK: Duration = Duration::from_millis(20);

/// Task processes that are not reaped.
#[derive(Debug, Clone, Default)]
pub(super) struct Own(Arc<Mutex<BTreeSet<i32>>>);

impl Own {
    pub(super) fn numbers(&self) -> BTreeSet<i32> {
        self.lock().clone()
    }

    /// Locks the set; no panic can leave it half-changed.
    fn lock(&self) -> MutexGuard<'_, BTreeSet<i32>> {
        lock(&self.0)
    }
}

/// Waits for a stop of the leader, or its end.
async fn await_stop(pidfd: &OwnedFd, family: &Family) -> io::Result<ChildEvent> {
    loop {
        if family.leader_is_stopped() {
            return Ok(ChildEvent::Stopped);
        }
        if let Ok(event) = timeout(LOOK, await_turn(pidfd, Awaited::Stop)).await {
            return event;
        }
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
        Kept {
            child,
            reaped: false,
            own: own.clone(),
        }
    }

    fn signal(&self, signal: Signal) {
        if !self.reaped {
            // The process is not reaped, so the group id is not reused; an error means that the group is empty.
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
    /// Whether it was already assigned to one, successfully or not.
    pub(super) was_to_enter: bool,
}

impl Started {
    /// Takes over a process just started by the calling thread. `marks` are environment entries that identify
    /// its descendants.
    pub(super) fn begin(
        child: Pid,
        control: StdUnixStream,
        marks: Vec<String>,
        own: &Own,
    ) -> io::Result<Started> {
        let kept = Kept::begin(child, own);
        // The child is not reaped yet, so its number is still its own.
        let pidfd = pidfd_open(kept.child, PidfdFlags::NONBLOCK)?;
        Ok(Started {
            kept,
            pidfd,
            control,
            marks,
            group: None,
            was_to_enter: false,
        })
    }

    /// Moves it into a control group; otherwise it is bounded when it gets an attempt.
    pub(super) fn enter(&mut self, groups: &Arc<ControlGroups>) {
        self.was_to_enter = true;
        self.group = groups.take_ahead(self.kept.child).ok();
    }
}

/// A task process that is a child of this process and has not been reaped.
#[derive(Debug)]
pub(super) struct ChildProcess {
    kept: Kept,
    pidfd: AsyncFd<OwnedFd>,
    pub(super) control: UnixStream,
    pub(super) marks: Vec<String>,
    group: Option<ControlGroup>,
    family: Arc<Family>,
}

impl ChildProcess {
    pub(super) fn watch(started: Started) -> io::Result<ChildProcess> {
        let Started {
            kept,
            pidfd,
            control,
            marks,
            group,
            ..
        } = started;
        let control = UnixStream::from_std(control)?;
        // SAFETY: the descriptor is open, and owned by the result alone until that is dropped.
        let pidfd = unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }?;
        let family = Arc::new(Family::new(kept.child));
        Ok(ChildProcess {
            kept,
            pidfd,
            control,
            marks,
            group,
            family,
        })
    }

    /// Opens the process for paging, if that is permitted.
    fn open_for_paging(&self) -> io::Result<PagedProcess> {
        let paged = PagedProcess::open(self.kept.child)?;
        paged.is_permitted()?;
        Ok(paged)
    }
}

impl TaskProcess for ChildProcess {
    fn id(&self) -> Pid {
        self.kept.child
    }

    fn control(&self) -> &dyn ControlChannel {
        &self.control
    }

    fn marks(&self) -> &[String] {
        &self.marks
    }

    fn take_group(&mut self) -> Option<ControlGroup> {
        self.group.take()
    }

    fn note_stopped(&self) {
        self.family.note_stopped();
    }

    fn suspend(&self) {
        if !self.kept.reaped {
            self.family.stop();
        }
    }

    fn stands_still(&self) -> bool {
        self.family.stands_still()
    }

    fn resume(&self) {
        if !self.kept.reaped {
            self.family.resume();
        }
    }

    fn kill(&self) {
        if !self.kept.reaped {
            self.family.kill();
        }
    }

    fn await_change(&self, awaited: Awaited) -> Pending<'static, ChildEvent> {
        let family = Arc::clone(&self.family);
        // Opened now: later the process may be reaped and its id reused.
        let pidfd = pidfd_open(self.kept.child, PidfdFlags::empty());
        Box::pin(async move {
            let event = match awaited {
                Awaited::Stop => await_stop(&pidfd?, &family).await?,
                Awaited::Continuation => await_turn(&pidfd?, awaited).await?,
            };
            if event == ChildEvent::Stopped
                && let Some(descendant) = family.await_stop(DESCENDANTS_PATIENCE).await
            {
                return Ok(ChildEvent::StillRuns { descendant });
            }
            Ok(event)
        })
    }

    fn ended(&self) -> Pending<'_, ()> {
        Box::pin(async { self.pidfd.readable().await.map(|_| ()) })
    }

    fn reap(&mut self) -> io::Result<ExitStatus> {
        self.kept.reap()
    }

    fn oom_score_adjustment(&self) -> io::Result<i32> {
        oom_score_adjustment(self.kept.child)
    }

    fn set_oom_score_adjustment(&self, adjustment: i32) -> io::Result<()> {
        set_oom_score_adjustment(self.kept.child, adjustment)
    }

    fn check_paging(&self) -> io::Result<()> {
        self.open_for_paging().map(drop)
    }

    fn page(
        &self,
        paging: Paging,
        cancelled: Arc<AtomicBool>,
    ) -> io::Result<JoinHandle<io::Result<u64>>> {
        let paged = self.open_for_paging()?;
        Ok(spawn_blocking(move || paged.advise(paging, &cancelled)))
    }
}

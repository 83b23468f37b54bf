//! A simulated process: it runs, is stopped, or has ended, as the kernel of its machine sees it.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use napreduce_engine::AttemptId;
use napreduce_local::process::{
    Awaited, ChildEvent, ControlChannel, ControlGroup, Pending, TaskProcess,
};
use napreduce_task::Paging;
use rustix::process::Pid;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::MachineState;
use super::channel::WorkerEnd;
use super::fate::Reflexes;

/// The wait status of a process that SIGKILL ended.
const KILLED: i32 = 9;

/// Whether a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    Running,
    Stopped,
    /// With this wait status.
    Ended(i32),
}

/// What the kernel shows of a process.
#[derive(Debug, Clone, Copy)]
struct Status {
    life: Life,
    /// Number of SIGCONTs so far. A stop that is still under way is void after another one.
    continues: u32,
    /// A stop, and a continuation, that nobody has waited for yet.
    has_stopped: bool,
    has_continued: bool,
}

/// A process of a machine.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) attempt: AttemptId,
    status: watch::Sender<Status>,
    /// It was asked to save its work and to end.
    is_saving: AtomicBool,
    /// It was continued and has not read why.
    is_waking: AtomicBool,
}

impl Process {
    pub(super) fn new(pid: Pid, attempt: AttemptId) -> Process {
        Process {
            pid,
            attempt,
            status: watch::Sender::new(Status {
                life: Life::Running,
                continues: 0,
                has_stopped: false,
                has_continued: false,
            }),
            is_saving: AtomicBool::new(false),
            is_waking: AtomicBool::new(false),
        }
    }

    /// Returns whether the process works, and so needs a slot. One that was continued may be meant to save its work,
    /// which it learns from its next message.
    pub(super) fn works(&self) -> bool {
        self.life() == Life::Running
            && !self.is_saving.load(Ordering::Relaxed)
            && !self.is_waking.load(Ordering::Relaxed)
    }

    /// Notes that it has read why it was continued.
    pub(super) fn set_awake(&self) {
        self.is_waking.store(false, Ordering::Relaxed);
    }

    /// Notes that it was asked to save its work.
    pub(super) fn set_saving(&self) {
        self.is_saving.store(true, Ordering::Relaxed);
    }

    pub(super) fn life(&self) -> Life {
        self.status.borrow().life
    }

    /// Waits until the process runs; never resolves if it has ended.
    pub(super) async fn running(&self) {
        self.reach(|life| life == Life::Running).await;
    }

    /// Waits until the process does not run.
    pub(super) async fn interrupted(&self) {
        self.reach(|life| life != Life::Running).await;
    }

    /// Waits until the process has ended.
    pub(super) async fn ended(&self) {
        self.reach(|life| matches!(life, Life::Ended(_))).await;
    }

    async fn reach(&self, is_reached: impl Fn(Life) -> bool) {
        let mut status = self.status.subscribe();
        // This process has the sender.
        let _ = status.wait_for(|status| is_reached(status.life)).await;
    }

    /// Ends the process with this wait status, unless it has ended.
    pub(super) fn end(&self, wait_status: i32) -> bool {
        self.status.send_if_modified(|status| {
            if matches!(status.life, Life::Ended(_)) {
                return false;
            }
            status.life = Life::Ended(wait_status);
            true
        })
    }

    /// Stops the process unless it was continued since `continues`.
    fn stop(&self, continues: u32) -> bool {
        self.status.send_if_modified(|status| {
            if status.life != Life::Running || status.continues != continues {
                return false;
            }
            status.life = Life::Stopped;
            status.has_stopped = true;
            true
        })
    }

    fn resume(&self) -> bool {
        let mut was_stopped = false;
        self.status.send_modify(|status| {
            status.continues += 1;
            status.has_stopped = false;
            if status.life == Life::Stopped {
                status.life = Life::Running;
                status.has_continued = true;
                was_stopped = true;
            }
        });
        if was_stopped {
            self.is_waking.store(true, Ordering::Relaxed);
        }
        was_stopped
    }

    /// Takes the awaited change, as `waitid` does.
    fn take_change(&self, awaited: Awaited) -> Option<ChildEvent> {
        let mut change = None;
        self.status.send_if_modified(|status| {
            if matches!(status.life, Life::Ended(_)) {
                change = Some(ChildEvent::Ended);
                return false;
            }
            let has_happened = match awaited {
                Awaited::Stop => &mut status.has_stopped,
                Awaited::Continuation => &mut status.has_continued,
            };
            if !std::mem::take(has_happened) {
                return false;
            }
            change = Some(match awaited {
                Awaited::Stop => ChildEvent::Stopped,
                Awaited::Continuation => ChildEvent::Continued,
            });
            true
        });
        change
    }

    async fn change(&self, awaited: Awaited) -> ChildEvent {
        let mut status = self.status.subscribe();
        loop {
            if let Some(change) = self.take_change(awaited) {
                return change;
            }
            // This process has the sender.
            let _ = status.changed().await;
        }
    }
}

/// The worker's handle of a process.
#[derive(Debug)]
pub(super) struct SimProcess {
    pub(super) process: Arc<Process>,
    pub(super) control: WorkerEnd,
    pub(super) reflexes: Reflexes,
    pub(super) machine: Arc<MachineState>,
}

impl SimProcess {
    /// Does something to the process after a delay.
    fn later(
        &self,
        delay: Duration,
        change: impl FnOnce(&MachineState, &Process) + Send + 'static,
    ) {
        if delay.is_zero() {
            return change(&self.machine, &self.process);
        }
        let process = Arc::clone(&self.process);
        let machine = Arc::clone(&self.machine);
        self.machine.tasks.spawn(async move {
            sleep(delay).await;
            change(&machine, &process);
        });
    }
}

impl TaskProcess for SimProcess {
    fn id(&self) -> Pid {
        self.process.pid
    }

    fn control(&self) -> &dyn ControlChannel {
        &self.control
    }

    fn marks(&self) -> &[String] {
        &[]
    }

    fn take_group(&mut self) -> Option<ControlGroup> {
        None
    }

    fn note_stopped(&self) {}

    fn suspend(&self) {
        let continues = self.process.status.borrow().continues;
        self.later(self.reflexes.stop, move |machine, process| {
            if process.stop(continues) {
                machine.event(process.attempt, "is stopped");
            }
        });
        if let Some(after) = self.reflexes.is_continued {
            self.later(after, |machine, process| {
                if process.life() == Life::Stopped && process.resume() {
                    machine.event(process.attempt, "is continued by another program");
                }
            });
        }
        let Some(after) = self.reflexes.dies_stopped else {
            return;
        };
        self.later(after, |machine, process| {
            if process.life() == Life::Stopped && process.end(KILLED) {
                machine.event(process.attempt, "is killed while stopped");
            }
        });
    }

    fn stands_still(&self) -> bool {
        self.process.life() == Life::Stopped
    }

    fn resume(&self) {
        if self.process.resume() {
            self.machine.event(self.process.attempt, "is continued");
        }
    }

    fn kill(&self) {
        self.later(self.reflexes.kill, |machine, process| {
            if process.end(KILLED) {
                machine.event(process.attempt, "is killed");
            }
        });
    }

    fn await_change(&self, awaited: Awaited) -> Pending<'static, ChildEvent> {
        let process = Arc::clone(&self.process);
        let leaves_descendant = self.reflexes.leaves_descendant;
        Box::pin(async move {
            match process.change(awaited).await {
                ChildEvent::Stopped if leaves_descendant => Ok(ChildEvent::StillRuns {
                    descendant: "sh".to_owned(),
                }),
                change => Ok(change),
            }
        })
    }

    fn ended(&self) -> Pending<'_, ()> {
        Box::pin(async {
            self.process.ended().await;
            Ok(())
        })
    }

    fn reap(&mut self) -> io::Result<ExitStatus> {
        self.machine.remove(self.process.pid);
        match self.process.life() {
            Life::Ended(status) => Ok(ExitStatus::from_raw(status)),
            _ => Err(io::Error::other("the process has not ended")),
        }
    }

    fn oom_score_adjustment(&self) -> io::Result<i32> {
        Ok(0)
    }

    fn set_oom_score_adjustment(&self, _: i32) -> io::Result<()> {
        Ok(())
    }

    fn check_paging(&self) -> io::Result<()> {
        Ok(())
    }

    fn page(&self, _: Paging, _: Arc<AtomicBool>) -> io::Result<JoinHandle<io::Result<u64>>> {
        Ok(self.machine.tasks.spawn(async { Ok(0) }))
    }
}

impl Drop for SimProcess {
    fn drop(&mut self) {
        if self.process.end(KILLED) {
            self.machine.event(self.process.attempt, "is dropped");
        }
        self.machine.remove(self.process.pid);
    }
}

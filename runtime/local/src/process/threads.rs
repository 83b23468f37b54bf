//! Attempts on threads of this process, in the place of task processes: for tests and small data.
//!
//! A thread cannot be killed or stopped from outside. A kill closes its control channel, whereupon the attempt ends
//! at its next boundary; suspensions are refused.

use std::fmt;
use std::io;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use napreduce_task::{Definitions, Paging, run_on_thread};
use rustix::net::{Shutdown, shutdown};
use rustix::process::{Pid, getpid};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

use super::control::ControlChannel;
use super::control_groups::ControlGroup;
use super::launch::Launch;
use super::memory::{ProcessMemory, SpareMemory};
use super::processes::{Pending, Processes, TaskProcess};
use super::stops::{Awaited, ChildEvent};

/// The stack of a main thread on Linux; user code may rely on it.
const STACK_BYTES: usize = 8 << 20;

/// Starts attempts on threads.
pub struct TaskThreads {
    definitions: Arc<dyn Definitions + Send + Sync>,
    is_silent: bool,
}

impl TaskThreads {
    /// Creates a machine whose attempts run jobs of `definitions`. With `is_silent`, their warnings are not
    /// printed.
    pub fn new(definitions: Arc<dyn Definitions + Send + Sync>, is_silent: bool) -> TaskThreads {
        TaskThreads {
            definitions,
            is_silent,
        }
    }

    fn begin(&self) -> io::Result<TaskThread> {
        let (control, theirs) = StdUnixStream::pair()?;
        control.set_nonblocking(true)?;
        let control = UnixStream::from_std(control)?;
        let (end, ends) = StdUnixStream::pair()?;
        end.set_nonblocking(true)?;
        let definitions = Arc::clone(&self.definitions);
        let is_silent = self.is_silent;
        let thread = std::thread::Builder::new()
            .name("task".into())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                // Closed when this thread ends, in whatever way.
                let _ends = ends;
                run_on_thread(theirs, &*definitions, is_silent).map_err(io::Error::other)
            })?;
        Ok(TaskThread {
            control,
            end: UnixStream::from_std(end)?,
            thread: Some(thread),
        })
    }
}

impl fmt::Debug for TaskThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskThreads").finish_non_exhaustive()
    }
}

impl Processes for TaskThreads {
    fn start(&self, _: Launch) -> Pending<'_, Box<dyn TaskProcess>> {
        Box::pin(async { Ok(Box::new(self.begin()?) as Box<dyn TaskProcess>) })
    }

    fn sweep(&self, _: Vec<String>) {}

    fn memory_of(&self, _: Pid) -> io::Result<ProcessMemory> {
        Ok(ProcessMemory::default())
    }

    fn spare_memory(&self) -> io::Result<SpareMemory> {
        SpareMemory::read()
    }

    fn stalled_micros(&self) -> Option<u64> {
        None
    }

    fn oom_kills(&self) -> u64 {
        0
    }
}

/// An attempt on a thread.
#[derive(Debug)]
struct TaskThread {
    control: UnixStream,
    /// Readable when the attempt has ended. The runtime sees it after all messages on `control`.
    end: UnixStream,
    thread: Option<std::thread::JoinHandle<io::Result<()>>>,
}

impl TaskProcess for TaskThread {
    fn id(&self) -> Pid {
        getpid()
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

    fn suspend(&self) {}

    fn stands_still(&self) -> bool {
        false
    }

    fn resume(&self) {}

    fn kill(&self) {
        // An error means that the attempt has ended.
        let _ = shutdown(&self.control, Shutdown::Write);
    }

    fn await_change(&self, _: Awaited) -> Pending<'static, ChildEvent> {
        Box::pin(async { Err(unsupported()) })
    }

    fn ended(&self) -> Pending<'_, ()> {
        Box::pin(self.end.readable())
    }

    fn reap(&mut self) -> io::Result<ExitStatus> {
        if let Some(thread) = self.thread.take() {
            thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the thread of the task panicked")))?;
        }
        Ok(ExitStatus::from_raw(0))
    }

    fn oom_score_adjustment(&self) -> io::Result<i32> {
        Err(unsupported())
    }

    fn set_oom_score_adjustment(&self, _: i32) -> io::Result<()> {
        Err(unsupported())
    }

    fn check_paging(&self) -> io::Result<()> {
        Err(unsupported())
    }

    fn page(&self, _: Paging, _: Arc<AtomicBool>) -> io::Result<JoinHandle<io::Result<u64>>> {
        Err(unsupported())
    }
}

impl Drop for TaskThread {
    fn drop(&mut self) {
        self.kill();
        // The result was of interest to `reap` only.
        let _ = self.reap();
    }
}

fn unsupported() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "a task on a thread cannot be stopped",
    )
}

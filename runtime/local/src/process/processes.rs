//! The processes and the memory of a machine, as a worker uses them.
//!
//! A worker starts, signals, awaits and measures task processes through these two traits only, so that a test
//! or a simulation can replace the kernel. [`Spawner`](super::Spawner) is the real implementation.

use std::fmt::Debug;
use std::io;
use std::pin::Pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use napreduce_task::Paging;
use rustix::process::Pid;
use tokio::task::JoinHandle;

use super::control::ControlChannel;
use super::control_groups::ControlGroup;
use super::launch::Launch;
use super::memory::{ProcessMemory, SpareMemory};
use super::stops::{Awaited, ChildEvent};

/// A pending result of the operating system.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// A machine on which task processes run.
pub trait Processes: Debug + Send + Sync {
    /// Starts a task process or takes a prestarted one.
    fn start(&self, launch: Launch) -> Pending<'_, Box<dyn TaskProcess>>;

    /// Kills what is left of the processes that an ended, reaped attempt started.
    fn sweep(&self, marks: Vec<String>);

    /// Returns the memory of a process that is not reaped and of its descendants.
    fn memory_of(&self, process: Pid) -> io::Result<ProcessMemory>;

    /// Returns the memory that is free now.
    fn spare_memory(&self) -> io::Result<SpareMemory>;

    /// Returns for how many microseconds since boot all tasks have stalled on memory, if it is known.
    fn stalled_micros(&self) -> Option<u64>;

    /// Returns the number of OOM kills since boot; 0 if it is not known.
    fn oom_kills(&self) -> u64;
}

/// A task process that has not been reaped. Dropping it kills and reaps it.
pub trait TaskProcess: Debug + Send + Sync {
    /// Returns the process id, valid until it is reaped.
    fn id(&self) -> Pid;

    /// Returns the control channel; see `ToTask` and `FromTask`.
    fn control(&self) -> &dyn ControlChannel;

    /// Returns the environment entries that identify its descendants when it has ended.
    fn marks(&self) -> &[String];

    /// Takes the control group of a prestarted process, if it is in one. The group must outlive the process:
    /// dropping it kills the process.
    fn take_group(&mut self) -> Option<ControlGroup>;

    /// Records which descendants are stopped before a suspension: [`resume`](TaskProcess::resume) leaves them
    /// alone. Must be called before anything asks the process or its commands to stop.
    fn note_stopped(&self);

    /// Stops the process and every descendant, in whatever process group or session.
    fn suspend(&self);

    /// Returns whether the process and every descendant are stopped.
    fn stands_still(&self) -> bool;

    /// Continues the process and every descendant that was not stopped before the suspension.
    fn resume(&self);

    /// Kills the process and every descendant.
    fn kill(&self);

    /// Waits until the kernel confirms a stop or a continuation, or the process has ended. After a stop, its
    /// descendants are stopped, too, also those that are forked meanwhile.
    fn await_change(&self, awaited: Awaited) -> Pending<'static, ChildEvent>;

    /// Waits until the process has ended; it is then a zombie and its id is not reused.
    fn ended(&self) -> Pending<'_, ()>;

    /// Reaps the ended process after killing its remaining group.
    fn reap(&mut self) -> io::Result<ExitStatus>;

    /// Returns the OOM score adjustment, from -1000 to 1000.
    fn oom_score_adjustment(&self) -> io::Result<i32>;

    /// Sets the OOM score adjustment; lowering it below its initial value requires a privilege.
    fn set_oom_score_adjustment(&self, adjustment: i32) -> io::Result<()>;

    /// Checks whether this program may page the memory of the process.
    fn check_paging(&self) -> io::Result<()>;

    /// Starts paging the memory of the process out or in, until `cancelled`; returns the number of bytes
    /// accepted by the kernel.
    ///
    /// # Errors
    /// Fails if this program may not page the memory of the process.
    fn page(
        &self,
        paging: Paging,
        cancelled: Arc<AtomicBool>,
    ) -> io::Result<JoinHandle<io::Result<u64>>>;
}

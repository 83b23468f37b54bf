//! Supervision of one attempt: one task process from start to reaping.
//!
//! `Ended` is sent after the process was reaped, and `Suspended` after the kernel has confirmed the stop; in
//! both cases the slot is free.
//!
//! ```text
//! supervised (the loop) -> preemption (the table of states): which step follows
//!                       -> suspension: timers, waiting for the kernel, memory, accounts
//!                       -> line: bytes of the control channel
//! ```

mod end;
mod line;
mod preemption;
mod supervised;
mod suspension;
mod swap;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use napreduce_engine::{AttemptId, FailureClass, FaultPlace, Order, Report};
use napreduce_protocol::{
    CounterValues, MapInput, PartOutput, PreemptionAccount, ReduceWork, StorageScheme,
    TaskDescription, TaskError, ToTask, Work, WorkerNews, WorkerReport,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;

use self::line::ControlLine;
use self::supervised::Supervised;
use super::admission::Admission;
use super::environment::AttemptLogs;
use super::hang::Limits;
use super::isolation::Bounds;
use super::segment_memory::MemorySegment;
use super::start_error::explain_start;
use crate::clock::now;
use crate::process::{Launch, Processes};
use crate::world::Tasks;

/// An event of an attempt for the worker's loop. Reports do not pass through the loop.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "an attempt ends once, and few events wait at a time"
)]
pub(super) enum AttemptEvent {
    Progressed {
        bytes_done: u64,
        bytes_total: u64,
    },
    Ended {
        end: AttemptEnd,
        /// When its process had ended.
        at: Instant,
        left: Leftovers,
    },
}

/// The remains of an ended attempt.
#[derive(Debug)]
pub(super) struct Leftovers {
    /// Its empty directory, for reuse by another attempt.
    pub(super) idle_scratch: Option<PathBuf>,
    /// Size of its split; 0 for a reduce.
    pub(super) input_bytes: u64,
    /// The memory reserved for its output.
    pub(super) memory: Option<MemorySegment>,
    /// The last lines of its standard error if it failed.
    pub(super) stderr: Option<String>,
}

/// The outcome of an attempt; its process no longer exists.
#[derive(Debug)]
pub(super) enum AttemptEnd {
    Done {
        counters: CounterValues,
        part: Option<PartOutput>,
        output_digest: Option<u64>,
    },
    Failed(TaskError),
    Killed,
    /// Its work is saved.
    Checkpointed,
}

/// An order for a running attempt.
#[derive(Debug)]
pub(super) struct AttemptOrder {
    pub(super) order: Order,
    /// The places of the inputs that it announces.
    pub(super) inputs: Vec<MapInput>,
}

/// The inputs for running and supervising an attempt.
pub(super) struct Supervision {
    pub(super) tasks: Tasks,
    pub(super) description: TaskDescription,
    pub(super) launch: Launch,
    pub(super) limits: Limits,
    /// Its resource limits, in a cluster.
    pub(super) bounds: Option<Bounds>,
    /// Memory for its output.
    pub(super) memory: Option<MemorySegment>,
    /// Its log files, in a cluster.
    pub(super) logs: Option<Box<dyn AttemptLogs>>,
    /// The name of this host, in a cluster.
    pub(super) host: Option<String>,
    pub(super) processes: Arc<dyn Processes>,
    /// Marks that identify the processes it started.
    pub(super) marks: Vec<String>,
    /// Whether this worker can keep it suspended.
    pub(super) admission: Arc<Admission>,
    pub(super) orders: UnboundedReceiver<AttemptOrder>,
    /// Reports to the coordinator.
    pub(super) news: UnboundedSender<WorkerNews>,
    pub(super) events: UnboundedSender<(AttemptId, AttemptEvent)>,
}

/// Returns whether the error may mean that this host cannot see the input.
fn is_blamed_on_input(error: &TaskError) -> bool {
    match error.class {
        FailureClass::Task => true,
        FailureClass::Retryable => error.place == FaultPlace::SharedStorage,
        _ => false,
    }
}

/// A file that this host cannot open.
struct UnreadableFile {
    path: PathBuf,
    error: io::Error,
}

/// Returns the first of some files that cannot be opened. Blocking.
fn find_unreadable(paths: Vec<PathBuf>) -> Option<UnreadableFile> {
    for path in paths {
        if let Err(error) = fs::File::open(&path) {
            return Some(UnreadableFile { path, error });
        }
    }
    None
}

impl Supervision {
    /// Runs the attempt; `Ended` is its last event.
    pub(super) async fn run(mut self) {
        let end = match self.start().await {
            Ok(supervised) => supervised.run(&mut self).await,
            Err(error) => AttemptEnd::Failed(error),
        };
        let at = now();
        self.processes.sweep(std::mem::take(&mut self.marks));
        if let Some(bounds) = self.bounds.take_if(|bounds| !bounds.are_deserted()) {
            // Dropping the bounds waits for the remaining processes to end.
            let _ = self.tasks.blocking(move || drop(bounds)).await;
        }
        let mut stderr = None;
        if let Some(logs) = self.logs.take() {
            if matches!(end, AttemptEnd::Failed(_)) {
                stderr = logs.end_of_stderr();
            }
            logs.close().await;
        }
        let end = self.blame_unreadable_input(end).await;
        if !matches!(end, AttemptEnd::Done { .. }) {
            self.remove_output().await;
        }
        let idle_scratch = self.empty_scratch().await;
        let input_bytes = match &self.description.work {
            Work::Map(task) => task.split.length(),
            Work::Reduce(_) => 0,
        };
        let left = Leftovers {
            idle_scratch,
            input_bytes,
            memory: self.memory.take(),
            stderr,
        };
        self.send(AttemptEvent::Ended { end, at, left });
    }

    async fn start(&mut self) -> Result<Supervised, TaskError> {
        self.allocate().await;
        let start = ToTask::Start(Box::new(self.description.clone()));
        let line =
            ControlLine::begin(&start).map_err(|error| TaskError::fatal(error.to_string()))?;
        let launch = std::mem::take(&mut self.launch);
        let program = launch.program.clone();
        let process = self.processes.start(launch).await;
        let mut process = process
            .map_err(|error| explain_start(&error, program.as_ref(), self.host.as_deref()))?;
        if let Some(bounds) = self.bounds.take() {
            let ahead = process.take_group();
            self.bounds = Some(bounds.around(process.id(), ahead, &self.tasks).await);
        }
        self.marks = process.marks().to_vec();
        Ok(Supervised::begin(process, line, self))
    }

    /// Allocates the output memory in the worker. The kernel charges memory to the cgroup that touches it
    /// first, and a cgroup is reused by other attempts while the memory stays.
    async fn allocate(&mut self) {
        if self.bounds.is_none() {
            return;
        }
        let Some(memory) = self.memory.take() else {
            return;
        };
        let allocated = self
            .tasks
            .blocking(move || memory.allocate().map(|()| memory))
            .await;
        match allocated.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(memory) => self.memory = Some(memory),
            Err(error) => {
                tracing::debug!(target: "worker", "no memory for a segment: {error}");
                if let Work::Map(task) = &mut self.description.work {
                    task.memory_file = None;
                }
            }
        }
    }

    /// Changes the error if an input cannot be opened on this host: it is not the task's fault, and another
    /// worker may be able to open it.
    async fn blame_unreadable_input(&self, end: AttemptEnd) -> AttemptEnd {
        let error = match end {
            AttemptEnd::Failed(error) if is_blamed_on_input(&error) => error,
            end => return end,
        };
        let (Some(host), Work::Map(task)) = (&self.host, &self.description.work) else {
            return AttemptEnd::Failed(error);
        };
        let mut paths = Vec::new();
        for part in &task.split.parts {
            // The task has already reported errors of objects.
            if StorageScheme::from_path(&part.path).is_none() {
                paths.push(part.path.clone());
            }
        }
        let found = self.tasks.blocking(move || find_unreadable(paths)).await;
        let Ok(Some(unreadable)) = found else {
            return AttemptEnd::Failed(error);
        };
        let message = format!(
            "host {host} cannot read {}: {}; is it on storage that every worker sees? ({})",
            unreadable.path.display(),
            unreadable.error,
            error.message
        );
        AttemptEnd::Failed(TaskError::retryable(message).at(FaultPlace::SharedStorage))
    }

    fn scratch(&self) -> &Path {
        match &self.description.work {
            Work::Map(task) => &task.scratch,
            Work::Reduce(ReduceWork { task, .. }) => &task.scratch,
        }
    }

    fn output(&self) -> &Path {
        match &self.description.work {
            Work::Map(task) => &task.output,
            Work::Reduce(ReduceWork { task, .. }) => &task.output,
        }
    }

    /// Removes the output of an attempt that is not done, unless it is in the scratch directory. A failed removal is
    /// repeated at the end of the job.
    async fn remove_output(&self) {
        let directory = self.output().parent();
        if directory == Some(self.scratch()) {
            return;
        }
        let output = self.output().to_owned();
        // A part has a directory of its own.
        let is_part = self.description.promote_to.is_some();
        let part_directory = directory.filter(|_| is_part).map(Path::to_owned);
        // Outside the loop: a part is on shared storage, which may be slow. It is missing unless the attempt wrote it.
        let _ = self
            .tasks
            .blocking(move || match part_directory {
                Some(directory) => fs::remove_dir_all(directory),
                None => fs::remove_file(output),
            })
            .await;
    }

    /// Returns the attempt's scratch directory if it is empty; otherwise removes it. A failed removal is repeated at the
    /// end of the job.
    async fn empty_scratch(&self) -> Option<PathBuf> {
        let scratch = self.scratch();
        if fs::read_dir(scratch).ok()?.next().is_some() {
            // It may be large, so it is removed outside the loop.
            let scratch = scratch.to_owned();
            let _ = self
                .tasks
                .blocking(move || fs::remove_dir_all(scratch))
                .await;
            return None;
        }
        Some(scratch.to_owned())
    }

    /// Reports a change of the attempt; `Suspended` only after the kernel has confirmed the stop, since it frees the
    /// slot.
    fn report(&self, report: Report) {
        let attempt = self.description.attempt;
        self.send_report(WorkerReport::Happened { attempt, report });
    }

    /// Reports the cost of a preemption or of the return from one.
    fn account(&self, account: PreemptionAccount) {
        let attempt = self.description.attempt;
        self.send_report(WorkerReport::Preempted { attempt, account });
    }

    /// Reports that another party requests the attempt's suspension.
    fn want_suspend(&self) {
        let attempt = self.description.attempt;
        self.send_report(WorkerReport::SuspendWanted { attempt });
    }

    fn send_report(&self, report: WorkerReport) {
        tracing::debug!(target: "worker", "{report:?}");
        // Sending fails only if the worker was dropped together with this attempt.
        let _ = self.news.send(WorkerNews::Report {
            at: now().into_std(),
            report,
        });
    }

    fn send(&self, event: AttemptEvent) {
        tracing::debug!(target: "worker", "{event:?}");
        // If the worker no longer listens, it was dropped together with this attempt.
        let _ = self.events.send((self.description.attempt, event));
    }
}

#[cfg(test)]
mod tests;

//! Supervision of one attempt: one task process from start to reaped.
//!
//! Owns what the worker wants of an attempt and is told of it, and the files it leaves. Does not own what the
//! end of the attempt means for its task. The process is gone when `Ended` is told, so its slot is free; and
//! it is stopped, by the word of the kernel, when `Suspended` is told.
//!
//! ```text
//! supervised (the loop) -> preemption (the table of states): which step follows
//!                       -> suspension: timers, waiting for the kernel's word, memory, accounts
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
    CounterValues, MapInput, PartOutput, PreemptionAccount, ReduceWork, StorageScheme, TaskDescription,
    TaskError, ToTask, Work,
};
use napreduce_task::{Launch, Spawner};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use self::line::ControlLine;
use self::supervised::Supervised;
use super::admission::Admission;
use super::environment::AttemptLogs;
use super::hang::Limits;
use super::isolation::Bounds;
use super::segment_memory::MemorySegment;
use super::start_error::explain_start;

/// What a supervised attempt tells.
#[derive(Debug)]
pub(super) enum AttemptEvent {
    Progressed {
        bytes_done: u64,
        bytes_total: u64,
    },
    /// As it is reported; of a suspend once the kernel says that it is stopped, for its slot is free then.
    Reported(Report),
    /// What a preemption, or the return from one, took.
    Accounted(PreemptionAccount),
    /// Somebody else wants it to be suspended.
    SuspendWanted,
    Ended {
        end: AttemptEnd,
        left: Leftovers,
    },
}

/// What an ended attempt leaves.
#[derive(Debug)]
pub(super) struct Leftovers {
    /// Its directory, empty, for another attempt to use.
    pub(super) idle_scratch: Option<PathBuf>,
    /// How many bytes of input it was to read, and the memory it had for its output.
    pub(super) sealing: (u64, Option<MemorySegment>),
    /// The end of what it has printed on standard error, if it has failed.
    pub(super) stderr: Option<String>,
}

/// How an attempt ended; its process is gone.
#[derive(Debug)]
pub(super) enum AttemptEnd {
    Done {
        counters: CounterValues,
        part: Option<PartOutput>,
    },
    Failed(TaskError),
    Killed,
    /// Its work is saved.
    Checkpointed,
}

/// All it takes to run and supervise an attempt.
pub(super) struct Supervision {
    pub(super) description: TaskDescription,
    pub(super) launch: Launch,
    pub(super) limits: Limits,
    /// What it may hold, in a cluster.
    pub(super) bounds: Option<Bounds>,
    /// What it may write its output to.
    pub(super) memory: Option<MemorySegment>,
    /// What it prints, in a cluster.
    pub(super) logs: Option<Box<dyn AttemptLogs>>,
    /// The name of this host, in a cluster.
    pub(super) host: Option<String>,
    pub(super) spawner: Arc<Spawner>,
    /// By which what its process has started is known.
    pub(super) marks: Vec<String>,
    /// Whether this worker can keep it suspended.
    pub(super) admission: Arc<Admission>,
    /// With the places of the inputs that are named.
    pub(super) orders: UnboundedReceiver<(Order, Vec<MapInput>)>,
    pub(super) events: UnboundedSender<(AttemptId, AttemptEvent)>,
}

/// Whether it may be that this host does not see the input.
fn is_blamed_on_input(error: &TaskError) -> bool {
    error.class == FailureClass::Task
        || (error.class, error.place) == (FailureClass::Retryable, FaultPlace::SharedStorage)
}

impl Supervision {
    /// Runs the attempt; `Ended` is the last event it tells.
    pub(super) async fn run(mut self) {
        let end = match self.start().await {
            Ok(supervised) => supervised.run(&mut self).await,
            Err(error) => AttemptEnd::Failed(error),
        };
        self.spawner.sweep(std::mem::take(&mut self.marks));
        if let Some(bounds) = self.bounds.take_if(|bounds| !bounds.are_deserted()) {
            // It waits until whoever is left has ended.
            let _ = tokio::task::spawn_blocking(move || drop(bounds)).await;
        }
        let mut stderr = None;
        if let Some(logs) = self.logs.take() {
            if matches!(end, AttemptEnd::Failed(_)) {
                stderr = logs.end_of_stderr();
            }
            logs.close().await;
        }
        let end = self.blame(end).await;
        let idle_scratch = self.remove_files(matches!(end, AttemptEnd::Done { .. })).await;
        let read = match &self.description.work {
            Work::Map(task) => task.split.length(),
            Work::Reduce(_) => 0,
        };
        let left = Leftovers { idle_scratch, sealing: (read, self.memory.take()), stderr };
        self.tell(AttemptEvent::Ended { end, left });
    }

    async fn start(&mut self) -> Result<Supervised, TaskError> {
        self.allocate().await;
        let start = ToTask::Start(Box::new(self.description.clone()));
        let line = ControlLine::begin(&start).map_err(|error| TaskError::fatal(error.to_string()))?;
        let launch = std::mem::take(&mut self.launch);
        let program = launch.program.clone();
        let process = self.spawner.spawn(launch).await;
        let mut process =
            process.map_err(|error| explain_start(&error, program.as_ref(), self.host.as_deref()))?;
        if let Some(bounds) = self.bounds.take() {
            self.bounds = Some(bounds.around(&mut process).await);
        }
        self.marks = process.marks.clone();
        Ok(Supervised::begin(process, line, self))
    }

    /// Whoever touches memory first is charged for it. A control group is used again by other attempts, while
    /// the memory stays.
    async fn allocate(&mut self) {
        if self.bounds.is_none() {
            return;
        }
        let Some(memory) = self.memory.take() else { return };
        let allocated = tokio::task::spawn_blocking(move || memory.allocate().map(|()| memory)).await;
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

    /// An input that cannot be opened from this host is not the fault of the task: another worker may see it.
    async fn blame(&self, end: AttemptEnd) -> AttemptEnd {
        let (Some(host), Work::Map(task)) = (&self.host, &self.description.work) else { return end };
        match end {
            AttemptEnd::Failed(error) if is_blamed_on_input(&error) => {
                let mut parts = task.split.parts.clone();
                // What is wrong with an object the task has said itself.
                parts.retain(|part| StorageScheme::of(&part.path).is_none());
                let opening = move || {
                    parts.into_iter().find_map(|part| Some((fs::File::open(&part.path).err()?, part.path)))
                };
                let unreadable = tokio::task::spawn_blocking(opening).await;
                AttemptEnd::Failed(match unreadable {
                    Ok(Some((unreadable, path))) => TaskError::retryable(format!(
                        "host {host} cannot read {}: {unreadable}; is it on storage that every worker sees? ({})",
                        path.display(),
                        error.message
                    ))
                    .at(FaultPlace::SharedStorage),
                    _ => error,
                })
            }
            end => end,
        }
    }

    /// Removes what is in the scratch of the ended attempt, and what it wrote unless that is the result. What
    /// cannot be removed is tried again with everything else when the job ends. The directory itself, if it
    /// is empty now.
    async fn remove_files(&self, done: bool) -> Option<PathBuf> {
        let (scratch, output) = match &self.description.work {
            Work::Map(task) => (&task.scratch, &task.output),
            Work::Reduce(ReduceWork { task, .. }) => (&task.scratch, &task.output),
        };
        let apart = output.parent() != Some(scratch.as_path());
        if !done && apart {
            // Missing unless the attempt wrote it. Beside the loop: a part is on shared storage,
            // which may be slow.
            let own = output.parent().filter(|_| self.description.promote_to.is_some()).map(Path::to_owned);
            let output = output.clone();
            let _ = tokio::task::spawn_blocking(move || match own {
                Some(directory) => fs::remove_dir_all(directory),
                None => fs::remove_file(output),
            })
            .await;
        }
        if fs::read_dir(scratch).ok()?.next().is_some() {
            // It may be large, so beside the loop.
            let scratch = scratch.clone();
            let _ = tokio::task::spawn_blocking(move || fs::remove_dir_all(scratch)).await;
            return None;
        }
        Some(scratch.clone())
    }

    fn report(&self, report: Report) {
        self.tell(AttemptEvent::Reported(report));
    }

    fn tell(&self, event: AttemptEvent) {
        tracing::debug!(target: "worker", "{event:?}");
        // A worker that no longer listens has been dropped, and this attempt with it.
        let _ = self.events.send((self.description.attempt, event));
    }
}

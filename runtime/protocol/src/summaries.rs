//! Summaries of jobs, tasks and workers, serialized as shown by `--format json`.

use std::path::PathBuf;

use napreduce_engine::{
    AttemptId, AttemptState, JobId, JobOutcome, Standing, TaskId, WorkerId, listed,
};
use serde::{Deserialize, Deserializer, Serialize};

use crate::progress::JobProgress;

listed! {
    /// The phase of a job.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum JobPhase {
        /// It has tasks to do, but none of them runs; `nap job explain` shows why.
        Waiting = "waiting",
        /// At least one of its tasks runs.
        Running = "running",
        /// An operator holds it: no further task is launched until it is released.
        Held = "held",
        /// All of its started tasks are suspended, by an operator or the scheduler.
        Suspended = "suspended",
        /// Its outcome is decided; its last attempts are ending, or its output is being committed.
        Stopping = "stopping",
        /// Its output is complete.
        Succeeded = "succeeded",
        /// A task failed too often, or fatally.
        Failed = "failed",
        /// It was killed.
        Killed = "killed",
    }
}

impl JobPhase {
    /// The phase of a job with this outcome.
    pub fn ended(outcome: &JobOutcome) -> JobPhase {
        match outcome {
            JobOutcome::Succeeded => JobPhase::Succeeded,
            JobOutcome::Failed { .. } => JobPhase::Failed,
            JobOutcome::Killed { .. } => JobPhase::Killed,
        }
    }

    /// Whether it has tasks to do and its outcome is open.
    pub fn is_active(self) -> bool {
        matches!(
            self,
            JobPhase::Waiting | JobPhase::Running | JobPhase::Held | JobPhase::Suspended
        )
    }

    /// Whether it has ended.
    pub fn has_ended(self) -> bool {
        matches!(
            self,
            JobPhase::Succeeded | JobPhase::Failed | JobPhase::Killed
        )
    }
}

impl From<Standing> for JobPhase {
    fn from(standing: Standing) -> JobPhase {
        match standing {
            Standing::Waiting => JobPhase::Waiting,
            Standing::Running => JobPhase::Running,
            Standing::Held => JobPhase::Held,
            Standing::Suspended => JobPhase::Suspended,
            Standing::Stopping => JobPhase::Stopping,
        }
    }
}

/// A job in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSummary {
    pub job: JobId,
    pub name: String,
    /// The submitter.
    pub user: String,
    /// The queue it was submitted to.
    pub queue: String,
    /// Higher is more important.
    pub priority: i32,
    pub phase: JobPhase,
    /// Why it failed, was killed or is held.
    pub reason: Option<String>,
    /// When it was submitted, in milliseconds since 1970.
    pub submitted_millis: u64,
    /// When it ended, in milliseconds since 1970.
    pub ended_millis: Option<u64>,
    /// Its progress.
    pub progress: JobProgress,
    /// The output directory.
    #[serde(with = "crate::path_bytes")]
    pub output: PathBuf,
    /// Why the history does not have this ended job; its details are lost.
    #[serde(default)]
    pub unrecorded: Option<String>,
}

/// One attempt in a job's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptSummary {
    pub attempt: AttemptId,
    /// The worker it was launched on, and that worker's name.
    pub worker: WorkerId,
    /// The worker's name.
    pub worker_name: String,
    /// When it was launched, in milliseconds since 1970.
    pub launched_millis: u64,
    /// When it ended, in milliseconds since 1970.
    pub ended_millis: Option<u64>,
    /// How it ended, for people: [`AttemptSummary::SUCCEEDED`], or the reason.
    #[serde(default, deserialize_with = "end_of_any_version")]
    pub end: Option<String>,
    /// Only if it completed its task.
    #[serde(default)]
    pub figures: Option<AttemptFigures>,
    /// The same times in microseconds; empty in records of earlier versions.
    #[serde(default)]
    pub moments: Option<AttemptMoments>,
}

/// Times of an attempt, in microseconds since 1970 or the start of a simulation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptMoments {
    pub launched: u64,
    /// When its process began to work.
    pub started: Option<u64>,
    pub ended: Option<u64>,
}

/// The throughput of a completed attempt, from its counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptFigures {
    /// Bytes of a map's split, or fetched by a reduce.
    pub input_bytes: u64,
    /// Bytes of map output, or of a part file.
    pub output_bytes: u64,
    /// Records passed to the map or reduce function.
    pub input_records: u64,
    /// Records that it emitted.
    pub output_records: u64,
    /// Time a reduce waited for map outputs.
    pub shuffle_millis: u64,
    /// Processor time.
    pub processor_millis: u64,
    /// Records that were written to disk by sorting and merging.
    pub spilled_records: u64,
    /// Peak of its anonymous memory; 0 if unknown.
    #[serde(default)]
    pub peak_memory_bytes: u64,
}

/// Reads the end of an attempt; files of earlier versions call a success `done`.
fn end_of_any_version<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let end = Option::<String>::deserialize(from)?;
    Ok(end.map(|end| {
        if end == "done" {
            AttemptSummary::SUCCEEDED.to_owned()
        } else {
            end
        }
    }))
}

impl AttemptSummary {
    /// The end and the outcome of an attempt that completed its task.
    pub const SUCCEEDED: &str = "succeeded";

    /// When it was launched, in microseconds.
    pub fn launched_micros(&self) -> u64 {
        self.moments.map_or_else(
            || self.launched_millis.saturating_mul(1_000),
            |exact| exact.launched,
        )
    }

    /// When its process began to work, in microseconds; `None` if it has not, or if that was not recorded.
    pub fn started_micros(&self) -> Option<u64> {
        self.moments.and_then(|exact| exact.started)
    }

    /// When it ended, in microseconds.
    pub fn ended_micros(&self) -> Option<u64> {
        let roughly = || self.ended_millis.map(|ended| ended.saturating_mul(1_000));
        self.moments.map_or_else(roughly, |exact| exact.ended)
    }

    /// How it ended, in a word: `succeeded`, `checkpointed`, `killed`, `lost` (with its worker) or `failed`.
    /// `None` while it runs.
    pub fn outcome(&self) -> Option<&'static str> {
        Some(match self.end.as_deref()? {
            AttemptSummary::SUCCEEDED => AttemptSummary::SUCCEEDED,
            "checkpointed" => "checkpointed",
            "killed" | "its job was over" => "killed",
            end if end.starts_with("killed: ") || end.starts_with("preempted: ") => "killed",
            end if *end == format!("{} was lost", self.worker) => "lost",
            _ => "failed",
        })
    }

    /// Whether it completed its task.
    pub fn has_succeeded(&self) -> bool {
        self.end.as_deref() == Some(AttemptSummary::SUCCEEDED)
    }

    /// Whether it failed, and was neither killed nor preempted.
    pub fn has_failed(&self) -> bool {
        self.outcome() == Some("failed")
    }
}

/// Something that happened to a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryLine {
    /// When, in milliseconds since 1970.
    pub at_millis: u64,
    /// The event, as text.
    pub text: String,
}

listed! {
    /// The phase of a task.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum TaskPhase {
        /// None of its attempts is live.
        Waiting = "waiting",
        /// At least one of its attempts is live and not suspended.
        Running = "running",
        /// Its live attempts are suspended, or an operator suspended it.
        Suspended = "suspended",
        /// It waits to be restored from a checkpoint.
        Checkpointed = "checkpointed",
        /// It is completed.
        Succeeded = "succeeded",
        /// Its job has ended without it, and its last attempt failed.
        Failed = "failed",
        /// Its job has ended without it for another reason; it may never have been started.
        Killed = "killed",
    }
}

/// A task in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSummary {
    pub task: TaskId,
    pub state: TaskPhase,
    /// Why it is suspended or checkpointed, and by whom.
    pub reason: Option<String>,
    /// Attempts launched.
    pub attempts: u32,
    /// Its live attempts.
    pub live: Vec<LiveAttempt>,
}

impl TaskSummary {
    /// A task without known live attempts.
    pub fn new(task: TaskId, state: TaskPhase, attempts: u32) -> TaskSummary {
        TaskSummary {
            task,
            state,
            reason: None,
            attempts,
            live: Vec::new(),
        }
    }
}

/// A live attempt in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveAttempt {
    pub attempt: AttemptId,
    /// Its worker.
    pub worker: WorkerId,
    pub state: AttemptState,
    /// When it was launched, in milliseconds since 1970.
    pub launched_millis: u64,
    /// Why and for which job its slot is or was preempted.
    pub reason: Option<String>,
    /// Bytes of input consumed.
    pub bytes_done: u64,
    /// Bytes of input in all; 0 while unknown.
    pub bytes_total: u64,
}

listed! {
    /// The state of a worker.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum WorkerPhase {
        /// It may get tasks.
        Up = "up",
        /// It gets no new tasks for a while: many failed there, or it lacks a resource.
        Excluded = "excluded",
        /// It gets no new tasks and will leave.
        Draining = "draining",
        /// It may leave, and counts as gone.
        Leaving = "leaving",
        /// It has left.
        Left = "left",
        /// It no longer responds.
        Lost = "lost",
    }
}

/// Memory held by a suspended attempt's process, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspendedMemory {
    pub attempt: AttemptId,
    pub resident_bytes: u64,
    pub swapped_bytes: u64,
}

/// The state of a worker's memory and disk.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkerMemory {
    /// All its suspended attempts.
    pub suspended: Vec<SuspendedMemory>,
    /// Memory available to programs without swapping; 0 while unknown.
    pub free_bytes: u64,
    /// Free swap; 0 if there is none.
    pub swap_free_bytes: u64,
    /// Free space of the disk that its attempts write to; 0 while unknown.
    pub disk_free_bytes: u64,
    /// Memory of the control groups of all its attempts, with the files that they cache; `None` without groups.
    pub groups_bytes: Option<u64>,
}

/// A worker in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSummary {
    pub worker: WorkerId,
    /// The name of its directory.
    pub name: String,
    /// The host it is on.
    pub host: String,
    /// The rack it is on.
    pub rack: String,
    pub state: WorkerPhase,
    /// Remarks, such as a shortage.
    pub remarks: Vec<String>,
    /// The attempt that failed last there, if its task and others then succeeded on other workers.
    pub failing: Option<AttemptId>,
    /// The isolation of its attempts: `cgroup v2`, `watchdog`, `none`; empty if it is gone.
    pub isolation: String,
    /// When it left or was lost, in milliseconds since 1970.
    pub gone_millis: Option<u64>,
    /// Why it was lost, or how it left.
    pub reason: Option<String>,
    /// Its map slots, and those in use.
    pub map_slots: (u32, u32),
    /// Its reduce slots, and those in use.
    pub reduce_slots: (u32, u32),
    /// Milliseconds since its last message.
    pub silent_millis: u64,
    /// As last reported.
    pub memory: WorkerMemory,
}

impl WorkerSummary {
    /// Its state and remarks, as printed.
    pub fn state_in_words(&self) -> String {
        self.remarks
            .iter()
            .fold(self.state.to_string(), |words, remark| {
                format!("{words}, {remark}")
            })
    }
}

listed! {
    /// The two logs of an attempt.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum LogStream {
        /// Standard output.
        Stdout = "stdout",
        /// Standard error.
        Stderr = "stderr",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(end: Option<&str>) -> AttemptSummary {
        AttemptSummary {
            attempt: "job_0007_m_0003.1".parse().expect("an attempt"),
            worker: WorkerId(2),
            worker_name: "w".to_owned(),
            launched_millis: 1,
            ended_millis: Some(2),
            end: end.map(str::to_owned),
            figures: None,
            moments: None,
        }
    }

    #[test]
    fn success_of_earlier_versions_is_read_as_success() {
        let mut written =
            serde_json::to_value(ended(Some(AttemptSummary::SUCCEEDED))).expect("JSON");
        assert_eq!(written["end"], "succeeded");
        written["end"] = "done".into();
        let read: AttemptSummary = serde_json::from_value(written.clone()).expect("an attempt");
        assert!(read.has_succeeded());
        assert_eq!(read.outcome(), Some("succeeded"));
        written.as_object_mut().expect("an object").remove("end");
        let open: AttemptSummary = serde_json::from_value(written).expect("an attempt");
        assert_eq!(open, ended(None));
    }

    #[test]
    fn has_failed_excludes_kills_and_preemptions() {
        for end in [
            AttemptSummary::SUCCEEDED,
            "checkpointed",
            "killed",
            "killed: by nap task kill",
            "preempted: for job_0009",
            "worker_0002 was lost",
        ] {
            assert!(!ended(Some(end)).has_failed(), "{end}");
        }
        for end in [
            "a panic at map.rs:7",
            "task memory: it held 5 GiB",
            "killed by signal 9",
            "worker_0003 was lost",
        ] {
            assert!(ended(Some(end)).has_failed(), "{end}");
        }
        assert!(!ended(None).has_failed(), "it runs");
    }
}

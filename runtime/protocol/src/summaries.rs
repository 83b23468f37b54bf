//! What a coordinator says of its jobs, tasks and workers.
//!
//! Owns plain data, serialisable as it is shown with `--format json`. Does not own where it is known from.

use std::path::PathBuf;

use napreduce_engine::{AttemptId, AttemptState, JobId, JobOutcome, TaskId, WorkerId, listed};
use serde::{Deserialize, Serialize};

use crate::progress::JobProgress;

listed! {
    /// Where a job is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum JobPhase {
        /// It has tasks to do.
        Active = "active",
        /// It has tasks to do, and all that was begun of it is suspended; `nap job explain` says why.
        Suspended = "suspended",
        /// How it ends is decided; the last of its attempts are being ended, or its output is being
        /// committed.
        Stopping = "stopping",
        /// Its output is complete.
        Succeeded = "succeeded",
        /// A task failed too often, or fatally.
        Failed = "failed",
        /// Somebody ended it.
        Killed = "killed",
    }
}

impl JobPhase {
    /// That of a job that has ended so.
    pub fn ended(outcome: &JobOutcome) -> JobPhase {
        match outcome {
            JobOutcome::Succeeded => JobPhase::Succeeded,
            JobOutcome::Failed { .. } => JobPhase::Failed,
            JobOutcome::Killed { .. } => JobPhase::Killed,
        }
    }

    /// Whether it has tasks to do, and how it ends is open.
    pub fn is_active(self) -> bool {
        matches!(self, JobPhase::Active | JobPhase::Suspended)
    }
}

/// A job in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSummary {
    pub job: JobId,
    pub name: String,
    /// Who submitted it.
    pub user: String,
    /// The queue it was submitted to.
    pub queue: String,
    /// Higher is more important.
    pub priority: i32,
    pub phase: JobPhase,
    /// Why it failed or was killed, or what holds it.
    pub reason: Option<String>,
    /// When it was submitted, in milliseconds since 1970.
    pub submitted_millis: u64,
    /// When it ended, likewise.
    pub ended_millis: Option<u64>,
    /// How far it is.
    pub progress: JobProgress,
    /// The output directory.
    #[serde(with = "crate::path_bytes")]
    pub output: PathBuf,
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
    /// When it ended, likewise.
    pub ended_millis: Option<u64>,
    /// How it ended, for people: `done`, or why not.
    pub end: Option<String>,
    /// Of one that did its task.
    #[serde(default)]
    pub figures: Option<AttemptFigures>,
    /// The same moments more exactly; nothing in what earlier versions have recorded.
    #[serde(default)]
    pub moments: Option<AttemptMoments>,
}

/// The moments of an attempt, in microseconds since 1970, or since a simulation began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptMoments {
    pub launched: u64,
    /// When its process was ready and began to work.
    pub started: Option<u64>,
    pub ended: Option<u64>,
}

/// What an attempt that did its task has moved, and what that took, by its own counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptFigures {
    /// Bytes of a map's split, or those that a reduce fetched.
    pub input_bytes: u64,
    /// Bytes that a map wrote for reduces, or those of a part file.
    pub output_bytes: u64,
    /// Records that were handed to the map or reduce function.
    pub input_records: u64,
    /// Records that it emitted.
    pub output_records: u64,
    /// How long a reduce waited for outputs of maps.
    pub shuffle_millis: u64,
    /// Processor time.
    pub processor_millis: u64,
    /// Records that were written to disk by sorting and merging.
    pub spilled_records: u64,
}

impl AttemptSummary {
    /// When it was launched, in microseconds.
    pub fn launched_micros(&self) -> u64 {
        self.moments.map_or_else(|| self.launched_millis.saturating_mul(1_000), |exact| exact.launched)
    }

    /// When its process began to work, likewise; nothing before that, and where it was not recorded.
    pub fn started_micros(&self) -> Option<u64> {
        self.moments.and_then(|exact| exact.started)
    }

    /// When it ended, likewise.
    pub fn ended_micros(&self) -> Option<u64> {
        let roughly = || self.ended_millis.map(|ended| ended.saturating_mul(1_000));
        self.moments.map_or_else(roughly, |exact| exact.ended)
    }

    /// How it ended, in a word: `done`, `checkpointed`, `killed` (somebody ended it, or it was not wanted any
    /// more), `lost` (its worker was) or `failed`. None while it goes on.
    pub fn outcome(&self) -> Option<&'static str> {
        Some(match self.end.as_deref()? {
            "done" => "done",
            "checkpointed" => "checkpointed",
            "killed" | "its job was over" => "killed",
            end if end.starts_with("killed: ") || end.starts_with("preempted: ") => "killed",
            end if *end == format!("{} was lost", self.worker) => "lost",
            _ => "failed",
        })
    }

    /// Whether it ended badly by itself: it did not do its task, and nobody ended or took it.
    pub fn has_failed(&self) -> bool {
        self.outcome() == Some("failed")
    }
}

/// Something that happened to a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryLine {
    /// When, in milliseconds since 1970.
    pub at_millis: u64,
    /// What, for people.
    pub text: String,
}

listed! {
    /// Where a task is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum TaskPhase {
        /// None of its attempts is live.
        Pending = "pending",
        /// At least one of its attempts is live and not suspended.
        Active = "active",
        /// Its live attempts are suspended, or an operator holds it.
        Suspended = "suspended",
        /// It waits to go on from a checkpoint.
        Checkpointed = "checkpointed",
        /// One of its attempts has done it.
        Done = "done",
    }
}

/// A task in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSummary {
    pub task: TaskId,
    pub state: TaskPhase,
    /// Why it is suspended or checkpointed, and who wanted that.
    pub reason: Option<String>,
    /// How many attempts were launched.
    pub attempts: u32,
    /// Its live attempts: which, where, and in which state.
    pub live: Vec<LiveAttempt>,
}

impl TaskSummary {
    /// One of which no live attempt is known yet.
    pub fn of(task: TaskId, state: TaskPhase, attempts: u32) -> TaskSummary {
        TaskSummary { task, state, reason: None, attempts, live: Vec::new() }
    }
}

/// A live attempt in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveAttempt {
    pub attempt: AttemptId,
    /// The worker it is on.
    pub worker: WorkerId,
    pub state: AttemptState,
    /// Why it is to give or gave up its slot, and who wanted that.
    pub reason: Option<String>,
    /// Bytes of input consumed.
    pub bytes_done: u64,
    /// Bytes of input in all; 0 while unknown.
    pub bytes_total: u64,
}

listed! {
    /// Where a worker is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum WorkerPhase {
        /// It may get tasks.
        Up = "up",
        /// It gets nothing new for a while: much failed there, or it lacks something.
        Excluded = "excluded",
        /// It gets nothing new and is to leave.
        Draining = "draining",
        /// It may leave, and counts as gone.
        Leaving = "leaving",
        /// It has left.
        Left = "left",
        /// Nothing is heard of it any more.
        Lost = "lost",
    }
}

/// What a suspended attempt holds at present: its process, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspendedMemory {
    pub attempt: AttemptId,
    pub resident_bytes: u64,
    pub swapped_bytes: u64,
}

/// How the memory of a worker is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkerMemory {
    /// All attempts that it keeps suspended.
    pub suspended: Vec<SuspendedMemory>,
    /// What of its machine's memory programs could have without anything being moved to swap; 0 while
    /// unknown.
    pub free_bytes: u64,
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
    /// What there is to add, such as what it lacks.
    pub remarks: Vec<String>,
    /// What keeps its attempts from taking the machine: `cgroup v2`, `watchdog`, `none`; nothing of one that
    /// is gone.
    pub isolation: String,
    /// When one that is gone left or was lost, in milliseconds since 1970.
    pub gone_millis: Option<u64>,
    /// Why it was lost, or how it left.
    pub reason: Option<String>,
    /// Its map slots, and how many of them are in use.
    pub map_slots: (u32, u32),
    /// Its reduce slots, and how many of them are in use.
    pub reduce_slots: (u32, u32),
    /// Milliseconds since it was last heard of.
    pub silent_millis: u64,
    /// By its last word.
    pub memory: WorkerMemory,
}

impl WorkerSummary {
    /// Its state with what there is to add, as it is printed.
    pub fn state_in_words(&self) -> String {
        self.remarks.iter().fold(self.state.to_string(), |words, remark| format!("{words}, {remark}"))
    }
}

listed! {
    /// The two logs of an attempt.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum LogStream {
        /// What it wrote to standard output.
        Stdout = "stdout",
        /// What it wrote to standard error.
        Stderr = "stderr",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_has_failed_when_nobody_ended_it() {
        let ended = |end: Option<&str>| {
            let attempt = "job_0007_m_0003.1".parse().expect("an attempt");
            let end = end.map(str::to_owned);
            let (worker, worker_name) = (WorkerId(2), "w".to_owned());
            AttemptSummary {
                attempt,
                worker,
                worker_name,
                launched_millis: 1,
                ended_millis: Some(2),
                end,
                figures: None,
                moments: None,
            }
        };
        for end in [
            "done",
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

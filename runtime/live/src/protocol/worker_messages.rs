//! Messages between coordinator and worker.
//!
//! Owns the vocabulary. A worker knows of a job only what `Define` told it, and the coordinator knows of an attempt
//! only what was reported.

use std::path::PathBuf;

use napreduce_core::{AttemptId, JobId, Report, Slots, WorkerId};
use serde::{Deserialize, Serialize};

use crate::body::{PartOutput, Split};
use crate::counters::CounterValues;

/// What every attempt of a job has in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobDescription {
    pub(crate) job: JobId,
    pub(crate) definition: String,
    pub(crate) parameters: Vec<u8>,
    pub(crate) reduces: u32,
    pub(crate) cuts: Vec<Vec<u8>>,
    pub(crate) compress: bool,
    /// Memory of one attempt, in bytes.
    pub(crate) task_memory: u64,
    #[serde(with = "crate::path_bytes")]
    pub(crate) output: PathBuf,
    pub(crate) part_extension: String,
}

/// What a worker is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ToWorker {
    /// Comes before the first launch of a job's attempt.
    Define(JobDescription),
    Launch {
        attempt: AttemptId,
        work: LaunchWork,
    },
    Kill {
        attempt: AttemptId,
    },
    Commit {
        attempt: AttemptId,
    },
    /// The job is over: its description is no longer needed.
    Forget {
        job: JobId,
    },
}

/// What differs from attempt to attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LaunchWork {
    Map {
        split: Split,
    },
    /// The map attempts whose output to read, in task order.
    Reduce {
        inputs: Vec<AttemptId>,
    },
}

/// What a worker tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FromWorker {
    Joined {
        worker: WorkerId,
        slots: Slots,
    },
    /// Something happened to an attempt.
    Reported {
        worker: WorkerId,
        attempt: AttemptId,
        report: Report,
    },
    /// An attempt ended well; what it counted and, if it wrote one, its committed part.
    Finished {
        worker: WorkerId,
        attempt: AttemptId,
        counters: CounterValues,
        part: Option<PartOutput>,
    },
    /// Sent at an interval while attempts run: how far those are that got on.
    Heartbeat {
        worker: WorkerId,
        progress: Vec<AttemptProgress>,
    },
}

/// How far an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttemptProgress {
    pub(crate) attempt: AttemptId,
    pub(crate) bytes_done: u64,
    /// 0 while unknown.
    pub(crate) bytes_total: u64,
}

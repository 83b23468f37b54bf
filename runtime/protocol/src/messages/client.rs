//! Messages between coordinator and client: a submitter, the operator's binary, or a worker that
//! fetches a blob.
//!
//! Owns the vocabulary, one enum per direction. Every request is answered by one message, except where it is
//! said otherwise; a client sends its next request when the answer to the last one has come.

use std::path::PathBuf;

use napreduce_engine::{AttemptId, JobChange, JobId, Reason, TaskId, WorkerId};
use serde::{Deserialize, Serialize};

use super::data::Payload;
use super::worker::{Blob, SideFile};
use crate::commands::{CommandOutcome, JobCommand, TaskCommand};
use crate::detail::JobDetail;
use crate::digest::Digest;
use crate::plan::JobPlan;
use crate::progress::JobProgress;
use crate::queues::QueueListing;
use crate::report::JobEnd;
use crate::samples::ClusterWindow;
use crate::summaries::{JobSummary, LogStream, TaskSummary, WorkerSummary};

/// Bytes of a blob or a log in one message, at most.
pub const CHUNK_BYTES: usize = 1 << 20;

/// A job as it is handed in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Submission {
    /// Chosen at random by the submitter: handed in twice, it is one job.
    pub token: u128,
    pub plan: JobPlan,
    pub user: String,
    pub program: Blob,
    /// Architecture the program was built for, as Rust calls it.
    pub architecture: String,
    pub files: Vec<SideFile>,
    /// The job whose definition this is once more.
    pub rerun_of: Option<RerunOf>,
}

/// What an operator has run again, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RerunOf {
    pub job: JobId,
    pub reason: String,
}

/// What a client asks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ToCoordinator {
    /// Answered by `Present`; if it is not, followed by `Chunk`s of `blob.bytes` bytes in all, which are
    /// answered by `Done`. Until the connection's next `Submit` the blob stays.
    Offer {
        blob: Blob,
    },
    Chunk {
        bytes: Payload,
    },
    /// Answered by `Blob`, followed by `Chunk`s of that many bytes in all.
    FetchBlob {
        digest: Digest,
    },
    /// Answered by `Submitted`, when the job will survive a restart of the coordinator.
    Submit(Box<Submission>),
    /// Hands in the definition of another job once more, as a job of its own, with another output if one is
    /// said. Answered by `Submitted`; handed in twice with one token, it is one job.
    Rerun {
        token: u128,
        of: RerunOf,
        #[serde(with = "crate::path_bytes::optional")]
        output: Option<PathBuf>,
    },
    /// Answered by any number of `Progress` and then `Ended`.
    Follow {
        job: JobId,
    },
    /// Jobs of a program follow one another, and what passes between them lies in `root`. Answered
    /// by `Done`; then the connection stays open for as long as the program runs, and nothing but
    /// `EndChain` is said on it.
    HoldChain {
        chain: u128,
        #[serde(with = "crate::path_bytes")]
        root: PathBuf,
    },
    /// No job of the chain follows. Answered by `Done`.
    EndChain {
        chain: u128,
    },
    /// Answered by `Jobs`: the running ones, then those in history, newest first, at most `limit`.
    Jobs {
        limit: u32,
    },
    /// Answered by `Job`.
    Job {
        job: JobId,
    },
    /// Answered by `Done` when the end is decided.
    KillJob {
        job: JobId,
        reason: String,
    },
    /// Answered by `Tasks`: those of one job, or the live ones of all.
    Tasks {
        job: Option<JobId>,
    },
    /// Does something to the live attempts of a task, or to one attempt of it. Answered by `Commanded` when
    /// it is ordered.
    CommandTask {
        task: TaskId,
        attempt: Option<u32>,
        command: TaskCommand,
        reason: String,
    },
    /// Suspends or holds a job, or lets it go on. Answered by `Done` when it is ordered.
    CommandJob {
        job: JobId,
        command: JobCommand,
        reason: String,
    },
    /// Gives a job another priority or queue. Answered by `Done` when it has them.
    ChangeJob {
        job: JobId,
        change: JobChange,
        reason: String,
    },
    /// Answered by `Outcomes`: what has become of a command so far, for these attempts of a job, or for all
    /// live ones.
    Outcomes {
        job: JobId,
        attempts: Vec<AttemptId>,
        command: TaskCommand,
    },
    /// Answered by `Explained`: why a job or a task of it does not run.
    Explain {
        job: JobId,
        task: Option<TaskId>,
    },
    /// Answered by `Workers`.
    Workers,
    /// Answered by `Window`: how queues and workers were between two moments, in milliseconds since 1970.
    Window {
        from_millis: u64,
        until_millis: u64,
    },
    /// Answered by `Done` when the worker gets nothing more to do; that it has gone is seen in `Workers`.
    Drain {
        worker: WorkerId,
        hand_back: bool,
        reason: String,
    },
    /// A worker that drains stays after all. Answered by `Done` when it may get tasks again.
    Undrain {
        worker: WorkerId,
        reason: String,
    },
    /// Answered by `Queues`.
    Queues,
    /// Answered by `LogLength`, followed by `Chunk`s of that many bytes in all.
    Log {
        attempt: AttemptId,
        stream: LogStream,
        offset: u64,
    },
}

/// What a client is answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum FromCoordinator {
    Done,
    Present {
        present: bool,
    },
    Blob {
        bytes: u64,
    },
    LogLength {
        bytes: u64,
        /// Of the whole log, as it is now.
        length: u64,
        /// Whether the attempt had ended before: then the log does not grow any more.
        has_ended: bool,
    },
    Chunk {
        bytes: Payload,
    },
    Submitted {
        job: JobId,
    },
    Progress(JobProgress),
    Ended(Box<JobEnd>),
    Jobs(Vec<JobSummary>),
    Job(Box<JobDetail>),
    Tasks(Vec<TaskSummary>),
    Commanded {
        /// The attempts that it is done to.
        attempts: Vec<AttemptId>,
    },
    /// Each attempt that was asked about, in that order.
    Outcomes(Vec<(AttemptId, CommandOutcome)>),
    Explained {
        /// The most important one first.
        reasons: Vec<Reason>,
    },
    Workers(Vec<WorkerSummary>),
    Queues(QueueListing),
    Window(Box<ClusterWindow>),
    /// The request cannot be carried out; exit status (1 failed, 2 asked wrongly) and why, for people.
    Refused {
        status: u8,
        reason: String,
    },
}

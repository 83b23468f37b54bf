//! What the connections of clients ask of the coordinator's loop, and how it answers.
//!
//! Owns the vocabulary between a connection's task and the loop. Does not own the messages on the wire (`protocol`) nor
//! blobs, which connections read and write beside the loop.

use std::path::PathBuf;

use napreduce_core::{AttemptId, JobId, TaskId, WorkerId};
use napreduce_protocol::{
    CommandOutcome, JobCommand, JobDetail, JobEnd, JobError, JobProgress, JobSummary, Submission,
    TaskCommand, TaskSummary, WorkerSummary,
};
use tokio::sync::{oneshot, watch};

/// Why a request is not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The exit status of whoever asked: 1 it failed, 2 it was asked wrongly.
    pub(crate) status: u8,
    pub(crate) reason: String,
}

impl Refusal {
    /// It was asked wrongly: there is no such thing, or it cannot be done with it.
    pub(crate) fn wrong(reason: impl Into<String>) -> Refusal {
        Refusal { status: 2, reason: reason.into() }
    }

    pub(crate) fn of(error: &JobError) -> Refusal {
        Refusal { status: error.exit_status(), reason: error.to_string() }
    }
}

/// Where an answer goes. Whoever asked may be gone by then; then nobody wants to know.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Refusal>>;

/// How a job goes on: progress until its end is known.
#[derive(Debug)]
pub(crate) struct Following {
    pub(crate) progress: watch::Receiver<JobProgress>,
    /// `None` until the job has ended; the sender is dropped without an end only when the coordinator ends.
    pub(crate) end: watch::Receiver<Option<JobEnd>>,
}

/// A request of a client.
#[derive(Debug)]
pub(crate) enum ClientRequest {
    /// Its blobs are in the store. Answered when the job is in the journal.
    Submit {
        submission: Box<Submission>,
        reply: Reply<JobId>,
    },
    Follow {
        job: JobId,
        reply: Reply<Following>,
    },
    /// Running ones, then those in history, newest first.
    Jobs {
        limit: usize,
        reply: Reply<Vec<JobSummary>>,
    },
    Job {
        job: JobId,
        reply: Reply<Box<JobDetail>>,
    },
    KillJob {
        job: JobId,
        reason: String,
        reply: Reply<()>,
    },
    Tasks {
        job: Option<JobId>,
        reply: Reply<Vec<TaskSummary>>,
    },
    CommandTask {
        task: TaskId,
        attempt: Option<u32>,
        command: TaskCommand,
        reason: String,
        reply: Reply<Vec<AttemptId>>,
    },
    CommandJob {
        job: JobId,
        command: JobCommand,
        reason: String,
        reply: Reply<()>,
    },
    /// Of these attempts, or of all live ones of the job.
    Outcomes {
        job: JobId,
        attempts: Vec<AttemptId>,
        command: TaskCommand,
        reply: Reply<Vec<(AttemptId, CommandOutcome)>>,
    },
    Explain {
        job: JobId,
        task: Option<TaskId>,
        reply: Reply<Vec<String>>,
    },
    Workers {
        reply: Reply<Vec<WorkerSummary>>,
    },
    Drain {
        worker: WorkerId,
        hand_back: bool,
        reply: Reply<()>,
    },
    /// A connection of a program whose jobs are a chain. Answered when the chain is in the journal.
    HoldChain {
        chain: u128,
        root: PathBuf,
        reply: Reply<()>,
    },
    /// That connection is closed.
    ReleaseChain {
        chain: u128,
    },
    /// No job of the chain follows.
    EndChain {
        chain: u128,
        reply: Reply<()>,
    },
    /// Where the logs of an attempt can be read: the data address of the worker it ran on.
    LogHolder {
        attempt: AttemptId,
        reply: Reply<String>,
    },
}

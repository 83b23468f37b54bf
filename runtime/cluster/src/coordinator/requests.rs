//! Requests from client connections to the coordinator's loop, and their replies. Blobs are transferred
//! outside the loop.

use std::sync::Arc;

use napreduce_engine::{AttemptId, JobId, OperatorRefusal, PolicyRefusal, TaskId, WorkerId};
use napreduce_local::coordinator::{Accepted, Following};
use napreduce_protocol::{FromCoordinator, JobError, ToCoordinator};
use thiserror::Error;
use tokio::sync::oneshot;

/// The refusal of a request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Refusal {
    #[error("there is no {0}; see: nap job list")]
    NoSuchJob(JobId),
    #[error("{0} has ended")]
    JobEnded(JobId),
    #[error("{job} has no task {0}", job = .0.job)]
    NoSuchTask(TaskId),
    #[error("no attempt at {0} is live; see: nap task list {job}", job = .0.job)]
    NoLiveAttempt(TaskId),
    #[error("{0} is not live; see: nap task list {job}", job = .0.task.job)]
    NotLive(AttemptId),
    #[error("there is no {0}; see: nap worker list")]
    NoSuchWorker(WorkerId),
    /// Every attempt that a command names refuses it.
    #[error("cannot {command} {}", in_words(.attempts))]
    Attempts {
        command: &'static str,
        attempts: Vec<(AttemptId, OperatorRefusal)>,
    },
    #[error("cannot {command} {job}: {why}")]
    Job {
        command: &'static str,
        job: JobId,
        why: OperatorRefusal,
    },
    #[error("{job} cannot have {change} under the scheduler {scheduler}: {why}")]
    Change {
        job: JobId,
        change: String,
        scheduler: String,
        why: OperatorRefusal,
    },
    #[error("cannot undrain {worker}: {why}")]
    Worker {
        worker: WorkerId,
        why: OperatorRefusal,
    },
    #[error(transparent)]
    Policy(#[from] PolicyRefusal),
    /// The output directory of a submission cannot be claimed.
    #[error("{reason}")]
    Submission { status: u8, reason: String },
    /// A wrong request of another kind.
    #[error("{0}")]
    Wrong(String),
    /// A valid request that failed.
    #[error("{0}")]
    Failed(String),
}

impl Refusal {
    /// Returns the refusal of an invalid request: its object does not exist or does not allow it.
    pub(crate) fn wrong(reason: impl Into<String>) -> Refusal {
        Refusal::Wrong(reason.into())
    }

    /// Returns the refusal of a valid request that failed.
    pub(crate) fn failed(error: impl ToString) -> Refusal {
        Refusal::Failed(error.to_string())
    }

    pub(crate) fn of(error: &JobError) -> Refusal {
        Refusal::Submission {
            status: error.exit_status(),
            reason: error.to_string(),
        }
    }

    /// Returns the refusal of a rerun, which has the options of its job and can change only the output.
    pub(crate) fn of_rerun(job: JobId, error: &JobError) -> Refusal {
        let reason = match error {
            JobError::OutputExists { path } => {
                format!(
                    "output directory {path}/ exists; choose another: nap job rerun {job} --output DIR"
                )
            }
            JobError::OutputUnfinished { path } => format!(
                "output directory {path}/ contains _temporary of an unfinished run; if that run has ended, \
                 remove it, or choose another: nap job rerun {job} --output DIR"
            ),
            other => other.to_string(),
        };
        Refusal::Submission {
            status: error.exit_status(),
            reason,
        }
    }

    /// Returns the exit status: 1 for a failure, 2 for a wrong request.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Refusal::Failed(_) => 1,
            Refusal::Submission { status, .. } => *status,
            _ => 2,
        }
    }
}

fn in_words(attempts: &[(AttemptId, OperatorRefusal)]) -> String {
    let each: Vec<String> = attempts
        .iter()
        .map(|(attempt, why)| format!("{attempt}: {why}"))
        .collect();
    each.join("; ")
}

/// The channel for an answer; closed if the client has disconnected.
pub(crate) type Reply<T = FromCoordinator> = oneshot::Sender<Result<T, Refusal>>;

/// The holder of an attempt's logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogHolder {
    /// The data address of its worker, or why it is unavailable.
    pub(crate) address: Result<String, String>,
    /// The end of its standard error, if the coordinator has it.
    pub(crate) stderr: Option<Arc<str>>,
    /// Whether the attempt has ended.
    pub(crate) has_ended: bool,
}

/// A request to the loop.
#[derive(Debug)]
pub(crate) enum Request {
    /// A client's message with one answer.
    Message(ToCoordinator, Reply),
    Follow {
        job: JobId,
        reply: Reply<Following>,
    },
    /// Finds an attempt's logs.
    LogHolder {
        attempt: AttemptId,
        reply: Reply<LogHolder>,
    },
    /// Reads a job's definition, even if the job has ended.
    Definition {
        job: JobId,
        reply: Reply<Box<Accepted>>,
    },
    /// A chain's connection was closed.
    ReleaseChain {
        chain: u128,
    },
}

/// Sends an answer; does nothing if the client has disconnected.
pub(super) fn send<T>(reply: Reply<T>, answer: Result<T, Refusal>) {
    let _ = reply.send(answer);
}

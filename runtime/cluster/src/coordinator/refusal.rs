//! Why the coordinator refuses a request.

use napreduce_engine::{AttemptId, JobId, OperatorRefusal, PolicyRefusal, TaskId, WorkerId};
use napreduce_protocol::JobError;
use thiserror::Error;

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

    /// Returns the refusal of a submission.
    pub(crate) fn from_job_error(error: &JobError) -> Refusal {
        Refusal::Submission {
            status: error.exit_status(),
            reason: error.to_string(),
        }
    }

    /// Returns the refusal of a rerun, which has the options of its job and can change only the output.
    pub(crate) fn from_rerun_error(job: JobId, error: &JobError) -> Refusal {
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

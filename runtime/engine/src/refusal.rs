//! Why an operator's command to an attempt, a job or a worker cannot be carried out.

use thiserror::Error;

use crate::ids::{JobId, TaskKind};

/// Completes a sentence that begins with the name of the attempt, job or worker.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OperatorRefusal {
    #[error("no such job")]
    NoSuchJob,
    #[error("it has ended")]
    JobEnded,
    #[error("it is ending")]
    JobEnding,
    #[error("it is suspended already")]
    JobSuspended,
    #[error("it is held already")]
    JobHeld,
    /// The job is suspended, which is stricter than the requested hold.
    #[error("it is suspended, which is more")]
    JobSuspendedInsteadOfHeld,
    #[error("it is suspended, not held; resume it with: nap job resume {0}")]
    JobNotHeldButSuspended(JobId),
    #[error("it is not held")]
    NotHeld,
    /// For an attempt, or for a job without a task that an operator suspended.
    #[error("it is not suspended")]
    NotSuspended,
    /// The values as [`JobChange::in_words`](crate::JobChange::in_words) prints them.
    #[error("it has {0} already")]
    Unchanged(String),
    /// The scheduling policy does not allow the change.
    #[error("{0}")]
    Policy(String),

    #[error("it is not running")]
    NotRunning,
    #[error("it is being killed")]
    BeingKilled,
    #[error("it is saving its work already")]
    BeingCheckpointed,
    /// A checkpointing attempt cannot be resumed.
    #[error("it saves its work and exits")]
    ExitsAfterCheckpoint,
    #[error("it is just being suspended; ask again when it is")]
    BeingSuspended,
    #[error("an operator suspended it already")]
    SuspendedByOperator,
    #[error("that was asked for already; it gets the next free slot of its worker")]
    BeingResumed,
    #[error("{0} is suspended; resume that")]
    ResumeItsJob(JobId),
    #[error("to let it finish nothing has to be done")]
    NothingToDo,
    #[error("it commits its output, and ends by itself")]
    Committing,
    #[error("the {0}s of its job keep a state and do not say how to save it; suspend or kill it")]
    StateNotSaved(TaskKind),
    #[error("{0}s cannot be checkpointed here; suspend or kill it")]
    NoCheckpoints(TaskKind),
    #[error("{0}s cannot be suspended here; checkpoint or kill it")]
    NoSuspends(TaskKind),
    /// Its worker has reached its maximum of suspended attempts.
    #[error("{0}; checkpoint or kill it")]
    WorkerFull(String),

    #[error("whoever runs it ends it, so that it leaves in any case")]
    WorkerEndedFromOutside,
    #[error("it was told that it may leave; start it again with: nap worker")]
    WorkerLeft,
    #[error("it does not drain")]
    NotDraining,
    #[error("it is not there")]
    NoSuchWorker,
}

//! Refusals of operators' commands, policies' actions, and clients' jobs.

use thiserror::Error;

use crate::effect::Start;
use crate::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use crate::job::JobSpecError;
use crate::states::{AttemptState, JobState, TaskState, WorkerState};
use crate::time::Time;

/// Completes a sentence that begins with the name of the attempt, job or worker.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OperatorRefusal {
    #[error("no such job")]
    NoSuchJob,
    #[error("it has ended")]
    JobEnded,
    #[error("it is ending")]
    JobEnding,
    #[error("already suspended")]
    JobSuspended,
    #[error("already held")]
    JobHeld,
    /// The job is suspended, which is stricter than the requested hold.
    #[error("already suspended, which is stricter than a hold")]
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
    #[error(transparent)]
    Policy(#[from] PolicyRefusal),

    #[error("it is not running")]
    NotRunning,
    #[error("it is being killed")]
    BeingKilled,
    #[error("already being checkpointed")]
    BeingCheckpointed,
    /// A checkpointing attempt cannot be resumed.
    #[error("it exits after its checkpoint")]
    ExitsAfterCheckpoint,
    #[error("it is being suspended; try again when it is suspended")]
    BeingSuspended,
    #[error("an operator has already suspended it")]
    SuspendedByOperator,
    #[error("already resumed; it gets the next free slot of its worker")]
    BeingResumed,
    #[error("{0} is suspended; resume the job")]
    ResumeItsJob(JobId),
    #[error("nothing to do: the attempt finishes on its own")]
    NothingToDo,
    #[error("it is committing and about to finish")]
    Committing,
    #[error("the {0}s of its job do not save their state; suspend or kill it")]
    StateNotSaved(TaskKind),
    #[error("{0}s cannot be checkpointed here; suspend or kill it")]
    NoCheckpoints(TaskKind),
    #[error("{0}s cannot be suspended here; checkpoint or kill it")]
    NoSuspends(TaskKind),
    /// Its worker has reached its maximum of suspended attempts.
    #[error("{0}; checkpoint or kill it")]
    WorkerFull(String),

    #[error("it is already shutting down")]
    WorkerEndedFromOutside,
    #[error("it may already have left; start it again with: nap worker")]
    WorkerLeft,
    #[error("it is not draining")]
    NotDraining,
    #[error("no such worker")]
    NoSuchWorker,
}

/// A policy's refusal of a job, or of a change of one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyRefusal {
    #[error("the scheduler sets the place of a job at submission")]
    SetAtSubmission,
    #[error("{0} has no queues")]
    NoQueues(&'static str),
    #[error("{scheduler} ignores priorities ({setting})")]
    PrioritiesIgnored {
        scheduler: &'static str,
        setting: &'static str,
    },
    #[error("hfsp orders jobs by size and sets the queue weight of a job at submission")]
    OrderedBySize,
    #[error("pools are assigned by user, not by queue ([scheduler.fair] placement)")]
    PoolsByUser,
    /// Names the queue, and what to do.
    #[error("{0}")]
    Queue(String),
    /// Names the deadline that would be missed, and what to do.
    #[error("{0}; extend or remove its --deadline")]
    Deadline(String),
}

/// The reason why a submitted job fails without running.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum SubmissionRefusal {
    #[error(transparent)]
    Invalid(#[from] JobSpecError),
    #[error(transparent)]
    Policy(#[from] PolicyRefusal),
}

/// The reason why an action of a policy is not possible.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ActionRefusal {
    #[error("no slot was offered")]
    NoOffer,
    #[error("there is no {0}")]
    NoSuchJob(JobId),
    #[error("there is no {0}")]
    NoSuchTask(TaskId),
    #[error("there is no {0}")]
    NoSuchWorker(WorkerId),
    #[error("{0} is not live")]
    NotLive(AttemptId),
    #[error("{task} is suspended by an operator: {reason}")]
    TaskHeld { task: TaskId, reason: String },
    #[error("{0} is suspended by an operator")]
    AttemptHeld(AttemptId),
    #[error("{task} is {state:?} and its job {job:?}")]
    NotLaunchable {
        task: TaskId,
        state: TaskState,
        job: JobState,
    },
    #[error("{task} cannot start from {from:?}, only from {possible:?}")]
    Start {
        task: TaskId,
        from: Start,
        possible: Start,
    },
    #[error("{task} avoids {worker} after failures there")]
    FailedThere { task: TaskId, worker: WorkerId },
    #[error("{attempt} is {state:?} and its job {job:?}")]
    NotSuspended {
        attempt: AttemptId,
        state: AttemptState,
        job: JobState,
    },
    #[error("{worker} is {state:?}, excluded: {excluded}")]
    TakesNoAttempts {
        worker: WorkerId,
        state: WorkerState,
        excluded: bool,
    },
    #[error("{worker} has no {kind} slot for {job}: {free} free and {reserved} of them reserved")]
    NoSlot {
        worker: WorkerId,
        kind: TaskKind,
        job: JobId,
        free: u32,
        reserved: u32,
    },
    #[error(
        "{worker} has no free {kind} slot to keep for {job} until {until}, or {job} does not need it"
    )]
    NothingToReserve {
        worker: WorkerId,
        kind: TaskKind,
        job: JobId,
        until: Time,
    },
    #[error("{0} is already being killed")]
    BeingKilled(AttemptId),
    #[error("{0} is suspended and has no slot; it can only be checkpointed or killed")]
    HoldsNoSlot(AttemptId),
    #[error("cannot preempt {0} for its own job")]
    OwnJob(AttemptId),
    #[error("{job}, which would get the slot of {attempt}, is not active")]
    BeneficiaryEnded { attempt: AttemptId, job: JobId },
    #[error("there is no request to preempt {0}")]
    NoRequest(AttemptId),
}

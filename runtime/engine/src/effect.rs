//! The outputs of the engine: orders to workers, wake-ups, journal records, and ends of jobs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptId, JobId, TaskId, WorkerId};
use crate::job::{JobChange, JobOutcome};
use crate::preemption::{Primitive, Requester};
use crate::time::Time;

/// An action for the driver of the engine. Effects must be carried out in the order given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// A state change; precedes the orders that depend on it.
    Record(Record),
    /// Send an order to a worker.
    Send { worker: WorkerId, order: Order },
    /// A draining worker has nothing left that is needed: it may leave and counts as lost from now on. The
    /// driver need not report its loss.
    WorkerMayLeave { worker: WorkerId },
    /// The policy requests that the driver submit the job with this name.
    SubmitWanted { name: String },
    /// Hand in `Event::Woken` at this time; a later effect with an earlier time replaces it.
    WakeAt(Time),
    /// A job is over; all its attempts have ended.
    JobEnded { job: JobId, outcome: JobOutcome },
    /// An invalid input was ignored (an implausible report, an illegal policy action): log it.
    Warn {
        /// The warning, with the object concerned; for people.
        message: String,
    },
}

/// A map output that a reduce must read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MapOutput {
    /// The map attempt that wrote it.
    pub attempt: AttemptId,
    /// The worker that holds it, or [`WorkerId::STORAGE`].
    pub worker: WorkerId,
}

/// An order to a worker about one attempt. Every order but `MoreInputs` is answered by a `Report`. Orders to
/// one worker must arrive in the order given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Start the attempt.
    Launch {
        attempt: AttemptId,
        from: Start,
        /// For a reduce: the map outputs to read, in task order. There is one for each map task, unless
        /// slow-start (below 1000) starts the reduce earlier: the missing ones then follow as `MoreInputs`.
        inputs: Vec<MapOutput>,
    },
    /// More map outputs for a reduce that was launched before all were ready, or that reported some as lost.
    /// A second output of the same map task replaces the first, which was lost. The same output may be sent
    /// twice.
    MoreInputs {
        attempt: AttemptId,
        /// The additional map outputs to read.
        inputs: Vec<MapOutput>,
    },
    /// End the attempt and remove its temporary files.
    Kill { attempt: AttemptId },
    /// Promote the attempt's part file; only one attempt of a task ever receives this order.
    Commit { attempt: AttemptId },
    /// Stop the process and verify it.
    Suspend { attempt: AttemptId },
    /// Continue a stopped process.
    Resume { attempt: AttemptId },
    /// Save the work at the next boundary and exit.
    Checkpoint { attempt: AttemptId },
    /// Copy the output of a finished map attempt to storage that outlives this worker, which is about to end.
    MoveOutput { attempt: AttemptId },
}

impl Order {
    /// Returns the attempt that the order concerns.
    pub fn attempt(&self) -> AttemptId {
        match self {
            Order::Launch { attempt, .. }
            | Order::MoreInputs { attempt, .. }
            | Order::Kill { attempt }
            | Order::Commit { attempt }
            | Order::Suspend { attempt }
            | Order::Resume { attempt }
            | Order::Checkpoint { attempt }
            | Order::MoveOutput { attempt } => *attempt,
        }
    }

    /// Returns a verb for logs.
    pub fn verb(&self) -> &'static str {
        match self {
            Order::Launch {
                from: Start::Fresh, ..
            } => "launch",
            Order::Launch {
                from: Start::Checkpoint(_),
                ..
            } => "restore",
            Order::MoreInputs { .. } => "tell",
            Order::Kill { .. } => "kill",
            Order::Commit { .. } => "commit",
            Order::Suspend { .. } => "suspend",
            Order::Resume { .. } => "resume",
            Order::Checkpoint { .. } => "checkpoint",
            Order::MoveOutput { .. } => "move",
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb(), self.attempt())?;
        match self {
            Order::Launch {
                from: Start::Checkpoint(of),
                ..
            } => write!(f, " from {of}"),
            Order::MoreInputs { inputs, .. } => write!(f, " of {} more inputs", inputs.len()),
            _ => Ok(()),
        }
    }
}

/// The point at which the work of a new attempt starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Start {
    /// At the beginning.
    Fresh,
    /// At the end of the checkpoint that this earlier attempt wrote.
    Checkpoint(AttemptId),
}

/// A state change, for history and logs. Recovery does not need records: it replays the journaled events, and
/// the engine emits the same records again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// A job was accepted.
    JobAccepted(JobId),
    /// An attempt was ordered to start on a worker.
    AttemptLaunched {
        attempt: AttemptId,
        worker: WorkerId,
        /// The slow attempt at the same task, if this one is its duplicate.
        duplicate_of: Option<AttemptId>,
    },
    /// A worker gets no new attempts and will leave.
    WorkerDraining(WorkerId),
    /// A draining worker stays and gets new attempts again.
    WorkerUndrained(WorkerId),
    /// A worker with many failures gets no new attempts until a given time.
    WorkerExcluded { worker: WorkerId, until: Time },
    /// A worker lacks a resource that every attempt needs and gets no new attempts; or the shortage is over.
    WorkerShort {
        worker: WorkerId,
        /// The missing resource, for people; `None`: the shortage is over.
        lacks: Option<String>,
    },
    /// A task ran when several workers died: from now on it runs alone on a worker.
    TaskIsolated {
        task: TaskId,
        /// For people.
        reason: String,
    },
    /// A draining worker may leave.
    WorkerLeft(WorkerId),
    /// An attempt was granted the commit.
    CommitGranted(AttemptId),
    /// A task was completed by this attempt.
    TaskDone(AttemptId),
    /// The output of a finished map task is lost; the task must run again.
    OutputLost(TaskId),
    /// The output of this attempt is now on storage that outlives its worker.
    OutputMoved(AttemptId),
    /// An attempt ended without finishing its task; with the reason.
    AttemptEnded(AttemptId, String),
    /// An attempt saved its work and exited; its task will continue from there.
    Checkpointed(AttemptId),
    /// The slot of an attempt was requested.
    PreemptRequested {
        attempt: AttemptId,
        /// The primitive after the settings were applied.
        primitive: Primitive,
        /// The requested primitive.
        asked: Primitive,
        by: Requester,
        /// The job the slot is freed for.
        beneficiary: Option<JobId>,
        /// For people.
        reason: String,
    },
    /// A request to preempt an attempt was withdrawn before its order was sent; the attempt keeps its slot.
    PreemptWithdrawn {
        attempt: AttemptId,
        /// Why its slot is not needed any more, for people.
        reason: String,
    },
    /// An attempt cannot be suspended on its worker and continues.
    SuspendRefused {
        attempt: AttemptId,
        /// The fallback; `None` if the request was withdrawn or came from an operator.
        instead: Option<Primitive>,
        /// The reason that the worker reported, for people.
        reason: String,
    },
    /// A suspended attempt is given up so that its task can continue on another worker: checkpointed or
    /// killed.
    Converted {
        attempt: AttemptId,
        /// Checkpoint or kill.
        primitive: Primitive,
        by: Requester,
        /// For people.
        reason: String,
    },
    /// An operator suspended an attempt until it is released.
    AttemptHeld {
        attempt: AttemptId,
        /// The requester and the reason, for people.
        reason: String,
    },
    /// An operator released an attempt.
    AttemptReleased {
        attempt: AttemptId,
        /// The requester and the reason, for people.
        reason: String,
    },
    /// An operator paused a job.
    JobHeld {
        job: JobId,
        /// Whether its running attempts may finish rather than being suspended.
        lets_finish: bool,
        /// The requester and the reason, for people.
        reason: String,
    },
    /// An operator released a job.
    JobReleased {
        job: JobId,
        /// The requester and the reason, for people.
        reason: String,
    },
    /// The priority or queue of a job was changed.
    JobChanged {
        job: JobId,
        change: JobChange,
        /// The requester and the reason, for people.
        reason: String,
    },
    /// An attempt is stopped and gave up its slot.
    Suspended(AttemptId),
    /// A stopped attempt runs again.
    Resumed(AttemptId),
    /// A slot that an attempt gave up for a job was taken by an attempt of that job.
    SlotTaken {
        /// The attempt that gave up the slot.
        freed: AttemptId,
        /// The attempt that took the slot.
        by: AttemptId,
    },
    /// A slot that an attempt gave up, or was already ordered to give up, for a job is not taken by that job.
    SlotUnused {
        /// The attempt that gives up the slot.
        freed: AttemptId,
        /// The job for which it was freed.
        job: JobId,
        /// Why the job did not take it, for people.
        reason: String,
    },
    /// The outcome of a job was decided; its live attempts are killed first.
    JobDecided(JobId, JobOutcome),
    /// A job ended; it has no attempts left.
    JobEnded(JobId, JobOutcome),
}

impl Record {
    /// Returns the job that the record concerns; `None` for a record about a worker.
    pub fn job(&self) -> Option<JobId> {
        Some(match self {
            Record::WorkerDraining(_)
            | Record::WorkerUndrained(_)
            | Record::WorkerLeft(_)
            | Record::WorkerExcluded { .. }
            | Record::WorkerShort { .. } => return None,
            Record::JobAccepted(job)
            | Record::JobDecided(job, _)
            | Record::JobEnded(job, _)
            | Record::JobHeld { job, .. }
            | Record::JobChanged { job, .. }
            | Record::JobReleased { job, .. } => *job,
            Record::AttemptLaunched { attempt, .. }
            | Record::CommitGranted(attempt)
            | Record::TaskDone(attempt)
            | Record::OutputMoved(attempt)
            | Record::AttemptEnded(attempt, _)
            | Record::PreemptRequested { attempt, .. }
            | Record::PreemptWithdrawn { attempt, .. }
            | Record::SuspendRefused { attempt, .. }
            | Record::Converted { attempt, .. }
            | Record::AttemptHeld { attempt, .. }
            | Record::AttemptReleased { attempt, .. }
            | Record::Suspended(attempt)
            | Record::Resumed(attempt)
            | Record::SlotTaken { freed: attempt, .. }
            | Record::SlotUnused { freed: attempt, .. }
            | Record::Checkpointed(attempt) => attempt.task.job,
            Record::OutputLost(task) | Record::TaskIsolated { task, .. } => task.job,
        })
    }
}

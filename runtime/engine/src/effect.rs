//! What comes out of the engine: orders to workers, wake-ups, records for the journal, ends of jobs.
//!
//! Owns the vocabulary only. Does not own how an order travels nor how a record is stored.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptId, JobId, TaskId, WorkerId};
use crate::job::{JobChange, JobOutcome};
use crate::preemption::{Primitive, Requester};
use crate::time::Time;

/// Something the driver of the engine must do, in the order given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// Something became true; comes before the orders that depend on it.
    Record(Record),
    /// Tell a worker.
    Send {
        worker: WorkerId,
        /// What it is to do.
        order: Order,
    },
    /// A draining worker has nothing left that is needed: it may leave, and counts as gone from now on. No
    /// event about it is needed any more.
    WorkerMayLeave { worker: WorkerId },
    /// The policy wants a job that the driver knows by this name submitted now.
    SubmitWanted { name: String },
    /// Hand in `Event::Woken` at this time; a later effect with an earlier time wins.
    WakeAt(Time),
    /// A job is over; all its attempts have ended.
    JobEnded {
        job: JobId,
        /// How.
        outcome: JobOutcome,
    },
    /// Something was wrong and was ignored (a report that makes no sense, an illegal action of a
    /// policy): log it.
    Warn {
        /// What, naming the thing; for people.
        message: String,
    },
}

/// The output of a map that a reduce is to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MapOutput {
    /// The map attempt that wrote it.
    pub attempt: AttemptId,
    /// The worker that holds it, or [`WorkerId::STORAGE`].
    pub worker: WorkerId,
}

/// What a worker is told to do with an attempt. Every order but `MoreInputs` is answered by a `Report`.
/// Orders to one worker must arrive in the order given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Start the attempt.
    Launch {
        /// The new attempt.
        attempt: AttemptId,
        /// Where its work starts.
        from: Start,
        /// For a reduce: the map outputs to read, in task order. One for each map task, unless
        /// slow-start (below 1000) lets it begin earlier: the missing ones then follow as `MoreInputs`.
        inputs: Vec<MapOutput>,
    },
    /// More map outputs are ready for a reduce that was launched before all of them were, or that reported
    /// some of them lost; only ever sent to such an attempt. An output of a map task that was named before
    /// replaces it: the earlier one was lost. The same output may be named again.
    MoreInputs {
        /// The reduce attempt.
        attempt: AttemptId,
        /// The map outputs to read, too.
        inputs: Vec<MapOutput>,
    },
    /// End the attempt and remove its temporary files.
    Kill { attempt: AttemptId },
    /// Promote the attempt's part file; only one attempt of a task is ever told so.
    Commit { attempt: AttemptId },
    /// Stop the process and verify it.
    Suspend { attempt: AttemptId },
    /// Continue a stopped process.
    Resume { attempt: AttemptId },
    /// Save the work at the next boundary and exit.
    Checkpoint { attempt: AttemptId },
    /// Put the output of a map attempt that is done where it outlives this worker, which is about to be gone.
    MoveOutput { attempt: AttemptId },
}

impl Order {
    /// The attempt that it is about.
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

    /// What is to be done, in a word for logs.
    pub fn verb(&self) -> &'static str {
        match self {
            Order::Launch { from: Start::Fresh, .. } => "launch",
            Order::Launch { from: Start::Checkpoint(_), .. } => "restore",
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
            Order::Launch { from: Start::Checkpoint(of), .. } => write!(f, " from {of}"),
            Order::MoreInputs { inputs, .. } => write!(f, " of {} more inputs", inputs.len()),
            _ => Ok(()),
        }
    }
}

/// Where the work of a new attempt starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Start {
    /// At the beginning.
    Fresh,
    /// Where the checkpoint that this earlier attempt wrote ends.
    Checkpoint(AttemptId),
}

/// What became true, for history and logs: one record is one change. Recovery does not need them; it hands
/// the journaled events to the engine again, which says the same again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// A job was accepted.
    JobAccepted(JobId),
    /// An attempt was ordered to start on a worker.
    AttemptLaunched {
        attempt: AttemptId,
        /// Where.
        worker: WorkerId,
        /// The slow attempt at the same task that goes on beside it, if this one is a duplicate.
        duplicate_of: Option<AttemptId>,
    },
    /// A worker gets no new attempts and will leave.
    WorkerDraining(WorkerId),
    /// A worker that drained stays, and gets new attempts again.
    WorkerUndrained(WorkerId),
    /// A worker on which much failed gets no new attempts until a time.
    WorkerExcluded {
        worker: WorkerId,
        /// When it gets work again.
        until: Time,
    },
    /// A worker lacks something that every attempt needs and gets no new ones until it has it again;
    /// or it has.
    WorkerShort {
        worker: WorkerId,
        /// What it lacks, for people; nothing any more, without.
        lacks: Option<String>,
        /// When it is tried again, if that is not for the worker to say.
        until: Option<Time>,
    },
    /// A task was there when several workers died: from now on it runs alone on a worker.
    TaskIsolated {
        task: TaskId,
        /// Why, for people.
        reason: String,
    },
    /// A draining worker may leave.
    WorkerLeft(WorkerId),
    /// An attempt was given the right to commit.
    CommitGranted(AttemptId),
    /// A task is done, by this attempt.
    TaskDone(AttemptId),
    /// A finished map task must run again: its output is lost.
    OutputLost(TaskId),
    /// The output of this attempt is where it outlives its worker.
    OutputMoved(AttemptId),
    /// An attempt ended without finishing its task, and why.
    AttemptEnded(AttemptId, String),
    /// An attempt saved its work and exited; its task goes on from there.
    Checkpointed(AttemptId),
    /// The slot of an attempt is wanted back.
    PreemptRequested {
        /// The victim.
        attempt: AttemptId,
        /// How, after what the settings made of the wish.
        primitive: Primitive,
        /// How it was asked for.
        asked: Primitive,
        /// By whom.
        by: Requester,
        /// The job the slot is freed for.
        beneficiary: Option<JobId>,
        /// Why, for people.
        reason: String,
    },
    /// An attempt cannot be suspended where it runs, and goes on.
    SuspendRefused {
        attempt: AttemptId,
        /// What becomes of the request instead; nothing, when it was withdrawn or an operator's.
        instead: Option<Primitive>,
        /// What its worker says, for people.
        reason: String,
    },
    /// A suspended attempt is given up so that its task can go on elsewhere: woken, saved and ended,
    /// or killed.
    Converted {
        attempt: AttemptId,
        /// Checkpoint or kill.
        primitive: Primitive,
        /// By whom.
        by: Requester,
        /// Why, for people.
        reason: String,
    },
    /// An operator wants an attempt suspended until he says otherwise.
    AttemptHeld {
        attempt: AttemptId,
        /// Who asked and why, for people.
        reason: String,
    },
    /// An operator wants an attempt to go on.
    AttemptReleased {
        attempt: AttemptId,
        /// Who asked and why, for people.
        reason: String,
    },
    /// An operator wants a job to pause.
    JobHeld {
        job: JobId,
        /// Whether what runs of it is let finish, rather than suspended.
        lets_finish: bool,
        /// Who asked and why, for people.
        reason: String,
    },
    /// An operator wants a job to go on.
    JobReleased {
        job: JobId,
        /// Who asked and why, for people.
        reason: String,
    },
    /// A job has another priority or queue.
    JobChanged {
        job: JobId,
        change: JobChange,
        /// Who asked and why, for people.
        reason: String,
    },
    /// An attempt is stopped and gave up its slot.
    Suspended(AttemptId),
    /// A stopped attempt runs again.
    Resumed(AttemptId),
    /// The slot that an attempt gave up for a job was taken by an attempt of that job.
    SlotTaken {
        /// Whose it was.
        freed: AttemptId,
        /// Whose it is.
        by: AttemptId,
    },
    /// How a job will end is decided; its live attempts are killed first.
    JobDecided(JobId, JobOutcome),
    /// A job is over; none of its attempts is left.
    JobEnded(JobId, JobOutcome),
}

impl Record {
    /// The job that it is about; of a worker, none.
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
            | Record::SuspendRefused { attempt, .. }
            | Record::Converted { attempt, .. }
            | Record::AttemptHeld { attempt, .. }
            | Record::AttemptReleased { attempt, .. }
            | Record::Suspended(attempt)
            | Record::Resumed(attempt)
            | Record::SlotTaken { freed: attempt, .. }
            | Record::Checkpointed(attempt) => attempt.task.job,
            Record::OutputLost(task) | Record::TaskIsolated { task, .. } => task.job,
        })
    }
}

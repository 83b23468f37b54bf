//! The vocabulary of preemption: primitives, and requests with their own life cycle. Schedulers and operators
//! create requests; the engine carries them out.
//!
//! ```text
//!             order sent              slot freed                         slot freed
//!   Created -------------> Ordered --------------> satisfied     Forced ------------> forced
//!      |                      |                                    ^
//!      |                      +---------- grace expired -----------+
//!      +---------------------------------- grace expired ----------+
//!   Created | Ordered | Forced --- withdrawn or worker lost ---> cancelled
//! ```
//!
//! A request is open until one of the three outcomes in lower case; then it is counted and forgotten.

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptId, JobId};
use crate::time::{Span, Time};

listed! {
    /// A way to take a slot from an attempt.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Primitive {
        /// Let it finish; with a grace, kill it afterwards if the settings require it (`escalate`).
        Wait = "wait",
        /// Kill it and lose its work; with a grace, only after that.
        Kill = "kill",
        /// Stop the process where it is.
        Suspend = "suspend",
        /// Save the work and exit.
        Checkpoint = "checkpoint",
    }
}

/// Which attempts of a job are preempted first when the job must release slots.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum TaskEviction {
    /// The shortest remaining time first: resumed together later, these delay their job the least (Natjam,
    /// Theorem 2.1).
    #[default]
    ShortestRemaining,
    /// The longest remaining time first.
    LongestRemaining,
    /// In random order.
    Random,
    /// The latest launch first.
    Youngest,
    /// The smallest completed share of work first.
    LeastProgress,
}

/// The origin of a request for a slot.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Requester {
    /// The scheduling policy.
    #[default]
    Policy,
    /// A person, for one attempt or for its whole job.
    Operator,
    /// The engine itself, by its settings.
    Engine,
}

/// The expected cost of one way to take a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostEstimate {
    pub primitive: Primitive,
    /// The beneficiary's wait for the slot and its memory.
    pub free: Span,
    /// The additional slot time of the victim: work that is redone, or saved and read back.
    pub victim: Span,
}

impl CostEstimate {
    /// Returns the total delay of both jobs.
    pub fn cost(&self) -> Span {
        self.free + self.victim
    }
}

/// The state of an open request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestState {
    /// Not ordered yet: the attempt is starting, resuming or committing, was preempted recently, or may use
    /// its grace.
    Created,
    /// The order was sent to the worker.
    Ordered,
    /// Its grace expired and the attempt is being killed.
    Forced,
}

/// A job for which a slot is being freed in vain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lapsed {
    pub job: JobId,
    /// Why it will not use the slot, for people.
    pub reason: String,
}

/// A request to take the slot of one attempt. There is at most one open request for an attempt, so the
/// attempt identifies it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreemptRequest {
    pub attempt: AttemptId,
    /// The primitive after the settings were applied.
    pub primitive: Primitive,
    /// The requested primitive.
    pub asked: Primitive,
    #[serde(default)]
    pub by: Requester,
    /// Earliest order time; set if the task was preempted recently.
    #[serde(default)]
    pub earliest: Option<Time>,
    /// Time for the victim before it is killed; `None`: no limit.
    pub grace: Option<Span>,
    /// The grace of the original request, which may have been for another primitive.
    #[serde(default)]
    pub asked_grace: Option<Span>,
    /// Time that the victim was allowed to run before this decision.
    #[serde(default)]
    pub waited: Span,
    /// The reason for choosing this victim; for people.
    pub reason: String,
    /// The reason before the victim took longer than expected; `reason` adds how long that was.
    #[serde(default)]
    pub reason_before_overrun: Option<String>,
    /// The job that the slot is freed for, if any.
    pub beneficiary: Option<JobId>,
    /// The job that the slot was to be freed for, if it no longer needs it.
    #[serde(default)]
    pub lapsed: Option<Lapsed>,
    pub created: Time,
    pub state: RequestState,
    /// The expected cost, if the costs decided about the primitive.
    #[serde(default)]
    pub estimate: Option<CostEstimate>,
}

impl PreemptRequest {
    /// Creates a request without a grace, an estimate or a beneficiary.
    pub(crate) fn new(
        attempt: AttemptId,
        primitive: Primitive,
        by: Requester,
        reason: String,
        created: Time,
    ) -> PreemptRequest {
        PreemptRequest {
            attempt,
            primitive,
            asked: primitive,
            by,
            earliest: None,
            grace: None,
            asked_grace: None,
            waited: Span(0),
            reason,
            reason_before_overrun: None,
            beneficiary: None,
            lapsed: None,
            created,
            state: RequestState::Created,
            estimate: None,
        }
    }

    /// Returns when the grace starts.
    pub fn begins(&self) -> Time {
        self.earliest
            .map_or(self.created, |earliest| earliest.max(self.created))
    }

    /// Returns when to decide again about a victim that may finish because that was expected to cost least: a
    /// quarter of the expected time plus half a second after its expected end.
    pub fn overdue(&self) -> Option<Time> {
        let wait = self
            .estimate
            .filter(|one| one.primitive == Primitive::Wait)?;
        Some(self.begins() + wait.free + Span(wait.free.0 / 4) + Span::from_millis(500))
    }
}

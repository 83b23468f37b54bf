//! The vocabulary of preemption: primitives, and requests with a life of their own.
//!
//! Owns what a request is. Does not own who asks (a scheduler) nor how it is carried out (the engine):
//!
//! ```text
//!             order sent              slot freed                         slot freed
//!   Created -------------> Ordered --------------> satisfied     Forced ------------> forced
//!      |                      |                                    ^
//!      |                      +---------- grace is over -----------+
//!      +---------------------------------- grace is over ----------+
//!   Created | Ordered | Forced --- withdrawn, or the worker is gone ---> cancelled
//! ```
//!
//! A request is open until one of the three outcomes in lower case; then it is counted and forgotten.

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptId, JobId};
use crate::time::{Span, Time};

listed! {
    /// How a slot is taken from an attempt.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Primitive {
        /// Let it finish; with a grace, kill it afterwards if the settings say so (`escalate`).
        Wait = "wait",
        /// End it and lose its work; with a grace, only when that is over.
        Kill = "kill",
        /// Stop the process where it is.
        Suspend = "suspend",
        /// Save the work and exit.
        Checkpoint = "checkpoint",
    }
}

/// Which attempts of a job go first when the job is asked to release slots and may choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskEviction {
    /// Those that will be done soonest: resumed together at one later moment, they hold their job up the
    /// least (Natjam, Theorem 2.1).
    #[default]
    ShortestRemaining,
    /// Those that will be done last.
    LongestRemaining,
    /// Any, each as likely as the other.
    Random,
    /// Those launched last.
    Youngest,
    /// Those that have done the smallest share of their work.
    LeastProgress,
}

/// Who wants a slot back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
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

/// What one way to take a slot is expected to cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostEstimate {
    /// The way.
    pub primitive: Primitive,
    /// How long the beneficiary waits for the slot, and for memory in it.
    pub free: Span,
    /// How much more slot time the victim takes because of it: work to be done again, or saved and read back.
    pub victim: Span,
}

impl CostEstimate {
    /// Both together: what the two jobs are later for it.
    pub fn cost(&self) -> Span {
        self.free + self.victim
    }
}

/// How far an open request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestState {
    /// Not ordered yet: the attempt is starting, resuming or committing, was preempted only just before, or
    /// may use its grace.
    Created,
    /// The worker was told.
    Ordered,
    /// Its grace is over and the attempt is being killed.
    Forced,
}

/// A request to take the slot of one attempt. There is at most one open request for an attempt, so the
/// attempt names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreemptRequest {
    /// The victim.
    pub attempt: AttemptId,
    /// How, after what the settings made of what was asked for.
    pub primitive: Primitive,
    /// How it was wanted.
    pub asked: Primitive,
    /// By whom.
    #[serde(default)]
    pub by: Requester,
    /// Not before this time: its task was preempted only just before.
    #[serde(default)]
    pub earliest: Option<Time>,
    /// How long the victim may take before it is killed, if ever.
    pub grace: Option<Span>,
    /// The same for what was asked for, which may be another primitive.
    #[serde(default)]
    pub asked_grace: Option<Span>,
    /// How long its victim was let finish before this was decided.
    #[serde(default)]
    pub waited: Span,
    /// Why this one; for people.
    pub reason: String,
    /// The job that the slot is freed for; nobody in particular without one.
    pub beneficiary: Option<JobId>,
    /// Since when.
    pub created: Time,
    /// How far it is.
    pub state: RequestState,
    /// What it was expected to cost, where the costs decided how.
    #[serde(default)]
    pub estimate: Option<CostEstimate>,
}

impl PreemptRequest {
    /// From when on its grace counts.
    pub fn begins(&self) -> Time {
        self.earliest.map_or(self.created, |earliest| earliest.max(self.created))
    }

    /// When a victim that is let finish, since that was expected to cost least, is decided about again: a
    /// quarter of the expected time and half a second after it should have ended.
    pub fn overdue(&self) -> Option<Time> {
        let wait = self.estimate.filter(|one| one.primitive == Primitive::Wait)?;
        Some(self.begins() + wait.free + Span(wait.free.0 / 4) + Span::from_millis(500))
    }
}

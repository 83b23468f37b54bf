//! The queues of a policy as plain data, for display. Each policy defines their meaning.

use crate::by_kind::ByKind;
use crate::ids::JobId;
use crate::ratio::Ratio;

/// A queue, or a pool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueShare {
    pub name: String,
    /// The name of the parent queue.
    pub parent: Option<String>,
    /// Its weight relative to its siblings, if slots are divided by weight.
    pub weight: Option<Ratio>,
    pub limits: ByKind<QueueLimits>,
    /// Further details, for people.
    pub remark: Option<String>,
    /// The jobs in it, without those of its children.
    pub jobs: Vec<JobId>,
}

/// The slots of one kind that a queue may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueLimits {
    /// Guaranteed slots, which may be a fraction.
    pub guaranteed: Option<Ratio>,
    /// Maximum slots.
    pub maximum: Option<u64>,
}

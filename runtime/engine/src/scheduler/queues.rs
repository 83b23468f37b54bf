//! Queues as a policy tells them apart, for people who ask.
//!
//! Owns the plain data. Does not own what a queue means: that is each policy's.

use crate::by_kind::ByKind;
use crate::ids::JobId;
use crate::ratio::Ratio;

/// A queue, or a pool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueShare {
    /// As jobs and listings name it.
    pub name: String,
    /// The name of the queue that it is part of.
    pub parent: Option<String>,
    /// Its part in relation to those beside it, if that is how slots are divided.
    pub weight: Option<Ratio>,
    /// What it has in any case, and at most.
    pub limits: ByKind<QueueLimits>,
    /// What else there is to say of it, for people.
    pub remark: Option<String>,
    /// The jobs in it, not those of its parts.
    pub jobs: Vec<JobId>,
}

/// What a queue has of slots of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueLimits {
    /// Slots that it is guaranteed; fractions count.
    pub guaranteed: Option<Ratio>,
    /// Slots that it has at most.
    pub maximum: Option<u64>,
}

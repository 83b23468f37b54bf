//! What a coordinator says of the queues of its scheduler.
//!
//! Owns plain data. Does not own which queues there are (the policy) nor what is counted in them
//! (the coordinator).

use serde::{Deserialize, Serialize};

/// The queues of a scheduler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueListing {
    /// The name of the scheduler in force.
    pub scheduler: String,
    /// Each after the one that it is part of; nothing, when the scheduler has no such thing.
    pub queues: Option<Vec<QueueSummary>>,
    /// Of all jobs, whatever queue they are in.
    pub wanted: SlotsWanted,
}

/// What jobs could use beside the slots that they hold: whether more workers would be of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SlotsWanted {
    pub map: u64,
    pub reduce: u64,
}

/// A queue, with what its parts hold and want.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSummary {
    /// As jobs name it.
    pub name: String,
    /// The queue that it is part of.
    pub parent: Option<String>,
    /// Its part in relation to those beside it, in thousandths.
    pub weight_permille: Option<u64>,
    pub map: QueueSlots,
    pub reduce: QueueSlots,
    /// Jobs that hold a slot.
    pub running: u32,
    /// Jobs that hold none.
    pub waiting: u32,
    /// What else there is to say of it, for people.
    pub remark: Option<String>,
}

/// The slots of a queue, of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QueueSlots {
    /// What it has in any case, in thousandths of a slot.
    pub guaranteed_permille: Option<u64>,
    /// What it has at most.
    pub maximum: Option<u64>,
    pub used: u64,
    /// What its jobs could use beside that.
    pub wanted: u64,
}

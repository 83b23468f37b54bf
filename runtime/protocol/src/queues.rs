//! The queues of a scheduler, as reported by the coordinator.

use serde::{Deserialize, Serialize};

/// The queues of a scheduler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueListing {
    /// The name of the current scheduler.
    pub scheduler: String,
    /// Each after its parent; `None` if the scheduler has no queues.
    pub queues: Option<Vec<QueueSummary>>,
    /// Over all jobs of all queues.
    pub wanted: SlotsWanted,
}

/// Slots that jobs could use in addition to those they hold: whether more workers would help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SlotsWanted {
    pub map: u64,
    pub reduce: u64,
}

/// A queue, including its sub-queues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSummary {
    /// Its name.
    pub name: String,
    /// Its parent queue.
    pub parent: Option<String>,
    /// Its weight relative to its siblings, in thousandths.
    pub weight_permille: Option<u64>,
    pub map: QueueSlots,
    pub reduce: QueueSlots,
    /// Jobs with slots.
    pub running: u32,
    /// Jobs without slots.
    pub waiting: u32,
    /// Further remarks, for people.
    pub remark: Option<String>,
}

/// The slots of a queue, of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QueueSlots {
    /// Its guaranteed share, in thousandths of a slot.
    pub guaranteed_permille: Option<u64>,
    /// Its limit.
    pub maximum: Option<u64>,
    pub used: u64,
    /// Slots that its jobs could use in addition.
    pub wanted: u64,
}

//! What taking slots cost so far.
//!
//! Owns the measured times. Does not own what follows from them (`primitive_choice`).

use serde::{Deserialize, Serialize};

use crate::cluster::by_bytes::ByBytes;
use crate::preemption::Primitive;
use crate::time::Span;

/// What taking a slot and giving it back took for tasks of one kind, smoothed: a quarter of the last time and
/// three of what was known before. Unknown until it happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredCosts {
    /// From the order to suspend to the slot that is free.
    pub suspend: Option<Span>,
    /// From the order to resume to work that goes on.
    pub resume: Option<Span>,
    /// From the order to checkpoint to the slot that is free.
    pub checkpoint: Option<Span>,
    /// From the order to launch from a checkpoint to work that goes on.
    pub restore: Option<Span>,
    /// From the order to kill to the slot that is free.
    #[serde(default)]
    pub kill: Option<Span>,
    /// Of a checkpoint and of a restore, by the memory that the tasks need.
    #[serde(default)]
    pub checkpoint_by_bytes: ByBytes,
    #[serde(default)]
    pub restore_by_bytes: ByBytes,
    /// What was chosen by its costs before.
    #[serde(default)]
    pub tried: Tried,
    /// From the order to launch from the beginning to the first work.
    #[serde(default)]
    pub launch: Option<Span>,
}

/// Ways to keep work that were chosen by their costs for tasks of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    pub suspend: bool,
    pub checkpoint: bool,
}

impl MeasuredCosts {
    /// What a primitive takes to free a slot, and then to go on with the work; as far as it is known.
    pub(crate) fn of(&self, primitive: Primitive) -> (Option<Span>, Option<Span>) {
        match primitive {
            Primitive::Suspend => (self.suspend, self.resume),
            Primitive::Checkpoint => (self.checkpoint, self.restore),
            Primitive::Wait | Primitive::Kill => (None, None),
        }
    }
}

/// Takes in how long something took once more.
pub(crate) fn smooth(known: &mut Option<Span>, took: Span) {
    let old = known.unwrap_or(took);
    *known = Some(Span(old.0 - old.0 / 4 + took.0 / 4));
}

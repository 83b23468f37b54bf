//! The measured costs of taking slots.

use serde::{Deserialize, Serialize};

use crate::cluster::by_bytes::ByBytes;
use crate::preemption::Primitive;
use crate::time::Span;

/// The measured costs of taking a slot and giving it back, for tasks of one kind, smoothed: one quarter the
/// new value and three quarters the old one. `None` until the first measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredCosts {
    /// From the order to suspend to the free slot.
    pub suspend: Option<Span>,
    /// From the order to resume to resumed work.
    pub resume: Option<Span>,
    /// From the order to checkpoint to the free slot.
    pub checkpoint: Option<Span>,
    /// From the order to launch from a checkpoint to resumed work.
    pub restore: Option<Span>,
    /// From the order to kill to the free slot.
    #[serde(default)]
    pub kill: Option<Span>,
    /// Checkpoint and restore times by the memory that the tasks need.
    #[serde(default)]
    pub checkpoint_by_bytes: ByBytes,
    #[serde(default)]
    pub restore_by_bytes: ByBytes,
    /// The primitives that were chosen by cost before.
    #[serde(default)]
    pub tried: Tried,
    /// From the order to launch from the beginning to the first work.
    #[serde(default)]
    pub launch: Option<Span>,
}

/// Primitives that keep work and were chosen by cost for tasks of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    pub suspend: bool,
    pub checkpoint: bool,
}

impl MeasuredCosts {
    /// Returns how long a primitive takes to free a slot, and then to continue the work, if known.
    pub(crate) fn of(&self, primitive: Primitive) -> (Option<Span>, Option<Span>) {
        match primitive {
            Primitive::Suspend => (self.suspend, self.resume),
            Primitive::Checkpoint => (self.checkpoint, self.restore),
            Primitive::Wait | Primitive::Kill => (None, None),
        }
    }
}

/// Adds a measurement to a smoothed value.
pub(crate) fn smooth(known: &mut Option<Span>, took: Span) {
    let old = known.unwrap_or(took);
    *known = Some(Span(old.0 - old.0 / 4 + took.0 / 4));
}

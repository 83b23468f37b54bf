//! Which primitive takes a slot when the settings say so and not the policy: always one, or for each victim
//! the one that costs least.
//!
//! Owns the choice as a setting, and what estimates came to. Does not own how a cost is estimated
//! (the engine).

use serde::{Deserialize, Serialize};

use crate::preemption::Primitive;
use crate::time::Span;

listed! {
    /// How slots are taken, whatever a policy prefers.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum PrimitiveChoice {
        /// Victims are let finish.
        Wait = "wait",
        /// Victims are killed.
        Kill = "kill",
        /// Victims are suspended.
        Suspend = "suspend",
        /// Victims are checkpointed.
        Checkpoint = "checkpoint",
        /// For each victim, what costs least of what is possible.
        Auto = "auto",
    }
}

impl PrimitiveChoice {
    /// The one that is always used, if it is always one.
    pub fn fixed(self) -> Option<Primitive> {
        match self {
            PrimitiveChoice::Wait => Some(Primitive::Wait),
            PrimitiveChoice::Kill => Some(Primitive::Kill),
            PrimitiveChoice::Suspend => Some(Primitive::Suspend),
            PrimitiveChoice::Checkpoint => Some(Primitive::Checkpoint),
            PrimitiveChoice::Auto => None,
        }
    }
}

impl From<Primitive> for PrimitiveChoice {
    fn from(primitive: Primitive) -> PrimitiveChoice {
        match primitive {
            Primitive::Wait => PrimitiveChoice::Wait,
            Primitive::Kill => PrimitiveChoice::Kill,
            Primitive::Suspend => PrimitiveChoice::Suspend,
            Primitive::Checkpoint => PrimitiveChoice::Checkpoint,
        }
    }
}

/// What the choice of a primitive goes by until it was measured, and what is never measured:
/// what a cluster on one machine takes, some milliseconds for signals, some tens for processes,
/// and a disk's 100 MB/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct AutoSettings {
    /// From the order to suspend to the free slot.
    #[serde(with = "crate::time::text")]
    pub suspend: Span,
    /// From the order to resume to work that goes on.
    #[serde(with = "crate::time::text")]
    pub resume: Span,
    /// From the order to checkpoint to the free slot.
    #[serde(with = "crate::time::text")]
    pub checkpoint: Span,
    /// From the launch from a checkpoint to work that goes on.
    #[serde(with = "crate::time::text")]
    pub restore: Span,
    /// From a launch to the first work.
    #[serde(with = "crate::time::text")]
    pub launch: Span,
    /// Bytes a second that are paged out, and in again, where memory is too small for all.
    pub page_bandwidth: u64,
}

impl Default for AutoSettings {
    fn default() -> AutoSettings {
        AutoSettings {
            suspend: Span::from_millis(2),
            resume: Span::from_millis(2),
            checkpoint: Span::from_millis(20),
            restore: Span::from_millis(50),
            launch: Span::from_millis(10),
            page_bandwidth: 100_000_000,
        }
    }
}

impl AutoSettings {
    /// How long so many bytes are on their way to or from swap.
    pub(crate) fn paging(&self, bytes: u64) -> Span {
        let micros = u128::from(bytes) * 1_000_000 / u128::from(self.page_bandwidth.max(1));
        Span(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

/// What choices of one primitive were expected to cost, and did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// Slots that were freed by it.
    pub slots: u64,
    /// Expected until these slots were free, together.
    pub free_estimated: Span,
    /// What it took.
    pub free: Span,
    /// Expected of their victims, together.
    pub victim_estimated: Span,
    /// What it took: work lost, and time until work went on. Of victims that have not gone on yet, nothing.
    pub victim: Span,
}

//! The primitive that the settings choose in place of the policy: a fixed one, or the cheapest for each
//! victim; and the record of how accurate the estimates were.

use serde::{Deserialize, Serialize};

use crate::preemption::Primitive;
use crate::time::Span;

listed! {
    /// The way in which slots are taken, regardless of the policy's preference.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum PrimitiveChoice {
        /// Victims may finish.
        Wait = "wait",
        /// Victims are killed.
        Kill = "kill",
        /// Victims are suspended.
        Suspend = "suspend",
        /// Victims are checkpointed.
        Checkpoint = "checkpoint",
        /// The cheapest possible primitive for each victim.
        Auto = "auto",
    }
}

impl PrimitiveChoice {
    /// Returns the fixed primitive, if there is one.
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

/// Cost assumptions until there are measurements, and constants that are never measured. The defaults fit a
/// cluster on one machine: milliseconds for signals, tens of milliseconds for processes, and 100 MB/s for a
/// disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct AutoSettings {
    /// From the order to suspend to the free slot.
    #[serde(with = "crate::time::text")]
    pub suspend: Span,
    /// From the order to resume to resumed work.
    #[serde(with = "crate::time::text")]
    pub resume: Span,
    /// From the order to checkpoint to the free slot.
    #[serde(with = "crate::time::text")]
    pub checkpoint: Span,
    /// From the launch from a checkpoint to resumed work.
    #[serde(with = "crate::time::text")]
    pub restore: Span,
    /// From a launch to the first work.
    #[serde(with = "crate::time::text")]
    pub launch: Span,
    /// Bytes per second that are paged out, and in again, when memory is short.
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
    /// Returns the time to transfer this many bytes to or from swap.
    pub(crate) fn paging(&self, bytes: u64) -> Span {
        let micros = u128::from(bytes) * 1_000_000 / u128::from(self.page_bandwidth.max(1));
        Span(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

/// Estimated and actual total costs of one primitive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// Slots that it freed.
    pub slots: u64,
    /// Estimated time until these slots were free.
    pub free_estimated: Span,
    /// Actual time until they were free.
    pub free: Span,
    /// Estimated cost to their victims.
    pub victim_estimated: Span,
    /// Actual cost to their victims: lost work, and time until work continued. Excludes victims that have not
    /// continued yet.
    pub victim: Span,
}

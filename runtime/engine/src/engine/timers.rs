//! The wake-ups that the engine needs: when, and which one the driver knows of.

use serde::{Deserialize, Serialize};

use crate::sorted::SortedSet;
use crate::time::{Span, Time};

/// Ineffective wake-ups at shorter intervals than this are counted.
const CLOSE: Span = Span(10);
/// Maximum number of them in a row.
const IN_VAIN_MAX: u32 = 1000;

/// The reason for delaying a wake-up that a policy requests.
pub(super) enum PutOff {
    Past,
    /// Many wake-ups in quick succession had no effect.
    Spinning,
}

/// All pending wake-ups but those for deadlines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Timers {
    /// The wake-ups that the policy requested by an action.
    wakes: SortedSet<Time>,
    /// The wake-up that the driver has been sent.
    armed: Option<Time>,
    /// The next check for stragglers.
    speculate_at: Option<Time>,
    /// When a suspended attempt has waited long enough to be given up, if another worker has a slot then.
    convert_at: Option<Time>,
    /// Consecutive wake-ups without effect.
    #[serde(default)]
    in_vain: u32,
}

impl Timers {
    /// Returns the wake-up that the driver has been sent.
    pub fn armed(&self) -> Option<Time> {
        self.armed
    }

    /// Records that the driver's wake-up has come.
    pub fn disarm(&mut self) {
        self.armed = None;
    }

    pub fn add_wake(&mut self, at: Time) {
        self.wakes.insert(at);
    }

    /// Drops the requested wake-ups that have come.
    pub fn expire(&mut self, now: Time) {
        while self.wakes.first().is_some_and(|&wake| wake <= now) {
            self.wakes.pop_first();
        }
    }

    /// Returns whether the check for stragglers is due, and removes it then.
    pub fn take_speculation(&mut self, now: Time) -> bool {
        self.speculate_at.take_if(|at| *at <= now).is_some()
    }

    /// Returns whether a check for stragglers is set.
    pub fn has_speculation(&self) -> bool {
        self.speculate_at.is_some()
    }

    pub fn speculate_at(&mut self, at: Time) {
        self.speculate_at = Some(at);
    }

    /// Drops the check of suspended attempts.
    pub fn drop_conversion(&mut self) {
        self.convert_at = None;
    }

    /// Checks the suspended attempts at a time or before.
    pub fn convert_by(&mut self, at: Time) {
        self.convert_at = Some(self.convert_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Counts consecutive wake-ups without effect.
    pub fn count_idle(&mut self, idle: bool) {
        self.in_vain = if idle {
            self.in_vain.saturating_add(1)
        } else {
            0
        };
    }

    /// Returns why a wake-up that a policy requests for a time must be put off, if it must.
    pub fn put_off(&mut self, wanted: Time, now: Time) -> Option<PutOff> {
        let close = wanted < now + CLOSE;
        if close && self.in_vain >= IN_VAIN_MAX {
            self.in_vain = 0;
            return Some(PutOff::Spinning);
        }
        if wanted <= now {
            self.in_vain = 0;
            return Some(PutOff::Past);
        }
        // Only uninterrupted quick successions count: a policy may inspect the cluster every millisecond.
        self.in_vain = if close { self.in_vain } else { 0 };
        None
    }

    /// Returns the next wake-up to send to the driver, unless that is set already. `others` are the times
    /// that are kept elsewhere.
    pub fn arm(&mut self, now: Time, others: [Option<Time>; 2]) -> Option<Time> {
        let asked = self.wakes.first().copied();
        let own = [asked, self.speculate_at, self.convert_at];
        let next = others.into_iter().chain(own).flatten().min()?;
        if self.armed.is_some_and(|armed| armed <= next && armed > now) {
            return None;
        }
        self.armed = Some(next);
        Some(next)
    }
}

//! How long the reduces of a job held slots, and how much of that was before its last map.
//!
//! Owns the sums. Does not own when a slot changes hands.

use napreduce_engine::Time;

/// The reduce slots of a job over time.
#[derive(Debug, Default)]
pub(super) struct HeldReduceSlots {
    pub now: u64,
    pub since: Time,
    /// Slot time until `since`, and until the job's last map was done.
    pub total: u64,
    pub before_maps_end: u64,
    /// When its reduces were done, one after the other.
    pub done_at: u64,
}

impl HeldReduceSlots {
    pub fn count_until(&mut self, now: Time) {
        self.total += self.now * now.since(self.since).0;
        self.since = now;
    }
}

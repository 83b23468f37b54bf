//! Counts of what leaves no other trace.

use serde::{Deserialize, Serialize};

/// How often things happened that leave no other trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Reports about attempts that were no longer current, dropped.
    pub stale_reports: u64,
    /// Reports that made no sense in the state of their attempt, ignored.
    pub illegal_reports: u64,
    /// Events about jobs and workers that made no sense, ignored.
    pub illegal_events: u64,
    /// Actions of the scheduler that were not possible, ignored.
    pub illegal_actions: u64,
    /// Offered slots that the scheduler left empty with a reason.
    pub slots_declined: u64,
    /// Requests to preempt that freed their slot as asked.
    pub requests_satisfied: u64,
    /// Requests to preempt that became a kill when their grace was over.
    pub requests_forced: u64,
    /// Requests to preempt that were withdrawn, or whose worker vanished.
    pub requests_cancelled: u64,
    /// Wishes to take a slot from a job for that very job, refused.
    #[serde(default)]
    pub requests_refused: u64,
    /// Wake-ups that the scheduler wanted for a time that was over, or again and again for nothing; put off.
    #[serde(default)]
    pub wakes_put_off: u64,
}

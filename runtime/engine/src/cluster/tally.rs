//! Counts of events that leave no other trace.

use serde::{Deserialize, Serialize};

/// Counts of events that leave no other trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Dropped reports about attempts that were no longer current.
    pub stale_reports: u64,
    /// Ignored reports that were illegal in the state of their attempt.
    pub illegal_reports: u64,
    /// Ignored illegal events about jobs and workers.
    pub illegal_events: u64,
    /// Ignored illegal actions of the scheduler.
    pub illegal_actions: u64,
    /// Offered slots that the scheduler declined with a reason.
    pub slots_declined: u64,
    /// Requests to preempt that freed their slot as requested.
    pub requests_satisfied: u64,
    /// Requests to preempt that became a kill when their grace was over.
    pub requests_forced: u64,
    /// Requests to preempt that were withdrawn, or whose worker was lost.
    pub requests_cancelled: u64,
    /// Rejected requests to take a slot from a job for that same job.
    #[serde(default)]
    pub requests_refused: u64,
    /// Ignored requests for a slot that the beneficiary would not use.
    #[serde(default)]
    pub requests_useless: u64,
    /// Slots that were freed for a job which did not use them.
    #[serde(default)]
    pub slots_unused: u64,
    /// Delayed wake-ups that the scheduler requested for a past time, or repeatedly without effect.
    #[serde(default)]
    pub wakes_put_off: u64,
    /// Requests of the policy that the settings changed.
    #[serde(default)]
    pub fallbacks: Fallbacks,
}

/// How often the settings for preemption replaced or delayed what a policy requested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fallbacks {
    /// The worker keeps `suspended-max` attempts, or refused to suspend another one: `when-full`.
    pub worker_full: u64,
    /// The task cannot be preempted as requested: `otherwise`.
    pub not_possible: u64,
    /// The task was preempted often enough: `preemptions-max`, `suspends-max`.
    pub taken_enough: u64,
    /// The rule for costs.
    pub costs: u64,
    /// The task must run first: `minimum-run`, or several preemptions without progress.
    pub delayed: u64,
}

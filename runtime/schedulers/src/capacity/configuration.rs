//! Configuration of the capacity policy: values, published defaults and validation.

use napreduce_engine::{Primitive, Ratio, Span};
use serde::{Deserialize, Serialize};

use super::error::CapacityError;
use crate::serving::DelaySettings;
use crate::tables::NoAccessList;

/// The order of the applications of one queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApplicationOrder {
    /// By priority, then by submission.
    #[default]
    Fifo,
    /// By usage, smallest first, then by submission.
    Fair,
}

/// The precedence between user limits and priorities in intra-queue preemption.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntraQueueOrder {
    /// Users within their limit are never preempted.
    #[default]
    UserLimitFirst,
    /// Application priority takes precedence.
    PriorityFirst,
}

/// Whether queues may grow beyond their guarantee.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// No: the maximum equals the guarantee.
    HardCap,
    /// Up to their maximum while capacity is idle. They shrink as their tasks end.
    #[default]
    SoftCap,
    /// As soft cap, and the monitor preempts tasks to restore the guarantees of other queues.
    Preemptive,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct CapacityConfiguration {
    pub mode: Mode,
    /// The queue for jobs that name no leaf queue. By default `default`, or the first leaf.
    pub default_queue: Option<String>,
    /// Maximum running jobs per user, over all queues; further jobs wait.
    pub user_max_running_jobs: Option<u32>,
    /// The queues. If empty, a single queue `default` with the whole cluster.
    pub queue: Vec<QueueConfiguration>,
    pub monitor: MonitorConfiguration,
    pub delay: DelaySettings,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QueueConfiguration {
    pub name: String,
    #[serde(default = "root")]
    pub parent: String,
    /// Guaranteed capacity, in percent of the parent.
    pub guaranteed_percent: Ratio,
    /// Maximum capacity, in percent of the parent's maximum.
    #[serde(default = "whole")]
    pub max_percent: Ratio,
    /// Larger is more important.
    #[serde(default)]
    pub priority: i32,
    /// Protects this queue and those below it from preemption.
    #[serde(default)]
    pub preemption_disabled: bool,
    /// Minimum user limit: the percentage of the queue that one user can always reach.
    #[serde(default = "whole")]
    pub user_limit_percent: Ratio,
    #[serde(default)]
    pub app_order: ApplicationOrder,
    /// Maximum running jobs in this queue and below; further jobs wait.
    #[serde(default)]
    pub max_running_jobs: Option<u32>,
    /// Not supported; rejected when set.
    #[serde(default, skip_serializing)]
    #[serde(
        alias = "acl_submit_applications",
        alias = "acl-submit-jobs",
        alias = "acl_submit_jobs"
    )]
    pub acl_submit_applications: NoAccessList,
    /// Not supported; rejected when set.
    #[serde(default, skip_serializing)]
    #[serde(
        alias = "acl_administer_queue",
        alias = "acl-administer-jobs",
        alias = "acl_administer_jobs"
    )]
    pub acl_administer_queue: NoAccessList,
}

impl QueueConfiguration {
    /// Returns a queue below the root with the given guarantee in percent, and defaults.
    pub fn new(name: impl Into<String>, guaranteed_percent: Ratio) -> QueueConfiguration {
        QueueConfiguration {
            name: name.into(),
            parent: root(),
            guaranteed_percent,
            max_percent: whole(),
            priority: 0,
            preemption_disabled: false,
            user_limit_percent: whole(),
            app_order: ApplicationOrder::default(),
            max_running_jobs: None,
            acl_submit_applications: NoAccessList,
            acl_administer_queue: NoAccessList,
        }
    }
}

fn root() -> String {
    super::queues::ROOT.to_owned()
}

fn whole() -> Ratio {
    Ratio::whole(100)
}

/// The preemption monitor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct MonitorConfiguration {
    /// Interval between rounds.
    #[serde(with = "napreduce_engine::time::text")]
    pub interval: Span,
    /// Grace period of a victim before it is killed.
    #[serde(with = "napreduce_engine::time::text")]
    pub max_wait_before_kill: Span,
    /// Fraction of all slots that one round may preempt.
    pub total_per_round: Ratio,
    /// Minimum slots per round and per queue that gives any. The published value is 0, with which
    /// clusters of fewer than ten slots never preempt.
    pub least_slots: u32,
    /// Fraction of its guarantee by which a queue may exceed it before tasks are preempted.
    pub dead_zone: Ratio,
    /// Fraction of the excess that is requested per round; the rest is expected to end by itself.
    pub natural_termination_factor: Ratio,
    /// Computes the decisions without preempting.
    pub observe_only: bool,
    /// Enables preemption between applications of one queue.
    pub intra_queue: bool,
    /// Skips queues that use less than this fraction of their guarantee.
    pub intra_queue_minimum_threshold: Ratio,
    /// Maximum fraction of a queue's guarantee preempted in one round.
    pub intra_queue_max_allowable_limit: Ratio,
    pub intra_queue_order: IntraQueueOrder,
    /// Enables balancing between queues that hold their guarantee.
    pub balance_beyond_guaranteed: bool,
    /// Grace period of a victim of balancing.
    #[serde(with = "napreduce_engine::time::text")]
    pub balance_max_wait_before_kill: Span,
    /// Marks victims after their grace period, and preempts them when their slot is needed.
    pub lazy: bool,
    /// Makes room first where suspended attempts wait for a slot of their worker.
    pub reserved_aware: bool,
    /// Makes room before all else where suspended attempts of more important queues have waited for
    /// `priority-delay`.
    pub priority_aware: bool,
    #[serde(with = "napreduce_engine::time::text")]
    pub priority_delay: Span,
    pub primitive: Primitive,
}

impl Default for MonitorConfiguration {
    fn default() -> MonitorConfiguration {
        MonitorConfiguration {
            interval: Span::from_secs(3),
            max_wait_before_kill: Span::from_secs(15),
            total_per_round: Ratio::new(1, 10),
            least_slots: 1,
            dead_zone: Ratio::new(1, 10),
            natural_termination_factor: Ratio::new(1, 5),
            observe_only: false,
            intra_queue: false,
            intra_queue_minimum_threshold: Ratio::new(1, 2),
            intra_queue_max_allowable_limit: Ratio::new(1, 5),
            intra_queue_order: IntraQueueOrder::UserLimitFirst,
            balance_beyond_guaranteed: false,
            balance_max_wait_before_kill: Span::from_secs(300),
            lazy: false,
            reserved_aware: false,
            priority_aware: false,
            priority_delay: Span::from_secs(60),
            primitive: Primitive::Kill,
        }
    }
}

impl MonitorConfiguration {
    /// Whether rounds take reservations (suspended attempts that wait for their worker) into account.
    pub(super) fn uses_reservations(&self) -> bool {
        self.reserved_aware || self.priority_aware
    }

    /// Returns how long the passes between queues and within a queue respect what the other took.
    pub(super) fn memory(&self) -> Span {
        let rounds = self.interval.0.saturating_mul(10);
        Span(rounds.saturating_add(self.max_wait_before_kill.0))
    }

    /// Returns the delay before a victim is marked in lazy mode. Suspended and checkpointed tasks lose no
    /// work, so they need none.
    pub(super) fn mark_delay(&self, wait: Span) -> Span {
        match self.primitive {
            Primitive::Suspend | Primitive::Checkpoint => Span(0),
            Primitive::Kill | Primitive::Wait => wait,
        }
    }

    /// Validates the values.
    ///
    /// # Errors
    /// Fails if a value is out of bounds; names the value and the bounds.
    pub fn check(&self) -> Result<(), CapacityError> {
        if self.interval == Span::default() {
            return Err(CapacityError::NoInterval);
        }
        let shares = [
            ("total-per-round", self.total_per_round),
            (
                "natural-termination-factor",
                self.natural_termination_factor,
            ),
            (
                "intra-queue-minimum-threshold",
                self.intra_queue_minimum_threshold,
            ),
            (
                "intra-queue-max-allowable-limit",
                self.intra_queue_max_allowable_limit,
            ),
        ];
        for (name, value) in shares {
            let least = Ratio::ZERO;
            let most = Ratio::ONE;
            within(name, value, least, most)?;
        }
        within("dead-zone", self.dead_zone, Ratio::ZERO, Ratio::whole(1000))
    }
}

/// Checks that a value is in bounds and has few enough digits for exact arithmetic.
fn within(
    name: &'static str,
    value: Ratio,
    least: Ratio,
    most: Ratio,
) -> Result<(), CapacityError> {
    if value < least || value > most {
        return Err(CapacityError::OutOfBounds {
            name,
            value,
            least,
            most,
        });
    }
    if value.denominator() > 1_000_000 {
        return Err(CapacityError::TooManyDigits { name, value });
    }
    Ok(())
}

//! What can be chosen about the capacity policy, as it stands in a file.
//!
//! Owns the values, their published defaults and their bounds. Does not own the tree that follows from the
//! queues.

use napreduce_engine::{Primitive, Ratio, Span, fields};
use serde::{Deserialize, Serialize};

use super::error::CapacityError;
use crate::access::NoAccessList;
use crate::serving::DelaySettings;

/// The order of the applications of one queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApplicationOrder {
    /// By priority, then by submission.
    #[default]
    Fifo,
    /// Who has least, then by submission.
    Fair,
}

/// What comes first when applications of one queue take from each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntraQueueOrder {
    /// Nobody takes from a user who is not beyond the limit.
    #[default]
    UserLimitFirst,
    /// The priorities of applications.
    PriorityFirst,
}

/// How far queues may grow beyond their guarantee.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Not at all: the guarantee is the maximum.
    HardCap,
    /// Up to their maximum into what is idle; they shrink when their tasks end.
    #[default]
    SoftCap,
    /// As with the soft cap, and the monitor takes back what others are guaranteed.
    Preemptive,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct CapacityConfiguration {
    /// How far queues may grow.
    pub mode: Mode,
    /// The queue of jobs that name none, or one that is not there or has queues below it. Without it
    /// `default`, or the first leaf.
    pub default_queue: Option<String>,
    /// So many jobs of one user run at once, in all queues together; the others wait.
    pub user_max_running_jobs: Option<u32>,
    /// The queues; without any, one named `default` that has all.
    pub queue: Vec<QueueConfiguration>,
    /// How slots are taken back.
    pub monitor: MonitorConfiguration,
    /// How long jobs wait for a slot near their data.
    pub delay: DelaySettings,
}

fields! {
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case")]
    pub struct QueueConfiguration {
        /// Its name, which is unique.
        pub name: String = name.into(),
        /// The queue it is a part of.
        #[serde(default = "root")]
        pub parent: String = root(),
        /// What it is guaranteed, in hundredths of its parent.
        pub guaranteed_percent: Ratio = guaranteed_percent,
        /// What it may have at most, in hundredths of its parent's maximum.
        #[serde(default = "whole")]
        pub max_percent: Ratio = whole(),
        /// Larger is more important.
        #[serde(default)]
        pub priority: i32,
        /// Nothing is taken from it, nor from the queues below it.
        #[serde(default)]
        pub preemption_disabled: bool,
        /// However many users there are, one may have so much of the queue, in hundredths.
        #[serde(default = "whole")]
        pub user_limit_percent: Ratio = whole(),
        /// The order of its jobs.
        #[serde(default)]
        pub app_order: ApplicationOrder,
        /// So many jobs of it and of the queues below it run at once; the others wait.
        #[serde(default)]
        pub max_running_jobs: Option<u32>,
        /// Who may submit to it; refused.
        #[serde(default, skip_serializing)]
        #[serde(alias = "acl_submit_applications", alias = "acl-submit-jobs", alias = "acl_submit_jobs")]
        pub acl_submit_applications: NoAccessList = NoAccessList,
        /// Who may kill its jobs; refused.
        #[serde(default, skip_serializing)]
        #[serde(alias = "acl_administer_queue", alias = "acl-administer-jobs", alias = "acl_administer_jobs")]
        pub acl_administer_queue: NoAccessList = NoAccessList,
    }

    /// A queue below the root with so much of it guaranteed, in hundredths, and everything else as when it is
    /// not said.
    pub fn new(name: impl Into<String>, guaranteed_percent: Ratio);
}

fn root() -> String {
    super::queues::ROOT.to_owned()
}

fn whole() -> Ratio {
    Ratio::whole(100)
}

fields! {
    /// The preemption monitor.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
    pub struct MonitorConfiguration {
        /// The time from one round to the next.
        #[serde(with = "napreduce_engine::time::text")]
        pub interval: Span = Span::from_secs(3),
        /// How long a victim may go on before it is killed.
        #[serde(with = "napreduce_engine::time::text")]
        pub max_wait_before_kill: Span = Span::from_secs(15),
        /// Which part of all slots may be taken in one round.
        pub total_per_round: Ratio = Ratio::new(1, 10),
        /// The fewest slots that a round may take, and that it takes of a queue that is to give any.
        /// Published is 0, which never takes anything on a cluster of fewer than ten slots.
        pub least_slots: u32 = 1,
        /// Which part of its guarantee a queue may have beyond it before anything is taken.
        pub dead_zone: Ratio = Ratio::new(1, 10),
        /// Which part of what is to be taken is asked for in one round.
        pub natural_termination_factor: Ratio = Ratio::new(1, 5),
        /// Only works out what it would do.
        pub observe_only: bool = false,
        /// Takes inside of queues, too.
        pub intra_queue: bool = false,
        /// Nothing is done inside of a queue that uses less than this part of its guarantee.
        pub intra_queue_minimum_threshold: Ratio = Ratio::new(1, 2),
        /// Inside of a queue at most this part of its guarantee is taken in one round.
        pub intra_queue_max_allowable_limit: Ratio = Ratio::new(1, 5),
        /// What comes first inside of queues.
        pub intra_queue_order: IntraQueueOrder = IntraQueueOrder::UserLimitFirst,
        /// Queues that have their guarantee balance what is left.
        pub balance_beyond_guaranteed: bool = false,
        /// How long a victim of that may go on before it is killed.
        #[serde(with = "napreduce_engine::time::text")]
        pub balance_max_wait_before_kill: Span = Span::from_secs(300),
        /// Victims are only marked once their wait is over, and go when somebody needs their slot.
        pub lazy: bool = false,
        /// Room is made first where suspended attempts wait for a slot of their worker.
        pub reserved_aware: bool = false,
        /// Room is made before all else where such attempts of more important queues have waited for long.
        pub priority_aware: bool = false,
        /// How long they must have waited.
        #[serde(with = "napreduce_engine::time::text")]
        pub priority_delay: Span = Span::from_secs(60),
        /// How a slot is taken.
        pub primitive: Primitive = Primitive::Kill,
    }
}

impl MonitorConfiguration {
    /// Whether rounds look at attempts that wait for a slot of their worker.
    pub(super) fn sees_reservations(&self) -> bool {
        self.reserved_aware || self.priority_aware
    }

    /// How long a victim is left alone before it is marked, where victims are only marked: one that loses
    /// no work by going need not be given time to end.
    pub(super) fn wait_for_mark(&self, wait: Span) -> Span {
        match self.primitive {
            Primitive::Suspend | Primitive::Checkpoint => Span(0),
            Primitive::Kill | Primitive::Wait => wait,
        }
    }

    /// Whether the values make sense.
    ///
    /// # Errors
    /// Names the first that does not, and what is allowed.
    pub fn check(&self) -> Result<(), CapacityError> {
        if self.interval == Span::default() {
            return Err(CapacityError::NoInterval);
        }
        let shares = [
            ("total-per-round", self.total_per_round),
            ("natural-termination-factor", self.natural_termination_factor),
            ("intra-queue-minimum-threshold", self.intra_queue_minimum_threshold),
            ("intra-queue-max-allowable-limit", self.intra_queue_max_allowable_limit),
        ];
        for (name, value) in shares {
            let (least, most) = (Ratio::ZERO, Ratio::ONE);
            within(name, value, least, most)?;
        }
        within("dead-zone", self.dead_zone, Ratio::ZERO, Ratio::whole(1000))
    }
}

/// Whether a value of the monitor is in its bounds, with few enough digits to calculate with exactly.
fn within(name: &'static str, value: Ratio, least: Ratio, most: Ratio) -> Result<(), CapacityError> {
    if value < least || value > most {
        return Err(CapacityError::OutOfBounds { name, value, least, most });
    }
    if value.denominator() > 1_000_000 {
        return Err(CapacityError::TooManyDigits { name, value });
    }
    Ok(())
}

//! The preemption monitor: computes the ideal share of each queue and chooses containers of queues that
//! exceed theirs. Pure: the input is a snapshot, the output a list of containers. One round runs several
//! passes over one budget, as YARN's `ProportionalCapacityPreemptionPolicy` does.

mod ideal;
mod intra;
mod priority;
mod reserved;
mod round;
mod rounds;
mod shares;
mod slots;
mod source;
mod take;
mod tree;
mod victims;

pub use intra::Claim;
pub use round::{Round, RoundChoice};
pub use rounds::{RoundOutcome, Rounds};
pub use source::Source;
pub use take::after_natural_termination;
pub use tree::{QueueState, QueueTree};
pub use victims::{Application, Container, Pass, Victim};

use napreduce_engine::{Ratio, Span, Time};

use self::ideal::Sharing;
use crate::capacity::configuration::{ApplicationOrder, IntraQueueOrder};

/// How a round computes amounts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Arithmetic {
    /// As published, for large amounts such as megabytes: every rounding is of the smallest unit.
    #[default]
    Published,
    /// In whole slots: the integer part of every guarantee is met, whatever the sizes.
    WholeSlots,
}

/// Settings of a round. Published defaults, for an empty cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundSettings {
    pub arithmetic: Arithmetic,
    pub cluster: u64,
    /// Fraction of the cluster that one round may preempt.
    pub total_per_round: Ratio,
    /// Fraction of its guarantee by which a queue may exceed it before containers are taken.
    pub dead_zone: Ratio,
    /// Fraction of the excess that is requested; the rest is expected to end by itself.
    pub natural_termination_factor: Ratio,
    /// Minimum amount per round and per queue that gives any. The published value is 0, which suits bytes
    /// but not slots: a tenth of nine slots rounds to none.
    pub least: u64,
    /// Fraction of a queue's guarantee that its masters keep after all other containers are taken.
    pub masters_kept: Ratio,
    /// Enables the balancing pass between satisfied queues.
    pub balance_beyond_guaranteed: bool,
    /// Whether reservations hold capacity and are released before running containers (the published
    /// behaviour).
    pub reserved_hold_room: bool,
    /// Enables the pass for reservations; reserved capacity then counts as demand.
    pub reserved_aware: bool,
    /// Enables the pass for reservations of important queues that have waited this long.
    pub priority_delay: Option<Span>,
    /// Enables the intra-queue pass.
    pub intra_queue: Option<IntraQueue>,
    /// By queue number; missing entries use the defaults.
    pub queues: Vec<QueueSettings>,
    /// Free capacity of the nodes; used for reservations only.
    pub nodes: Vec<Node>,
    pub now: Time,
}

impl Default for RoundSettings {
    fn default() -> RoundSettings {
        RoundSettings {
            arithmetic: Arithmetic::Published,
            cluster: 0,
            total_per_round: Ratio::new(1, 10),
            dead_zone: Ratio::new(1, 10),
            natural_termination_factor: Ratio::new(1, 5),
            least: 0,
            masters_kept: Ratio::new(1, 10),
            balance_beyond_guaranteed: false,
            reserved_hold_room: true,
            reserved_aware: false,
            priority_delay: None,
            intra_queue: None,
            queues: Vec::new(),
            nodes: Vec::new(),
            now: Time::default(),
        }
    }
}

/// Settings of the intra-queue pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntraQueue {
    pub order: IntraQueueOrder,
    /// Skips queues that use less than this fraction of their guarantee.
    pub minimum_threshold: Ratio,
    /// Maximum fraction of the guarantee taken in one round.
    pub max_allowable_limit: Ratio,
    /// Size of the smallest container.
    pub minimum_allocation: u64,
}

/// Settings of one queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueSettings {
    pub order: ApplicationOrder,
    /// User limit in percent of the guarantee; equal parts if `None`.
    pub minimum_user_limit_percent: Option<Ratio>,
}

/// A node with running containers and reservations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    pub id: u32,
    pub free: u64,
}

/// Returns the ideal amount of each queue in whole slots; with `beyond_guaranteed`, growth beyond guarantees at
/// the expense of other queues is included.
pub(super) fn ideal(tree: &QueueTree, beyond_guaranteed: bool) -> Vec<Ratio> {
    slots::distribute(
        tree,
        Sharing {
            beyond_guaranteed,
            count_reserved: false,
        },
    )
    .ideal
}

impl RoundSettings {
    /// Returns the budget of one round.
    pub fn allowed(&self) -> u64 {
        self.total_per_round
            .of(self.cluster)
            .max(self.least.min(self.cluster))
    }

    fn of(&self, queue: usize) -> QueueSettings {
        self.queues.get(queue).copied().unwrap_or_default()
    }
}

//! The preemption monitor: from time to time it works out what each queue should have, and takes from those
//! that have more. Pure: a snapshot goes in, containers come out.
//!
//! Owns one round, whose passes share one budget, and what rounds remember of each other. Does not own where
//! snapshots come from nor what taking means: to the monitor an attempt is a container that holds some
//! amount.

mod ideal;
mod intra;
mod priority;
mod reserved;
mod round;
mod rounds;
mod shares;
mod take;
mod tree;
mod victims;

pub use intra::Claim;
pub use round::{Round, RoundChoice};
pub use rounds::{RoundOutcome, Rounds};
pub use take::after_natural_termination;
pub use tree::{QueueState, QueueTree};
pub use victims::{Application, Container, Pass, Victim};

use napreduce_engine::{Ratio, Span, Time, fields};

use self::ideal::{Distribution, Sharing};
use crate::capacity::configuration::{ApplicationOrder, IntraQueueOrder};

fields! {
    /// What can be chosen about a round; as published, for an empty cluster, when nothing is said.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct RoundSettings {
        /// The size of the cluster.
        pub cluster: u64 = 0,
        /// Which part of the cluster may be taken in one round.
        pub total_per_round: Ratio = Ratio::new(1, 10),
        /// How far, as a part of its guarantee, a queue may be beyond it before anything is taken.
        pub dead_zone: Ratio = Ratio::new(1, 10),
        /// Which part of what is to be taken is asked for; the rest is expected to end by itself.
        pub natural_termination_factor: Ratio = Ratio::new(1, 5),
        /// Where anything is to be taken at all, and of a round, at least so much: slots are few where bytes
        /// are many, and a tenth of nine slots is none. Zero is as published.
        pub least: u64 = 0,
        /// Which part of the guarantee of a queue its masters may keep when all else is taken.
        pub masters_kept: Ratio = Ratio::new(1, 10),
        /// A second pass, in which satisfied queues balance each other.
        pub balance_beyond_guaranteed: bool = false,
        /// What is reserved holds room, as published, so that it is given up before anything that runs.
        pub reserved_hold_room: bool = true,
        /// Containers that reservations wait for are taken first; and what is reserved counts as wanted.
        pub reserved_aware: bool = false,
        /// Reservations of important queues that waited so long are made room for, if at all.
        pub priority_delay: Option<Span>,
        /// The pass inside of queues, if there is to be one.
        pub intra_queue: Option<IntraQueue>,
        /// What can be chosen about each queue, by its number; nothing said is as published.
        pub queues: Vec<QueueSettings>,
        /// The rooms of the nodes; only reservations ask for them.
        pub nodes: Vec<Node>,
        pub now: Time,
    }
}

/// What can be chosen about the pass inside of queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntraQueue {
    /// Whether the limits of users come before the priorities of applications.
    pub order: IntraQueueOrder,
    /// Nothing is done in a queue that uses less than this part of its guarantee.
    pub minimum_threshold: Ratio,
    /// At most this part of the guarantee is taken in a round.
    pub max_allowable_limit: Ratio,
    /// The smallest container there is.
    pub minimum_allocation: u64,
}

/// What can be chosen about one queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueSettings {
    /// The order of its applications.
    pub order: ApplicationOrder,
    /// The limit of a user in hundredths of the guarantee; without one users share it equally.
    pub minimum_user_limit_percent: Option<Ratio>,
}

/// A node on which containers run and reservations wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    pub id: u32,
    pub free: u64,
}

/// What each queue should have, by its number; also beyond its guarantee at the cost of others, if so said.
pub(super) fn ideal(tree: &QueueTree, beyond_guaranteed: bool) -> Vec<Ratio> {
    Distribution::of(tree, Sharing { beyond_guaranteed, count_reserved: false }).ideal
}

impl RoundSettings {
    /// How much may be taken in one round.
    pub fn allowed(&self) -> u64 {
        self.total_per_round.of(self.cluster).max(self.least.min(self.cluster))
    }

    /// What was chosen about a queue.
    fn of(&self, queue: usize) -> QueueSettings {
        self.queues.get(queue).copied().unwrap_or_default()
    }
}

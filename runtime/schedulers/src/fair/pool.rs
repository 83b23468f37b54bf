//! One pool of the tree, and the order of its children for a free slot.
//!
//! Owns what a pool is configured to be and what it inherits, what its jobs hold and want, and the ordered
//! sets of those below it that could use a slot. Does not own the tree (`tree`).

use std::collections::BTreeSet;
use std::sync::Arc;

use napreduce_engine::{ByKind, JobId, Ratio, TaskKind, Time, fields};

use crate::fair::configuration::{FairConfiguration, PoolConfiguration, PoolOrder};
use crate::fair::order::{ChildStanding, Weight};
use crate::fair::shares::{Claim, UNBOUNDED};
use crate::fair::starvation::StarvationPatience;
use crate::turns::{Standing, Turn, TurnWeight, Turns};

/// The place of a pool in the tree.
pub(super) type PoolId = usize;

/// Where a child stands among those of its pool that could use a slot. Its name is the place of a pool or the
/// number of a job: the children of a pool are of one sort. Of equal ones the one whose turn it is goes before
/// the older. In a `fifo` pool, what stands for usage is the priority, and nobody has a turn.
pub(super) type Key = ChildStanding<u32, u32, (i128, Time)>;

/// Children in order, first served first.
pub(super) type Children = BTreeSet<Key>;

/// What is held and wanted of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub usage: u64,
    pub demand: u64,
}

fields! {
    #[derive(Debug)]
    pub(super) struct Pool {
        pub parent: Option<PoolId> = parent,
        /// The path from the root, which is not named in it.
        pub name: Arc<str> = name,
        pub weight: Ratio = configuration.weight,
        key_weight: Option<Weight> = Weight::new(configuration.weight),
        /// When it was made; one that is configured was always there.
        made: Time = now,
        pub order: PoolOrder = configuration.order,
        pub min: ByKind<u64> =
            ByKind { map: configuration.min_maps.into(), reduce: configuration.min_reduces.into() },
        pub max: ByKind<u64> =
            ByKind { map: max(configuration.max_maps), reduce: max(configuration.max_reduces) },
        pub yields: bool = configuration.allow_preemption_from.unwrap_or(yields),
        pub patience: StarvationPatience =
            StarvationPatience { min_share_timeout, fair_share_timeout, fair_share_threshold },
        /// So many of its jobs, and of those below it, run at once.
        pub max_running_jobs: Option<u32> = configuration.max_running_jobs,
        /// It is a pool of pools: jobs go to those.
        pub holds_pools: bool,
        /// Every job in it, whatever it wants.
        pub jobs: BTreeSet<JobId>,
        pub held: ByKind<Amount>,
        /// Children that could launch something.
        pub lines: ByKind<Children>,
        /// Under which key it stands in the line of its parent.
        pub placed: ByKind<Option<Key>>,
        pub last_at_min: ByKind<Time> = ByKind { map: now, reduce: now },
        /// Among its siblings.
        pub turn: ByKind<Turn>,
        /// Those of its children.
        pub turns: ByKind<Turns>,
    }

    fn new(
        parent: Option<PoolId>,
        name: Arc<str>,
        configuration: &PoolConfiguration,
        yields: bool,
        patience: StarvationPatience,
        now: Time
    ) {
        let max = |max: Option<u32>| max.map_or(UNBOUNDED, u64::from);
        let timeout = configuration.min_share_timeout;
        let min_share_timeout = timeout.map_or(patience.min_share_timeout, |timeout| timeout.0);
        let timeout = configuration.fair_share_timeout;
        let fair_share_timeout = timeout.map_or(patience.fair_share_timeout, |timeout| timeout.0);
        let threshold = configuration.fair_share_threshold;
        let fair_share_threshold = threshold.unwrap_or(patience.fair_share_threshold);
    }
}

/// Amounts of slots fit 32 bits.
pub(super) fn short(amount: u64) -> u32 {
    u32::try_from(amount).unwrap_or(u32::MAX)
}

impl Pool {
    /// The root of a tree.
    pub(super) fn root(configuration: &FairConfiguration) -> Pool {
        Pool::new(None, Arc::from("root"), &configuration.root, true, configuration.patience(), Time(0))
    }

    pub(super) fn below(
        &self,
        parent: PoolId,
        name: Arc<str>,
        configuration: &PoolConfiguration,
        now: Time,
    ) -> Pool {
        Pool::new(Some(parent), name, configuration, self.yields, self.patience, now)
    }

    /// What it may get of its parent's share.
    pub(super) fn claim(&self, kind: TaskKind) -> Claim {
        Claim { min: self.min[kind], max: self.max[kind], weight: self.weight }
    }

    /// Whether it may hold another slot.
    pub(super) fn has_room(&self, kind: TaskKind) -> bool {
        self.held[kind].usage < self.max[kind]
    }

    /// Whether something below it could be launched in a free slot.
    pub(super) fn is_open(&self, kind: TaskKind) -> bool {
        self.has_room(kind) && !self.lines[kind].is_empty()
    }

    /// Whether it holds its minimum, or all that it wants.
    pub(super) fn has_min(&self, kind: TaskKind) -> bool {
        let Amount { usage, demand } = self.held[kind];
        usage >= self.min[kind].min(demand)
    }

    /// What its turn among its siblings goes by.
    pub(super) fn standing(&self, kind: TaskKind) -> Standing {
        let Amount { usage, demand } = self.held[kind];
        let weight = self.key_weight.map_or(TurnWeight { above: 0, below: 1 }, Weight::in_turns);
        Standing { usage, waits: usage < demand && self.has_room(kind), active: demand > 0, weight }
    }

    /// Where it stands among its siblings, being at this place of the tree.
    pub(super) fn key(&self, id: PoolId, kind: TaskKind) -> Key {
        let Amount { usage, demand } = self.held[kind];
        Key {
            usage: short(usage),
            min: short(self.min[kind]),
            demand: short(demand),
            weight: self.key_weight,
            start: (self.turn[kind].place(), self.made),
            name: id as u32,
        }
    }
}

//! One pool of the tree: configuration, inherited values, usage and demand, and the ordered sets of children
//! that can use a slot.

use std::sync::Arc;

use napreduce_engine::{ByKind, JobId, Ratio, SortedSet, TaskKind, Time};

use crate::fair::configuration::{FairConfiguration, PoolConfiguration, PoolOrder};
use crate::fair::order::{ChildStanding, Weight};
use crate::fair::shares::{Claim, UNBOUNDED};
use crate::fair::starvation::StarvationPatience;
use crate::turns::{Standing, Turn, TurnWeight, Turns};

/// Index of a pool in the tree.
pub(super) type PoolId = usize;

/// The sort key of a child that can use a slot. The name is a pool index or a job number; the children of a
/// pool are all pools or all jobs. The turn precedes the start time. In a `fifo` pool the usage is the
/// inverted priority and turns are not used.
pub(super) type Key = ChildStanding<u32, u32, (i128, Time)>;

/// Children in serving order.
pub(super) type Children = SortedSet<Key>;

/// Usage and demand of one slot kind; the demand includes the usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub usage: u64,
    pub demand: u64,
}

#[derive(Debug)]
pub(super) struct Pool {
    pub parent: Option<PoolId>,
    /// Path from the root, without the root itself.
    pub name: Arc<str>,
    pub weight: Ratio,
    key_weight: Option<Weight>,
    /// Creation time; zero for configured pools.
    created: Time,
    pub order: PoolOrder,
    pub min: ByKind<u64>,
    pub max: ByKind<u64>,
    pub preemptable: bool,
    pub patience: StarvationPatience,
    /// Maximum running jobs in this pool and below.
    pub max_running_jobs: Option<u32>,
    /// Jobs go to the pools below it.
    pub holds_pools: bool,
    /// All its jobs, with or without demand.
    pub jobs: SortedSet<JobId>,
    pub held: ByKind<Amount>,
    /// Children that can launch a task.
    pub lines: ByKind<Children>,
    /// Its key in the parent's `lines`.
    pub placed: ByKind<Option<Key>>,
    pub last_at_min: ByKind<Time>,
    /// Its turn among its siblings.
    pub turn: ByKind<Turn>,
    /// The virtual time of its children.
    pub turns: ByKind<Turns>,
}

impl Pool {
    fn new(
        parent: Option<PoolId>,
        name: Arc<str>,
        configuration: &PoolConfiguration,
        preemptable: bool,
        patience: StarvationPatience,
        now: Time,
    ) -> Pool {
        let max = |max: Option<u32>| max.map_or(UNBOUNDED, u64::from);
        let timeout = configuration.min_share_timeout;
        let min_share_timeout = timeout.map_or(patience.min_share_timeout, |timeout| timeout.0);
        let timeout = configuration.fair_share_timeout;
        let fair_share_timeout = timeout.map_or(patience.fair_share_timeout, |timeout| timeout.0);
        let threshold = configuration.fair_share_threshold;
        let fair_share_threshold = threshold.unwrap_or(patience.fair_share_threshold);
        Pool {
            parent,
            name,
            weight: configuration.weight,
            key_weight: Weight::new(configuration.weight),
            created: now,
            order: configuration.order,
            min: ByKind {
                map: configuration.min_maps.into(),
                reduce: configuration.min_reduces.into(),
            },
            max: ByKind {
                map: max(configuration.max_maps),
                reduce: max(configuration.max_reduces),
            },
            preemptable: configuration.allow_preemption_from.unwrap_or(preemptable),
            patience: StarvationPatience {
                min_share_timeout,
                fair_share_timeout,
                fair_share_threshold,
            },
            max_running_jobs: configuration.max_running_jobs,
            holds_pools: false,
            jobs: SortedSet::new(),
            held: ByKind::default(),
            lines: ByKind::default(),
            placed: ByKind::default(),
            last_at_min: ByKind {
                map: now,
                reduce: now,
            },
            turn: ByKind::default(),
            turns: ByKind::default(),
        }
    }
}

/// Narrows an amount; slot counts fit 32 bits.
pub(super) fn short(amount: u64) -> u32 {
    u32::try_from(amount).unwrap_or(u32::MAX)
}

impl Pool {
    pub(super) fn root(configuration: &FairConfiguration) -> Pool {
        Pool::new(
            None,
            Arc::from("root"),
            &configuration.root,
            true,
            configuration.patience(),
            Time(0),
        )
    }

    pub(super) fn below(
        &self,
        parent: PoolId,
        name: Arc<str>,
        configuration: &PoolConfiguration,
        now: Time,
    ) -> Pool {
        Pool::new(
            Some(parent),
            name,
            configuration,
            self.preemptable,
            self.patience,
            now,
        )
    }

    /// Its claim on the parent's share.
    pub(super) fn claim(&self, kind: TaskKind) -> Claim {
        Claim {
            min: self.min[kind],
            max: self.max[kind],
            weight: self.weight,
        }
    }

    /// Whether it is below its maximum.
    pub(super) fn has_room(&self, kind: TaskKind) -> bool {
        self.held[kind].usage < self.max[kind]
    }

    /// Whether a task below it can be launched in a free slot.
    pub(super) fn is_open(&self, kind: TaskKind) -> bool {
        self.has_room(kind) && !self.lines[kind].is_empty()
    }

    /// Whether it holds its minimum, or its demand if that is less.
    pub(super) fn has_min(&self, kind: TaskKind) -> bool {
        let Amount { usage, demand } = self.held[kind];
        usage >= self.min[kind].min(demand)
    }

    pub(super) fn standing(&self, kind: TaskKind) -> Standing {
        let Amount { usage, demand } = self.held[kind];
        let weight = self
            .key_weight
            .map_or(TurnWeight { above: 0, below: 1 }, Weight::in_turns);
        Standing {
            usage,
            waits: usage < demand && self.has_room(kind),
            active: demand > 0,
            weight,
        }
    }

    /// Returns its key among its siblings; `id` is its own index.
    pub(super) fn key(&self, id: PoolId, kind: TaskKind) -> Key {
        let Amount { usage, demand } = self.held[kind];
        Key {
            usage: short(usage),
            min: short(self.min[kind]),
            demand: short(demand),
            weight: self.key_weight,
            start: (self.turn[kind].place(), self.created),
            name: id as u32,
        }
    }
}

//! What can be chosen about Fair, as it stands in a file.
//!
//! Owns the values, the published defaults and what is allowed. Does not own the pools that follow from it
//! (`tree`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use napreduce_engine::{Primitive, Ratio, Span, fields};

use crate::access::NoAccessList;
use crate::fair::starvation::StarvationPatience;
use crate::serving::DelaySettings;

/// The pool for jobs that name no pool of their own below another.
pub(super) const DEFAULT_POOL: &str = "default";

fields! {
    /// Fair, with its tree of pools. As published, with heartbeats of 200 ms.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
    pub struct FairConfiguration {
        /// Starved jobs take slots from others.
        pub preemption: bool = false,
        pub primitive: Primitive = Primitive::Kill,
        /// Nothing is taken before more than this part of the slots of some kind is in use.
        pub utilization_gate: Ratio = Ratio::new(4, 5),
        /// How long a victim may take before it is killed.
        #[serde(with = "napreduce_engine::time::text")]
        pub kill_wait: Span = Span::from_secs(15),
        /// How long a starved job is left alone after its victims should be gone.
        #[serde(with = "napreduce_engine::time::text")]
        pub recheck_delay: Span = Span::from_secs(10),
        /// How often shares and starvation are looked at.
        #[serde(with = "napreduce_engine::time::text")]
        pub update_interval: Span = Span::from_millis(500),
        /// How often workers report; four of these pass before a starved job is looked at again.
        #[serde(with = "napreduce_engine::time::text")]
        pub heartbeat: Span = Span::from_millis(200),
        /// A job that wants more weighs more: log2(1 + what it holds or wants).
        pub size_based_weight: bool = false,
        /// The weight of a job is multiplied by its priority, if that is more than one.
        pub priority_weight: bool = false,
        /// Nobody's share exceeds what it holds or wants.
        pub cap_by_demand: bool = false,
        /// So many jobs of one user run at once, in all pools together; the others wait.
        pub user_max_running_jobs: Option<u32>,
        /// Which pool a job goes to.
        pub placement: Placement = Placement::Queue,
        /// What becomes of a job whose pool is not in the tree.
        pub unknown_pools: UnknownPools = UnknownPools::Create,
        /// How long jobs wait for a slot near their data.
        pub delay: DelaySettings,
        /// All pools, and what they inherit.
        pub root: PoolConfiguration,
    }
}

/// Which pool a job goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// The one that its queue names: `research.ada` is pool `ada` below `research`.
    Queue,
    User,
}

/// What becomes of a job whose pool is not in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnknownPools {
    /// The pool is made, with defaults.
    Create,
    /// The job goes to the pool `default`.
    Default,
    /// The job is not to be accepted; one that was all the same goes to the pool `default`.
    Refuse,
}

/// The order in which the jobs of a pool are served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PoolOrder {
    /// Each gets its part.
    #[default]
    Fair,
    /// One after the other, by priority and submission.
    Fifo,
}

/// A time that may never come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timeout(#[serde(with = "napreduce_engine::time::text_or_never")] pub Option<Span>);

fields! {
    /// A pool. The four values about preemption come from the pool above when they are not given.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
    pub struct PoolConfiguration {
        /// Its part in relation to its siblings'.
        pub weight: Ratio = Ratio::ONE,
        /// Map slots it gets before others get more.
        pub min_maps: u32 = 0,
        /// Reduce slots it gets before others get more.
        pub min_reduces: u32 = 0,
        /// Map slots it never exceeds.
        pub max_maps: Option<u32>,
        /// Reduce slots it never exceeds.
        pub max_reduces: Option<u32>,
        /// So many jobs of it and of the pools below it run at once; the others wait.
        pub max_running_jobs: Option<u32>,
        /// In which order its jobs are served.
        pub order: PoolOrder = PoolOrder::Fair,
        /// Whether others may take slots from its jobs; true above all.
        pub allow_preemption_from: Option<bool>,
        /// How long it may be below its minimum before it takes slots; never above all.
        pub min_share_timeout: Option<Timeout>,
        /// How long a job may be below its part of its share before it takes slots; never above all.
        pub fair_share_timeout: Option<Timeout>,
        /// That part; 0.5 above all.
        pub fair_share_threshold: Option<Ratio>,
        /// Who may submit to it; refused.
        #[serde(default, skip_serializing)]
        #[serde(alias = "aclSubmitApps", alias = "acl-submit-jobs", alias = "acl_submit_apps")]
        pub acl_submit_apps: NoAccessList,
        /// Who may kill its jobs; refused.
        #[serde(default, skip_serializing)]
        #[serde(alias = "aclAdministerApps", alias = "acl-administer-jobs", alias = "acl_administer_apps")]
        pub acl_administer_apps: NoAccessList,
        /// The pools below it.
        pub pools: BTreeMap<String, PoolConfiguration>,
    }
}

/// What is not allowed in a configuration of Fair.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FairConfigurationError {
    /// A weight below nothing.
    #[error("pool {pool} has weight {weight}; give 0 or more")]
    Weight { pool: String, weight: Ratio },
    #[error("pool {pool} has min-{what} {min} and max-{what} {max}; the minimum may not exceed the maximum")]
    MinAboveMax {
        pool: String,
        /// Maps or reduces.
        what: &'static str,
        min: u32,
        max: u32,
    },
    /// A threshold that is no part of a share.
    #[error("pool {pool} has fair-share-threshold {threshold}; give 0 to 1")]
    Threshold { pool: String, threshold: Ratio },
    /// Its jobs would wait for ever.
    #[error("{0} is 0, so that no job would ever run; give 1 or more, or leave it out")]
    NoRunningJobs(String),
    /// Pools in turn.
    #[error("pool {0} has order fifo but holds pools, not jobs; give fifo to the pools that hold the jobs")]
    FifoOfPools(String),
    #[error(
        "the root has a weight, a minimum or a maximum; it is the whole cluster, so give them to pools below it"
    )]
    RootShare,
    /// A name that cannot be told from a path.
    #[error("{0:?} is no name of a pool; give one without dots, not empty and not root")]
    Name(String),
    /// A gate below nothing.
    #[error("utilization-gate is {0}; give 0 or more (at 1 and above nothing is ever taken)")]
    Gate(Ratio),
    /// Updates without end.
    #[error("update-interval is 0; give a span such as 500ms")]
    Interval,
    /// A job of a pool that is not in the tree.
    #[error(
        "there is no pool {0}; submit to one that is configured, or set unknown-pools to create or default"
    )]
    UnknownPool(String),
}

impl FairConfiguration {
    /// When pools preempt for which nothing else is said.
    pub fn patience(&self) -> StarvationPatience {
        let fair_share_threshold = self.root.fair_share_threshold.unwrap_or(Ratio::new(1, 2));
        let never = Timeout(None);
        let min_share_timeout = self.root.min_share_timeout.unwrap_or(never).0;
        let fair_share_timeout = self.root.fair_share_timeout.unwrap_or(never).0;
        StarvationPatience { min_share_timeout, fair_share_timeout, fair_share_threshold }
    }

    /// Whether a policy can be built of it.
    ///
    /// # Errors
    /// Names the value and what is allowed.
    pub fn check(&self) -> Result<(), FairConfigurationError> {
        if self.utilization_gate < Ratio::ZERO {
            return Err(FairConfigurationError::Gate(self.utilization_gate));
        }
        if self.update_interval == Span(0) {
            return Err(FairConfigurationError::Interval);
        }
        if self.user_max_running_jobs == Some(0) {
            return Err(FairConfigurationError::NoRunningJobs("user-max-running-jobs".to_owned()));
        }
        let plain = PoolConfiguration::default();
        let share = |pool: &PoolConfiguration| {
            (pool.weight, pool.min_maps, pool.min_reduces, pool.max_maps, pool.max_reduces)
        };
        if share(&self.root) != share(&plain) {
            return Err(FairConfigurationError::RootShare);
        }
        self.root.check("root")
    }
}

impl PoolConfiguration {
    /// Whether jobs are served one after the other in it or in a pool below.
    pub(super) fn has_fifo(&self) -> bool {
        self.order == PoolOrder::Fifo || self.pools.values().any(PoolConfiguration::has_fifo)
    }

    fn check(&self, pool: &str) -> Result<(), FairConfigurationError> {
        let name = || pool.to_owned();
        if self.weight < Ratio::ZERO {
            return Err(FairConfigurationError::Weight { pool: name(), weight: self.weight });
        }
        let both = [("maps", self.min_maps, self.max_maps), ("reduces", self.min_reduces, self.max_reduces)];
        for (what, min, max) in both {
            if let Some(max) = max.filter(|max| *max < min) {
                return Err(FairConfigurationError::MinAboveMax { pool: name(), what, min, max });
            }
        }
        if self.max_running_jobs == Some(0) {
            return Err(FairConfigurationError::NoRunningJobs(format!("max-running-jobs of pool {pool}")));
        }
        let part = |threshold: &Ratio| *threshold < Ratio::ZERO || *threshold > Ratio::ONE;
        if let Some(threshold) = self.fair_share_threshold.filter(part) {
            return Err(FairConfigurationError::Threshold { pool: name(), threshold });
        }
        if self.order == PoolOrder::Fifo && (pool == "root" || !self.pools.is_empty()) {
            return Err(FairConfigurationError::FifoOfPools(name()));
        }
        for (below, configuration) in &self.pools {
            if below.is_empty() || below.contains('.') || below == "root" {
                return Err(FairConfigurationError::Name(below.clone()));
            }
            configuration.check(&format!("{pool}.{below}"))?;
        }
        Ok(())
    }
}

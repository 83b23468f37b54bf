//! Configuration of Fair: values, published defaults and validation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use napreduce_engine::{Primitive, Ratio, Span};

use crate::fair::starvation::StarvationPatience;
use crate::serving::DelaySettings;
use crate::tables::NoAccessList;

/// The pool for jobs that name no pool, or a pool that holds pools.
pub(super) const DEFAULT_POOL: &str = "default";

/// Fair and its tree of pools. Published values, with a heartbeat of 200 ms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct FairConfiguration {
    /// Starved jobs preempt tasks of other jobs.
    pub preemption: bool,
    pub primitive: Primitive,
    /// Preemption starts when more than this fraction of the slots of either kind is in use.
    pub utilization_gate: Ratio,
    /// Grace period of a victim before it is killed.
    #[serde(with = "napreduce_engine::time::text")]
    pub kill_wait: Span,
    /// Pause before a starved job is checked again, after its victims should have ended.
    #[serde(with = "napreduce_engine::time::text")]
    pub recheck_delay: Span,
    /// Interval between updates of shares and starvation.
    #[serde(with = "napreduce_engine::time::text")]
    pub update_interval: Span,
    /// Report interval of workers; a starved job is checked again after four of them at the earliest.
    #[serde(with = "napreduce_engine::time::text")]
    pub heartbeat: Span,
    /// Scales the weight of a job by log2(1 + demand).
    pub size_based_weight: bool,
    /// Multiplies the weight of a job by its priority, if that is above 1.
    pub priority_weight: bool,
    /// Caps every share at the demand.
    pub cap_by_demand: bool,
    /// Maximum running jobs per user, over all pools; further jobs wait.
    pub user_max_running_jobs: Option<u32>,
    pub placement: Placement,
    pub unknown_pools: UnknownPools,
    pub delay: DelaySettings,
    /// The root pool: the whole cluster, and defaults for the pools below.
    pub root: PoolConfiguration,
}

impl Default for FairConfiguration {
    fn default() -> FairConfiguration {
        FairConfiguration {
            preemption: false,
            primitive: Primitive::Kill,
            utilization_gate: Ratio::new(4, 5),
            kill_wait: Span::from_secs(15),
            recheck_delay: Span::from_secs(10),
            update_interval: Span::from_millis(500),
            heartbeat: Span::from_millis(200),
            size_based_weight: false,
            priority_weight: false,
            cap_by_demand: false,
            user_max_running_jobs: None,
            placement: Placement::Queue,
            unknown_pools: UnknownPools::Create,
            delay: DelaySettings::default(),
            root: PoolConfiguration::default(),
        }
    }
}

/// The pool to which a job is assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// The pool named by the job's queue: `research.ada` is pool `ada` below `research`.
    Queue,
    User,
}

/// The handling of a job whose pool is not configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnknownPools {
    /// The pool is created with defaults.
    Create,
    /// The job runs in the pool `default`.
    Default,
    /// The job is rejected. A job accepted before that runs in the pool `default`.
    Refuse,
}

/// The order in which a pool serves its jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PoolOrder {
    /// By fair share.
    #[default]
    Fair,
    /// By priority, then submission.
    Fifo,
}

/// A timeout that can be `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timeout(#[serde(with = "napreduce_engine::time::text_or_never")] pub Option<Span>);

/// A pool. Unset preemption values are inherited from its parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct PoolConfiguration {
    /// Weight relative to its siblings.
    pub weight: Ratio,
    /// Minimum share of map slots.
    pub min_maps: u32,
    /// Minimum share of reduce slots.
    pub min_reduces: u32,
    pub max_maps: Option<u32>,
    pub max_reduces: Option<u32>,
    /// Maximum running jobs in this pool and below; further jobs wait.
    pub max_running_jobs: Option<u32>,
    pub order: PoolOrder,
    /// Whether jobs of other pools may preempt its tasks. Default at the root: true.
    pub allow_preemption_from: Option<bool>,
    /// Time below the minimum share until the pool preempts. Default at the root: never.
    pub min_share_timeout: Option<Timeout>,
    /// Time below the threshold of its fair share until a job preempts. Default at the root: never.
    pub fair_share_timeout: Option<Timeout>,
    /// Fraction of the fair share below which a job starves. Default at the root: 0.5.
    pub fair_share_threshold: Option<Ratio>,
    /// Not supported; rejected when set.
    #[serde(default, skip_serializing)]
    #[serde(
        alias = "aclSubmitApps",
        alias = "acl-submit-jobs",
        alias = "acl_submit_apps"
    )]
    pub acl_submit_apps: NoAccessList,
    /// Not supported; rejected when set.
    #[serde(default, skip_serializing)]
    #[serde(
        alias = "aclAdministerApps",
        alias = "acl-administer-jobs",
        alias = "acl_administer_apps"
    )]
    pub acl_administer_apps: NoAccessList,
    /// Child pools.
    pub pools: BTreeMap<String, PoolConfiguration>,
}

impl Default for PoolConfiguration {
    fn default() -> PoolConfiguration {
        PoolConfiguration {
            weight: Ratio::ONE,
            min_maps: 0,
            min_reduces: 0,
            max_maps: None,
            max_reduces: None,
            max_running_jobs: None,
            order: PoolOrder::Fair,
            allow_preemption_from: None,
            min_share_timeout: None,
            fair_share_timeout: None,
            fair_share_threshold: None,
            acl_submit_apps: NoAccessList,
            acl_administer_apps: NoAccessList,
            pools: BTreeMap::new(),
        }
    }
}

/// An invalid value in a configuration of Fair.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FairConfigurationError {
    #[error("pool {pool}: weight {weight} is negative; give 0 or more")]
    Weight { pool: String, weight: Ratio },
    #[error("pool {pool}: min-{what} {min} exceeds max-{what} {max}; lower the minimum")]
    MinAboveMax {
        pool: String,
        /// `maps` or `reduces`.
        what: &'static str,
        min: u32,
        max: u32,
    },
    #[error("pool {pool}: invalid fair-share-threshold {threshold}; give 0 to 1")]
    Threshold { pool: String, threshold: Ratio },
    #[error("{0} is 0, so no job could run; give 1 or more, or remove it")]
    NoRunningJobs(String),
    #[error(
        "pool {0}: order fifo requires a pool of jobs, but it holds pools; set fifo on its child pools"
    )]
    FifoOfPools(String),
    #[error(
        "pool root: weight, minimum and maximum do not apply to the whole cluster; set them on child pools"
    )]
    RootShare,
    #[error("invalid pool name {0:?}: it must not be empty, contain dots or be root")]
    Name(String),
    #[error("utilization-gate {0} is negative; give 0 or more (1 or more disables preemption)")]
    Gate(Ratio),
    #[error("update-interval must be positive; give a span such as 500ms")]
    Interval,
    /// A job names an unknown pool and `unknown-pools` is `refuse`.
    #[error(
        "there is no pool {0}; submit to a configured pool, or set unknown-pools to create or default"
    )]
    UnknownPool(String),
}

impl FairConfiguration {
    /// Returns the preemption timeouts of the root, which other pools inherit.
    pub fn patience(&self) -> StarvationPatience {
        let fair_share_threshold = self.root.fair_share_threshold.unwrap_or(Ratio::new(1, 2));
        let never = Timeout(None);
        let min_share_timeout = self.root.min_share_timeout.unwrap_or(never).0;
        let fair_share_timeout = self.root.fair_share_timeout.unwrap_or(never).0;
        StarvationPatience {
            min_share_timeout,
            fair_share_timeout,
            fair_share_threshold,
        }
    }

    /// Validates the configuration.
    ///
    /// # Errors
    /// Fails if a value is invalid; names the value and the allowed range.
    pub fn check(&self) -> Result<(), FairConfigurationError> {
        if self.utilization_gate < Ratio::ZERO {
            return Err(FairConfigurationError::Gate(self.utilization_gate));
        }
        if self.update_interval == Span(0) {
            return Err(FairConfigurationError::Interval);
        }
        if self.user_max_running_jobs == Some(0) {
            return Err(FairConfigurationError::NoRunningJobs(
                "user-max-running-jobs".to_owned(),
            ));
        }
        let plain = PoolConfiguration::default();
        let share = |pool: &PoolConfiguration| {
            (
                pool.weight,
                pool.min_maps,
                pool.min_reduces,
                pool.max_maps,
                pool.max_reduces,
            )
        };
        if share(&self.root) != share(&plain) {
            return Err(FairConfigurationError::RootShare);
        }
        self.root.check("root")
    }
}

impl PoolConfiguration {
    /// Whether this pool or one below it serves jobs in FIFO order.
    pub(super) fn has_fifo(&self) -> bool {
        self.order == PoolOrder::Fifo || self.pools.values().any(PoolConfiguration::has_fifo)
    }

    fn check(&self, pool: &str) -> Result<(), FairConfigurationError> {
        let name = || pool.to_owned();
        if self.weight < Ratio::ZERO {
            return Err(FairConfigurationError::Weight {
                pool: name(),
                weight: self.weight,
            });
        }
        let both = [
            ("maps", self.min_maps, self.max_maps),
            ("reduces", self.min_reduces, self.max_reduces),
        ];
        for (what, min, max) in both {
            if let Some(max) = max.filter(|max| *max < min) {
                return Err(FairConfigurationError::MinAboveMax {
                    pool: name(),
                    what,
                    min,
                    max,
                });
            }
        }
        if self.max_running_jobs == Some(0) {
            return Err(FairConfigurationError::NoRunningJobs(format!(
                "max-running-jobs of pool {pool}"
            )));
        }
        let part = |threshold: &Ratio| *threshold < Ratio::ZERO || *threshold > Ratio::ONE;
        if let Some(threshold) = self.fair_share_threshold.filter(part) {
            return Err(FairConfigurationError::Threshold {
                pool: name(),
                threshold,
            });
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

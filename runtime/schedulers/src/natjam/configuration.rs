//! Configuration of Natjam and Natjam-R: values, published defaults and validation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use napreduce_engine::{ClusterView, JobSpec, Primitive, QueueShare, Span, TaskEviction, TaskKind};

use crate::natjam::admission::DeadlineAdmission;
use crate::natjam::eviction::JobEviction;
use crate::natjam::reclaim::ReclaimLimits;
use crate::natjam::urgency::{DeadlineEviction, DeadlineSelection, MixedPair, UrgencyKey};
use crate::serving::DelaySettings;

/// Natjam: production and research jobs. Published values: MR, SRT, checkpoint, reduces only, interval 1
/// s, timeouts 12 s and 2 s.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct NatjamConfiguration {
    /// Queues of production jobs, including those below them (`production.reports`). All other jobs are
    /// research.
    pub production: Vec<String>,
    /// The research job that loses the next slot.
    pub job_eviction: JobEviction,
    /// The attempt of that job.
    pub task_eviction: TaskEviction,
    pub primitive: Primitive,
    /// Whether map slots are preempted too.
    pub preempt_maps: bool,
    /// Interval of the preemptor.
    #[serde(with = "napreduce_engine::time::text")]
    pub preemptor_interval: Span,
    /// Grace period of a victim before it is killed.
    #[serde(with = "napreduce_engine::time::text")]
    pub kill_timeout: Span,
    /// Time for which an expired request still counts.
    #[serde(with = "napreduce_engine::time::text")]
    pub expired_time: Span,
    pub delay: DelaySettings,
    /// Seed of the random choices.
    pub seed: u64,
}

impl Default for NatjamConfiguration {
    fn default() -> NatjamConfiguration {
        NatjamConfiguration {
            production: vec!["production".to_owned()],
            job_eviction: JobEviction::MostResources,
            task_eviction: TaskEviction::ShortestRemaining,
            primitive: Primitive::Checkpoint,
            preempt_maps: false,
            preemptor_interval: Span::from_secs(1),
            kill_timeout: Span::from_secs(12),
            expired_time: Span::from_secs(2),
            delay: DelaySettings::default(),
            seed: 0,
        }
    }
}

/// Natjam-R: one queue by deadline. Published values: MDF with EDF, SRT, checkpoint, reduces only, one
/// slot per second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct NatjamRConfiguration {
    /// The job that loses a slot.
    pub eviction: DeadlineEviction,
    /// The job that is served first; by default the selection that matches the eviction.
    pub selection: Option<DeadlineSelection>,
    /// The attempt that loses the slot.
    pub task_eviction: TaskEviction,
    pub primitive: Primitive,
    /// Whether map slots are preempted too.
    pub preempt_maps: bool,
    /// Interval of the preemptor and of laxity updates.
    #[serde(with = "napreduce_engine::time::text")]
    pub interval: Span,
    /// Slots preempted per run.
    pub per_run: u32,
    /// Minimum difference in laxity between victim and claimant.
    #[serde(with = "napreduce_engine::time::text")]
    pub laxity_margin: Span,
    /// Grace period of a victim before it is killed.
    #[serde(with = "napreduce_engine::time::text_or_never")]
    pub kill_timeout: Option<Span>,
    /// The handling of jobs that may miss their deadline.
    pub admission: DeadlineAdmission,
    pub delay: DelaySettings,
}

impl Default for NatjamRConfiguration {
    fn default() -> NatjamRConfiguration {
        NatjamRConfiguration {
            eviction: DeadlineEviction::MaximumDeadlineFirst,
            selection: None,
            task_eviction: TaskEviction::ShortestRemaining,
            primitive: Primitive::Checkpoint,
            preempt_maps: false,
            interval: Span::from_secs(1),
            per_run: 1,
            laxity_margin: Span(0),
            kill_timeout: Some(Span::from_secs(12)),
            admission: DeadlineAdmission::Off,
            delay: DelaySettings::default(),
        }
    }
}

/// An invalid configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NatjamConfigurationError {
    #[error("{0} must be positive; give a span such as 1s")]
    Interval(&'static str),
    #[error("production must name at least one queue")]
    NoProduction,
    #[error(
        "production: invalid queue name {0:?}; give a name without empty parts, such as production.reports"
    )]
    Queue(String),
    #[error("per-run must be positive; use another policy to disable preemption")]
    PerRun,
    #[error(
        "laxity-margin {0} requires eviction maximum-laxity-first; change the eviction or remove the margin"
    )]
    Margin(Span),
    #[error(transparent)]
    Pair(#[from] MixedPair),
}

impl NatjamConfiguration {
    /// Validates the values.
    ///
    /// # Errors
    /// Fails if a value is invalid; names the value and the allowed range.
    pub fn check(&self) -> Result<(), NatjamConfigurationError> {
        if self.preemptor_interval == Span(0) {
            return Err(NatjamConfigurationError::Interval("preemptor-interval"));
        }
        if self.production.is_empty() {
            return Err(NatjamConfigurationError::NoProduction);
        }
        match self
            .production
            .iter()
            .find(|queue| queue.split('.').any(str::is_empty))
        {
            Some(queue) => Err(NatjamConfigurationError::Queue(queue.clone())),
            None => Ok(()),
        }
    }

    /// Whether a job runs in a production queue.
    pub fn is_production(&self, spec: &JobSpec) -> bool {
        let below = |queue: &String| spec.queue.strip_prefix(queue.as_str());
        self.production
            .iter()
            .filter_map(below)
            .any(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// Lists the production queues and those of current jobs.
    pub(super) fn listed_queues(&self, view: &ClusterView<'_>) -> Vec<QueueShare> {
        let mut queues = BTreeMap::new();
        let share = |name: &str, is_production: bool| QueueShare {
            name: name.to_owned(),
            remark: Some(
                if is_production {
                    "production: served first"
                } else {
                    "research: preemptable"
                }
                .to_owned(),
            ),
            ..QueueShare::default()
        };
        for name in &self.production {
            queues.insert(name.as_str(), share(name, true));
        }
        for job in view.jobs() {
            let queue = job.spec().queue.as_str();
            let listed = queues
                .entry(queue)
                .or_insert_with(|| share(queue, self.is_production(job.spec())));
            listed.jobs.push(job.id());
        }
        queues.into_values().collect()
    }

    pub(super) fn limits(&self) -> ReclaimLimits {
        let NatjamConfiguration {
            kill_timeout,
            expired_time,
            preemptor_interval,
            ..
        } = *self;
        ReclaimLimits {
            kill_timeout,
            expired_time,
            interval: preemptor_interval,
        }
    }

    /// Returns the grace period of a victim; `None` if it is killed immediately.
    pub(super) fn grace(&self) -> Option<Span> {
        (self.primitive != Primitive::Kill).then(|| self.limits().grace())
    }

    pub(super) fn preempts(&self, kind: TaskKind) -> bool {
        self.preempt_maps || kind == TaskKind::Reduce
    }
}

impl NatjamRConfiguration {
    /// Validates the values and returns the sort key of the queue.
    ///
    /// # Errors
    /// Fails if a value is invalid; names the value and the allowed range.
    pub fn check(&self) -> Result<UrgencyKey, NatjamConfigurationError> {
        if self.interval == Span(0) {
            return Err(NatjamConfigurationError::Interval("interval"));
        }
        if self.per_run == 0 {
            return Err(NatjamConfigurationError::PerRun);
        }
        let selection = self.selection.unwrap_or(self.eviction.selection());
        let key = self.eviction.paired_with(selection)?;
        if key == UrgencyKey::Deadline && self.laxity_margin > Span(0) {
            return Err(NatjamConfigurationError::Margin(self.laxity_margin));
        }
        Ok(key)
    }

    /// Returns the grace period of a victim; `None` if it is killed immediately.
    pub(super) fn grace(&self) -> Option<Span> {
        self.kill_timeout
            .filter(|_| self.primitive != Primitive::Kill)
    }

    pub(super) fn preempts(&self, kind: TaskKind) -> bool {
        self.preempt_maps || kind == TaskKind::Reduce
    }
}

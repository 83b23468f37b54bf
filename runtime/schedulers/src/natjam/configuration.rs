//! What can be chosen about Natjam and Natjam-R, as it stands in a file.
//!
//! Owns the values, the published defaults and what is allowed. Does not own what follows from them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use napreduce_engine::{ClusterView, JobSpec, Primitive, QueueShare, Span, TaskEviction, TaskKind, fields};

use crate::natjam::admission::DeadlineAdmission;
use crate::natjam::eviction::JobEviction;
use crate::natjam::reclaim::ReclaimLimits;
use crate::natjam::urgency::{DeadlineEviction, DeadlineSelection, MixedPair, UrgencyKey};
use crate::serving::DelaySettings;

fields! {
    /// Natjam: two classes of jobs. As published: MR, SRT, checkpoints, reduces only, every second, 12 s and
    /// 2 s.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
    pub struct NatjamConfiguration {
        /// The queues of production jobs, with those below them (`production.reports`); all other jobs are
        /// research.
        pub production: Vec<String> = vec!["production".to_owned()],
        /// Which research job gives the next slot.
        pub job_eviction: JobEviction = JobEviction::MostResources,
        /// Which of its attempts.
        pub task_eviction: TaskEviction = TaskEviction::ShortestRemaining,
        pub primitive: Primitive = Primitive::Checkpoint,
        /// Whether map slots are taken, too, not only reduce slots.
        pub preempt_maps: bool = false,
        /// How often production jobs ask for slots.
        #[serde(with = "napreduce_engine::time::text")]
        pub preemptor_interval: Span = Span::from_secs(1),
        /// An attempt that was asked longer ago than this is killed.
        #[serde(with = "napreduce_engine::time::text")]
        pub kill_timeout: Span = Span::from_secs(12),
        /// How long a request counts after that.
        #[serde(with = "napreduce_engine::time::text")]
        pub expired_time: Span = Span::from_secs(2),
        /// How long jobs wait for a slot near their data.
        pub delay: DelaySettings,
        /// Where the random choices start.
        pub seed: u64 = 0,
    }
}

fields! {
    /// Natjam-R: one queue by deadline. As published: MDF with EDF, SRT, checkpoints, reduces only, one slot
    /// every second.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
    pub struct NatjamRConfiguration {
        /// Which job gives a slot.
        pub eviction: DeadlineEviction = DeadlineEviction::MaximumDeadlineFirst,
        /// Which job is served first; what goes with the eviction, when it is not given.
        pub selection: Option<DeadlineSelection>,
        /// Which of its attempts gives the slot.
        pub task_eviction: TaskEviction = TaskEviction::ShortestRemaining,
        pub primitive: Primitive = Primitive::Checkpoint,
        /// Whether map slots are taken, too, not only reduce slots.
        pub preempt_maps: bool = false,
        /// How often slots are taken, and laxities found anew.
        #[serde(with = "napreduce_engine::time::text")]
        pub interval: Span = Span::from_secs(1),
        /// How many slots are taken at a time.
        pub per_run: u32 = 1,
        /// How much more laxity than the claimant a job must have to give way.
        #[serde(with = "napreduce_engine::time::text")]
        pub laxity_margin: Span = Span(0),
        /// An attempt that was asked so long ago is killed.
        #[serde(with = "napreduce_engine::time::text_or_never")]
        pub kill_timeout: Option<Span> = Some(Span::from_secs(12)),
        /// What becomes of a job that may not be done by its deadline.
        pub admission: DeadlineAdmission = DeadlineAdmission::Off,
        /// How long jobs wait for a slot near their data.
        pub delay: DelaySettings,
    }
}

/// What is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NatjamConfigurationError {
    /// Runs without end.
    #[error("{0} is 0; give a span such as 1s")]
    Interval(&'static str),
    /// Nothing would ever be production.
    #[error("production names no queue; name those whose jobs go before all others")]
    NoProduction,
    /// A queue without a name.
    #[error(
        "production names the queue {0:?}; give names without empty parts, such as production or production.reports"
    )]
    Queue(String),
    /// Runs that take nothing.
    #[error("per-run is 0; give 1 or more, or use a policy that takes nothing")]
    PerRun,
    /// A margin of what is not looked at.
    #[error(
        "laxity-margin is {0} with eviction by deadline; give it with maximum-laxity-first, or leave it out"
    )]
    Margin(Span),
    /// Two choices that swap jobs for ever.
    #[error(transparent)]
    Pair(#[from] MixedPair),
}

impl NatjamConfiguration {
    /// Whether a policy can be built of it.
    ///
    /// # Errors
    /// Names the value and what is allowed.
    pub fn check(&self) -> Result<(), NatjamConfigurationError> {
        if self.preemptor_interval == Span(0) {
            return Err(NatjamConfigurationError::Interval("preemptor-interval"));
        }
        if self.production.is_empty() {
            return Err(NatjamConfigurationError::NoProduction);
        }
        match self.production.iter().find(|queue| queue.split('.').any(str::is_empty)) {
            Some(queue) => Err(NatjamConfigurationError::Queue(queue.clone())),
            None => Ok(()),
        }
    }

    /// Whether a job is a production job.
    pub fn is_production(&self, spec: &JobSpec) -> bool {
        let below = |queue: &String| spec.queue.strip_prefix(queue.as_str());
        self.production.iter().filter_map(below).any(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// The queues of production, and those of the jobs that are there.
    pub(super) fn listed_queues(&self, view: &ClusterView<'_>) -> Vec<QueueShare> {
        let mut queues = BTreeMap::new();
        let share = |name: &str, is_production: bool| QueueShare {
            name: name.to_owned(),
            remark: Some(
                if is_production { "production: goes first" } else { "research: gives way" }.to_owned(),
            ),
            ..QueueShare::default()
        };
        for name in &self.production {
            queues.insert(name.as_str(), share(name, true));
        }
        for job in view.jobs() {
            let queue = job.spec().queue.as_str();
            let listed = queues.entry(queue).or_insert_with(|| share(queue, self.is_production(job.spec())));
            listed.jobs.push(job.id());
        }
        queues.into_values().collect()
    }

    pub(super) fn limits(&self) -> ReclaimLimits {
        let NatjamConfiguration { kill_timeout, expired_time, preemptor_interval, .. } = *self;
        ReclaimLimits { kill_timeout, expired_time, interval: preemptor_interval }
    }

    /// How long a victim may take; one that is to be killed is killed at once.
    pub(super) fn grace(&self) -> Option<Span> {
        (self.primitive != Primitive::Kill).then(|| self.limits().grace())
    }

    pub(super) fn takes(&self, kind: TaskKind) -> bool {
        self.preempt_maps || kind == TaskKind::Reduce
    }
}

impl NatjamRConfiguration {
    /// What the queue is ordered by.
    ///
    /// # Errors
    /// Names the value and what is allowed.
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

    /// How long a victim may take; one that is to be killed is killed at once.
    pub(super) fn grace(&self) -> Option<Span> {
        self.kill_timeout.filter(|_| self.primitive != Primitive::Kill)
    }

    pub(super) fn takes(&self, kind: TaskKind) -> bool {
        self.preempt_maps || kind == TaskKind::Reduce
    }
}

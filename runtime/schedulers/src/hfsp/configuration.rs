//! Configuration of HFSP: values, published defaults and validation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use napreduce_engine::{Primitive, Ratio, Span, TaskKind};

use crate::hfsp::ranking::RankingOrder;
use crate::hfsp::shares::WEIGHT_MAX;
use crate::hfsp::size::Confidence;
use crate::hfsp::size_error::{InvalidSizeError, SizeError};
use crate::serving::DelaySettings;

/// The order of late jobs: those that finished in the virtual cluster but not in the real one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LateOrder {
    /// One after another, in order of virtual finish.
    #[default]
    Fifo,
    /// Concurrently, with equal numbers of slots.
    Share,
}

/// Task times known in advance, for simulations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct KnownTimes {
    /// Times of the maps: one for all, or one per map. If empty, they are measured.
    pub map: Vec<KnownTime>,
    pub reduce: Vec<KnownTime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KnownTime(#[serde(with = "napreduce_engine::time::text")] pub Span);

/// Configuration of HFSP, with the paper's values as defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct HfspConfiguration {
    pub order: RankingOrder,
    pub late: LateOrder,
    /// Maps sampled per job.
    pub sample_maps: u32,
    /// Reduces sampled per job.
    pub sample_reduces: u32,
    /// Run time of a sampled reduce before its total time is estimated.
    #[serde(with = "napreduce_engine::time::text")]
    pub delta: Span,
    /// Weight of the initial estimate, which comes from other jobs.
    pub confidence: Confidence,
    /// Assumed task time until a task of any job has finished.
    #[serde(with = "napreduce_engine::time::text")]
    pub assumed_task_time: Span,
    /// Number of recently finished tasks in the initial estimate.
    pub recent_tasks: u32,
    /// Maximum map slots for samples; unlimited by default.
    pub training_maps_max: Option<u32>,
    /// Maximum reduce slots for samples; unlimited by default.
    pub training_reduces_max: Option<u32>,
    /// The preemption primitive; `wait` disables preemption.
    pub primitive: Primitive,
    /// Grace period of a victim before it is killed.
    #[serde(with = "napreduce_engine::time::text_or_never")]
    pub grace: Option<Span>,
    /// Suspended tasks on a worker at which suspending stops there; twice its slots by default.
    pub suspended_high: Option<u32>,
    /// Suspended tasks at which suspending starts again; the worker's slots by default.
    pub suspended_low: Option<u32>,
    /// As `suspended-high`, over all workers; unlimited by default.
    pub cluster_suspended_high: Option<u32>,
    /// As `suspended-low`, over all workers; half of `cluster-suspended-high` by default.
    pub cluster_suspended_low: Option<u32>,
    /// Maximum interval between updates of an order that changes with time.
    #[serde(with = "napreduce_engine::time::text")]
    pub update_interval: Span,
    pub delay: DelaySettings,
    /// Share of virtual slots relative to other jobs, by queue; 1 by default.
    pub weights: BTreeMap<String, u32>,
    /// Artificial error on measured and known sizes.
    pub size_error: SizeError,
    /// Seed of these errors.
    pub seed: u64,
    /// Task times by job name; these jobs need no sample.
    pub known_times: BTreeMap<String, KnownTimes>,
}

impl Default for HfspConfiguration {
    fn default() -> HfspConfiguration {
        HfspConfiguration {
            order: RankingOrder::ProjectedFinish,
            late: LateOrder::Fifo,
            sample_maps: 5,
            sample_reduces: 5,
            delta: Span::from_secs(60),
            confidence: Confidence::Factor(Ratio::ONE),
            assumed_task_time: Span::from_secs(60),
            recent_tasks: 100,
            training_maps_max: None,
            training_reduces_max: None,
            primitive: Primitive::Suspend,
            grace: None,
            suspended_high: None,
            suspended_low: None,
            cluster_suspended_high: None,
            cluster_suspended_low: None,
            update_interval: Span::from_secs(5),
            delay: DelaySettings {
                declines: 40,
                ..DelaySettings::default()
            },
            weights: BTreeMap::new(),
            size_error: SizeError::None,
            seed: 0,
            known_times: BTreeMap::new(),
        }
    }
}

/// An invalid configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HfspError {
    #[error("{0} must be positive: a sample needs at least 1 task")]
    NoSample(&'static str),
    #[error("{0} must be positive; give a span such as 60s")]
    NoSpan(&'static str),
    #[error("recent-tasks must be positive: the mean needs at least 1 task")]
    NoRecentTasks,
    #[error("{what}-low {low} must be below {what}-high {high}")]
    Thresholds {
        /// The prefix of both names.
        what: &'static str,
        low: u32,
        high: u32,
    },
    #[error("queue {queue}: invalid weight {weight}; give 1 to {WEIGHT_MAX}")]
    Weight { queue: String, weight: u32 },
    #[error("size-error: {0}")]
    SizeError(#[from] InvalidSizeError),
}

impl HfspConfiguration {
    /// Validates the values.
    ///
    /// # Errors
    /// Fails if a value is out of range; names the value and the range.
    pub fn check(&self) -> Result<(), HfspError> {
        for (name, count) in [
            ("sample-maps", self.sample_maps),
            ("sample-reduces", self.sample_reduces),
        ] {
            if count == 0 {
                return Err(HfspError::NoSample(name));
            }
        }
        let spans = [
            ("delta", self.delta),
            ("assumed-task-time", self.assumed_task_time),
            ("update-interval", self.update_interval),
        ];
        if let Some((name, _)) = spans.into_iter().find(|(_, span)| span.0 == 0) {
            return Err(HfspError::NoSpan(name));
        }
        if self.recent_tasks == 0 {
            return Err(HfspError::NoRecentTasks);
        }
        let marks = [
            ("suspended", self.suspended_low, self.suspended_high),
            (
                "cluster-suspended",
                self.cluster_suspended_low,
                self.cluster_suspended_high,
            ),
        ];
        for (what, low, high) in marks {
            if let (Some(low), Some(high)) = (low, high)
                && low >= high
            {
                return Err(HfspError::Thresholds { what, low, high });
            }
        }
        let too_heavy = |(_, weight): &(&String, &u32)| **weight == 0 || **weight > WEIGHT_MAX;
        if let Some((queue, &weight)) = self.weights.iter().find(too_heavy) {
            return Err(HfspError::Weight {
                queue: queue.clone(),
                weight,
            });
        }
        Ok(self.size_error.check()?)
    }

    /// Returns the sample size for a task kind.
    pub fn sample(&self, kind: TaskKind) -> u32 {
        match kind {
            TaskKind::Map => self.sample_maps,
            TaskKind::Reduce => self.sample_reduces,
        }
    }

    /// Returns the maximum slots for samples of a task kind.
    pub fn training_max(&self, kind: TaskKind) -> u32 {
        let most = match kind {
            TaskKind::Map => self.training_maps_max,
            TaskKind::Reduce => self.training_reduces_max,
        };
        most.unwrap_or(u32::MAX)
    }

    /// Returns the known task times of a job: one for all tasks, or one per task.
    pub fn known_times(&self, name: &str, kind: TaskKind) -> Option<&[KnownTime]> {
        let known = self.known_times.get(name)?;
        let times = match kind {
            TaskKind::Map => &known.map,
            TaskKind::Reduce => &known.reduce,
        };
        Some(times.as_slice()).filter(|times| !times.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut HfspConfiguration)) -> HfspError {
        let mut configuration = HfspConfiguration::default();
        change(&mut configuration);
        configuration.check().expect_err("the value is invalid")
    }

    #[test]
    fn invalid_values_are_reported() {
        assert_eq!(HfspConfiguration::default().check(), Ok(()));
        assert_eq!(
            refused(|it| it.sample_reduces = 0),
            HfspError::NoSample("sample-reduces")
        );
        assert_eq!(refused(|it| it.delta = Span(0)), HfspError::NoSpan("delta"));
        assert_eq!(refused(|it| it.recent_tasks = 0), HfspError::NoRecentTasks);
        let marks = refused(|it| (it.suspended_low, it.suspended_high) = (Some(4), Some(4)));
        assert_eq!(
            marks.to_string(),
            "suspended-low 4 must be below suspended-high 4"
        );
        let weight = refused(|it| it.weights = BTreeMap::from([("etl".to_owned(), 0)]));
        assert_eq!(
            weight.to_string(),
            "queue etl: invalid weight 0; give 1 to 65536"
        );
        let alpha = Ratio::whole(2);
        let error = refused(|it| it.size_error = SizeError::Uniform { alpha });
        assert_eq!(
            error.to_string(),
            "size-error: invalid alpha 2; give 0 to 1"
        );
    }

    #[test]
    fn configuration_survives_serialization() {
        let written = r#"{"order": "remaining-size", "confidence": "infinity", "delta": "30s", "grace": "never",
            "size-error": {"distribution": "uniform", "alpha": 0.5}, "weights": {"etl": 3},
            "known-times": {"sort": {"reduce": ["500s"]}}}"#;
        let read: HfspConfiguration = serde_json::from_str(written).expect("a configuration");
        assert_eq!(
            (read.order, read.confidence),
            (RankingOrder::RemainingSize, Confidence::Infinite)
        );
        assert_eq!(
            read.known_times("sort", TaskKind::Reduce),
            Some(&[KnownTime(Span::from_secs(500))][..])
        );
        assert_eq!(read.known_times("sort", TaskKind::Map), None);
        let again = serde_json::to_string(&read).expect("text");
        assert_eq!(
            serde_json::from_str::<HfspConfiguration>(&again).expect("the same"),
            read
        );
        assert!(serde_json::from_str::<HfspConfiguration>(r#"{"samples": 3}"#).is_err());
    }
}

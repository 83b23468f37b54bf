//! What can be chosen about HFSP, with the paper's values as defaults.
//!
//! Owns the values and whether they make sense. Does not own what they do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use napreduce_engine::{Primitive, Ratio, Span, TaskKind, fields};

use crate::hfsp::misjudgement::{Misjudgement, MisjudgementError};
use crate::hfsp::ranking::RankingOrder;
use crate::hfsp::shares::WEIGHT_MAX;
use crate::hfsp::size::Confidence;
use crate::serving::DelaySettings;

/// What becomes of jobs that ended in the virtual cluster and not in the real one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Late {
    /// One after another, in the order in which they ended virtually.
    #[default]
    Fifo,
    /// All at once, each with as many slots as the others.
    Share,
}

/// Task times that are known beforehand, as they are in a simulation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct KnownTimes {
    /// Of the maps: one time for all of them, or one for each. None: to be measured.
    pub map: Vec<KnownTime>,
    pub reduce: Vec<KnownTime>,
}

/// A time that a task takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KnownTime(#[serde(with = "napreduce_engine::time::text")] pub Span);

fields! {
    /// What can be chosen about HFSP.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
    pub struct HfspConfiguration {
        /// By what jobs are ordered.
        pub order: RankingOrder = RankingOrder::ProjectedFinish,
        /// What becomes of late jobs.
        pub late: Late = Late::Fifo,
        /// How many maps of a job are its sample.
        pub sample_maps: u32 = 5,
        /// How many reduces of a job are its sample.
        pub sample_reduces: u32 = 5,
        /// How long a reduce of the sample executes before its time is estimated.
        #[serde(with = "napreduce_engine::time::text")]
        pub delta: Span = Span::from_secs(60),
        /// How much the estimate from other jobs counts.
        pub confidence: Confidence = Confidence::Factor(Ratio::ONE),
        /// What a task is taken to last while no other was done.
        #[serde(with = "napreduce_engine::time::text")]
        pub assumed_task_time: Span = Span::from_secs(60),
        /// How many of the tasks done last that estimate is the mean of.
        pub recent_tasks: u32 = 100,
        /// How many map slots samples may hold; all, without.
        pub training_maps_max: Option<u32>,
        /// How many reduce slots samples may hold; all, without.
        pub training_reduces_max: Option<u32>,
        /// How slots are taken from larger jobs; `wait` takes none.
        pub primitive: Primitive = Primitive::Suspend,
        /// After how long a victim is killed that has not given its slot.
        #[serde(with = "napreduce_engine::time::text_or_never")]
        pub grace: Option<Span>,
        /// With so many suspended tasks on a worker no more are suspended there; twice its slots, without.
        pub suspended_high: Option<u32>,
        /// With so few they are again; as many as its slots, without.
        pub suspended_low: Option<u32>,
        /// The same for all workers together; any number, without.
        pub cluster_suspended_high: Option<u32>,
        /// And with so few in all they are again; half of the other, without.
        pub cluster_suspended_low: Option<u32>,
        /// How often jobs are put in order at least, where that changes with time.
        #[serde(with = "napreduce_engine::time::text")]
        pub update_interval: Span = Span::from_secs(5),
        /// How long maps wait for a worker that has their input.
        pub delay: DelaySettings = DelaySettings { declines: 40, ..DelaySettings::default() },
        /// By queue, how many virtual slots its jobs get in relation to others; 1, without.
        pub weights: BTreeMap<String, u32>,
        /// Errors put on the sizes that were measured or are known.
        pub size_error: Misjudgement = Misjudgement::None,
        /// Where those errors start.
        pub seed: u64 = 0,
        /// By job name, task times that need no sample.
        pub known_times: BTreeMap<String, KnownTimes>,
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HfspError {
    /// Nothing would ever be measured.
    #[error("{0} is 0; a sample needs at least 1 task")]
    NoSample(&'static str),
    /// No progress can be told from no time.
    #[error("{0} is 0s; give a span above")]
    NoSpan(&'static str),
    /// The mean of none.
    #[error("recent-tasks is 0; the mean needs at least 1 task")]
    NoRecentTasks,
    /// The switch would never turn, or at every turn.
    #[error("{what}-low is {low} and {what}-high is {high}; the low one must be below the high one")]
    Thresholds {
        /// Which pair.
        what: &'static str,
        low: u32,
        high: u32,
    },
    /// Shares are compared exactly up to a bound.
    #[error("the weight of queue {queue} is {weight}; give 1 to {WEIGHT_MAX}")]
    Weight { queue: String, weight: u32 },
    /// The size error makes no sense.
    #[error("size-error: {0}")]
    SizeError(#[from] MisjudgementError),
}

impl HfspConfiguration {
    /// Whether the values make sense.
    ///
    /// # Errors
    /// Names the first that does not, and what is allowed.
    pub fn check(&self) -> Result<(), HfspError> {
        for (name, count) in [("sample-maps", self.sample_maps), ("sample-reduces", self.sample_reduces)] {
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
            ("cluster-suspended", self.cluster_suspended_low, self.cluster_suspended_high),
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
            return Err(HfspError::Weight { queue: queue.clone(), weight });
        }
        Ok(self.size_error.check()?)
    }

    /// How many tasks of a kind are the sample of a job.
    pub fn sample(&self, kind: TaskKind) -> u32 {
        match kind {
            TaskKind::Map => self.sample_maps,
            TaskKind::Reduce => self.sample_reduces,
        }
    }

    /// How many slots of a kind samples may hold.
    pub fn training_max(&self, kind: TaskKind) -> u32 {
        let most = match kind {
            TaskKind::Map => self.training_maps_max,
            TaskKind::Reduce => self.training_reduces_max,
        };
        most.unwrap_or(u32::MAX)
    }

    /// The times of the tasks of a job, if they are known: one for all, or one for each.
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
        configuration.check().expect_err("it makes no sense")
    }

    #[test]
    fn senseless_values_are_named() {
        assert_eq!(HfspConfiguration::default().check(), Ok(()));
        assert_eq!(refused(|it| it.sample_reduces = 0), HfspError::NoSample("sample-reduces"));
        assert_eq!(refused(|it| it.delta = Span(0)), HfspError::NoSpan("delta"));
        assert_eq!(refused(|it| it.recent_tasks = 0), HfspError::NoRecentTasks);
        let marks = refused(|it| (it.suspended_low, it.suspended_high) = (Some(4), Some(4)));
        assert_eq!(
            marks.to_string(),
            "suspended-low is 4 and suspended-high is 4; the low one must be below the high one"
        );
        let weight = refused(|it| it.weights = BTreeMap::from([("etl".to_owned(), 0)]));
        assert_eq!(weight.to_string(), "the weight of queue etl is 0; give 1 to 65536");
        let alpha = Ratio::whole(2);
        let error = refused(|it| it.size_error = Misjudgement::Uniform { alpha });
        assert_eq!(error.to_string(), "size-error: alpha is 2; give 0 to 1");
    }

    #[test]
    fn it_is_read_as_it_is_written() {
        let written = r#"{"order": "remaining-size", "confidence": "infinity", "delta": "30s", "grace": "never",
            "size-error": {"distribution": "uniform", "alpha": 0.5}, "weights": {"etl": 3},
            "known-times": {"sort": {"reduce": ["500s"]}}}"#;
        let read: HfspConfiguration = serde_json::from_str(written).expect("a configuration");
        assert_eq!((read.order, read.confidence), (RankingOrder::RemainingSize, Confidence::Infinite));
        assert_eq!(read.known_times("sort", TaskKind::Reduce), Some(&[KnownTime(Span::from_secs(500))][..]));
        assert_eq!(read.known_times("sort", TaskKind::Map), None);
        let again = serde_json::to_string(&read).expect("text");
        assert_eq!(serde_json::from_str::<HfspConfiguration>(&again).expect("the same"), read);
        assert!(serde_json::from_str::<HfspConfiguration>(r#"{"samples": 3}"#).is_err());
    }
}

//! Quantiles of the successful attempts of a job: durations and amounts of data.

use napreduce_engine::TaskKind;
use napreduce_history::{PERCENTS, quantiles};
use napreduce_protocol::{AttemptFigures, AttemptSummary, JobDetail};
use schemars::JsonSchema;
use serde::Serialize;

/// The successful attempts of a job.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QuantilesAnswer {
    pub job: String,
    /// The quantiles in each list, in percent.
    pub percents: [u32; 6],
    /// `null` before the first success.
    pub map: Option<PhaseQuantiles>,
    /// `null` before the first success.
    pub reduce: Option<PhaseQuantiles>,
}

impl From<&JobDetail> for QuantilesAnswer {
    fn from(detail: &JobDetail) -> QuantilesAnswer {
        QuantilesAnswer {
            job: detail.summary.job.to_string(),
            percents: PERCENTS,
            map: PhaseQuantiles::of(&detail.attempts, TaskKind::Map),
            reduce: PhaseQuantiles::of(&detail.attempts, TaskKind::Reduce),
        }
    }
}

/// Quantiles of maps or of reduces, in the order of `percents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PhaseQuantiles {
    /// Number of attempts.
    pub attempts: usize,
    pub took_millis: [u64; 6],
    /// From the attempts with known figures; 0 if there are none.
    pub input_bytes: [u64; 6],
    pub output_bytes: [u64; 6],
    pub input_records: [u64; 6],
    pub shuffle_millis: [u64; 6],
    pub processor_millis: [u64; 6],
}

impl PhaseQuantiles {
    fn of(attempts: &[AttemptSummary], kind: TaskKind) -> Option<PhaseQuantiles> {
        let is_it = |one: &&AttemptSummary| one.attempt.task.kind == kind && one.has_succeeded();
        let done: Vec<&AttemptSummary> = attempts.iter().filter(is_it).collect();
        let took =
            |one: &&AttemptSummary| Some(one.ended_millis?.saturating_sub(one.launched_millis));
        let figure = |value: fn(&AttemptFigures) -> u64| {
            quantiles(
                done.iter()
                    .filter_map(|one| one.figures.as_ref().map(value))
                    .collect(),
            )
        };
        (!done.is_empty()).then(|| PhaseQuantiles {
            attempts: done.len(),
            took_millis: quantiles(done.iter().filter_map(took).collect()),
            input_bytes: figure(|figures| figures.input_bytes),
            output_bytes: figure(|figures| figures.output_bytes),
            input_records: figure(|figures| figures.input_records),
            shuffle_millis: figure(|figures| figures.shuffle_millis),
            processor_millis: figure(|figures| figures.processor_millis),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::detail;
    use super::*;

    #[test]
    fn only_successful_attempts_count() {
        let mut job = detail();
        assert_eq!(QuantilesAnswer::from(&job).map, None);
        let mut done = job.attempts[0].clone();
        (done.end, done.ended_millis) = (
            Some("succeeded".to_owned()),
            Some(done.launched_millis + 300),
        );
        done.figures = Some(AttemptFigures {
            input_bytes: 64,
            ..AttemptFigures::default()
        });
        job.attempts.push(done);
        let map = QuantilesAnswer::from(&job).map.expect("one succeeded");
        assert_eq!(
            (map.attempts, map.took_millis, map.input_bytes),
            (1, [300; 6], [64; 6])
        );
        assert_eq!(QuantilesAnswer::from(&job).reduce, None);
    }
}

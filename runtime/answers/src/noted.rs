//! Samples of queues and workers over time: means per step, and changes of workers.

use napreduce_engine::TaskKind;
use napreduce_protocol::{QueueSample, QueueSlots, WorkerSample};
use schemars::JsonSchema;
use serde::Serialize;

use super::shares::{SharesAnswer, Steps};

const MILLI_MICROS: u64 = 1_000;
/// An unchanged sample is repeated every ten minutes; after this long without one, the value is unknown.
const HOLDS_MILLIS: u64 = 11 * 60_000;

/// A change of a worker's state.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WorkerChangeAnswer {
    /// Milliseconds since 1970.
    pub at_millis: u64,
    pub worker: String,
    pub name: String,
    pub host: String,
    /// `up`, `excluded`, `draining`, `leaving`, `left` or `lost`.
    pub state: &'static str,
    /// Why, if that is known.
    pub reason: Option<String>,
    pub map_slots: u32,
    pub reduce_slots: u32,
}

impl From<&WorkerSample> for WorkerChangeAnswer {
    fn from(change: &WorkerSample) -> WorkerChangeAnswer {
        WorkerChangeAnswer {
            at_millis: change.at_millis,
            worker: change.worker.to_string(),
            name: change.name.clone(),
            host: change.host.clone(),
            state: change.state.in_words(),
            reason: change.reason.clone(),
            map_slots: change.map_slots,
            reduce_slots: change.reduce_slots,
        }
    }
}

impl SharesAnswer {
    /// Adds queue samples, which are ordered by time.
    pub fn note(&mut self, samples: &[QueueSample]) {
        let from_millis = self.from_millis;
        let until_millis = self.until_millis;
        let steps = Steps {
            from_millis,
            until_millis,
            step_millis: self.step_millis,
        };
        for queue in &mut self.queues {
            for (kind, shares) in [
                (TaskKind::Map, &mut queue.map),
                (TaskKind::Reduce, &mut queue.reduce),
            ] {
                let of_it =
                    |sample: &&QueueSample| sample.queue == queue.queue && sample.kind == kind;
                let noted: Vec<&QueueSample> = samples.iter().filter(of_it).collect();
                if !noted.is_empty() {
                    shares.demand_most = noted
                        .iter()
                        .map(|sample| sample.slots.used + sample.slots.wanted)
                        .max();
                    shares.wanted = means(&noted, steps, |slots| Some(slots.wanted as f64));
                    shares.guaranteed = means(&noted, steps, |slots| {
                        slots
                            .guaranteed_permille
                            .map(|permille| permille as f64 / 1e3)
                    });
                }
            }
        }
    }
}

/// Returns the mean of each step over the times with a known value.
fn means(
    noted: &[&QueueSample],
    steps: Steps,
    value: fn(&QueueSlots) -> Option<f64>,
) -> Vec<Option<f64>> {
    let mut sums = vec![(0.0, 0_u64); usize::try_from(steps.count()).unwrap_or(0)];
    let ends = noted
        .iter()
        .skip(1)
        .map(|next| next.at_millis)
        .chain([steps.until_millis]);
    for (sample, end) in noted.iter().zip(ends) {
        let Some(value) = value(&sample.slots) else {
            continue;
        };
        let until = end.min(sample.at_millis.saturating_add(HOLDS_MILLIS));
        let micros = |millis: u64| millis.saturating_mul(MILLI_MICROS);
        for (at, length) in steps.parts(micros(sample.at_millis), micros(until)) {
            sums[at].0 += value * length as f64;
            sums[at].1 += length;
        }
    }
    // Three decimals are more than a chart shows.
    let mean =
        |(sum, length): (f64, u64)| (length > 0).then(|| (sum / length as f64 * 1e3).round() / 1e3);
    sums.into_iter().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples::detail;
    use super::super::shares::{JobSlots, SharesSum};
    use super::*;

    #[test]
    fn sample_holds_until_the_next_one_for_a_limited_time() {
        let job = detail();
        let begin = job.summary.submitted_millis;
        let minute = 60_000;
        let steps = Steps {
            from_millis: begin,
            until_millis: begin + 20 * minute,
            step_millis: 5 * minute,
        };
        let mut sum = SharesSum::new(steps);
        sum.add(&job.summary.queue, &JobSlots::of(&job));
        let mut shares = sum.answer(0, Vec::new());
        assert!(shares.queues[0].map.wanted.is_empty());
        let noted = |at: u64, kind, wanted, guaranteed_permille| QueueSample {
            at_millis: begin + at,
            queue: "default".to_owned(),
            kind,
            slots: QueueSlots {
                used: 2,
                wanted,
                guaranteed_permille,
                ..QueueSlots::default()
            },
        };
        let other = QueueSample {
            queue: "etl".to_owned(),
            ..noted(0, TaskKind::Map, 9, None)
        };
        shares.note(&[
            other,
            noted(2 * minute, TaskKind::Map, 4, Some(1_500)),
            noted(2 * minute, TaskKind::Reduce, 7, None),
            noted(7 * minute, TaskKind::Map, 0, Some(2_000)),
        ]);
        let map = &shares.queues[0].map;
        assert_eq!(map.wanted, [Some(4.0), Some(1.6), Some(0.0), Some(0.0)]);
        assert_eq!(map.guaranteed, [Some(1.5), Some(1.8), Some(2.0), Some(2.0)]);
        assert_eq!(map.demand_most, Some(6));
        let reduce = &shares.queues[0].reduce;
        assert_eq!(reduce.wanted, [Some(7.0), Some(7.0), Some(7.0), None]);
        assert_eq!(reduce.guaranteed, [None, None, None, None]);
    }
}

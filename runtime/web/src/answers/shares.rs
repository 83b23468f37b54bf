//! How many slots the jobs of each queue held over time.
//!
//! Owns the means over the steps of a window. Does not own what stints and naps are
//! (`napreduce-history-files`) nor what a queue is guaranteed (`queues`).

use std::collections::BTreeMap;

use napreduce_core::TaskKind;
use napreduce_history_files::Timeline;
use napreduce_protocol::JobDetail;
use schemars::JsonSchema;
use serde::Serialize;

const MILLI_MICROS: u64 = 1_000;

/// Steps of one length, in milliseconds since 1970; the last one ends with the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    pub from_millis: u64,
    /// What goes on, goes on until here.
    pub until_millis: u64,
    /// Not 0.
    pub step_millis: u64,
}

impl Steps {
    pub fn count(self) -> u64 {
        self.until_millis.saturating_sub(self.from_millis).div_ceil(self.step_millis)
    }

    /// What of a stretch lies in each step, in microseconds.
    pub(super) fn parts(self, from_micros: u64, until_micros: u64) -> impl Iterator<Item = (usize, u64)> {
        let base = self.from_millis * MILLI_MICROS;
        let step = self.step_millis * MILLI_MICROS;
        let from = from_micros.max(base) - base;
        let until = until_micros.min(self.until_millis * MILLI_MICROS).saturating_sub(base);
        let steps = if from < until { from / step..until.div_ceil(step) } else { 0..0 };
        steps.map(move |at| (at as usize, until.min((at + 1) * step) - from.max(at * step)))
    }

    /// How long each of them is, in microseconds.
    fn lengths(self) -> Vec<u64> {
        let whole = self.parts(self.from_millis * MILLI_MICROS, self.until_millis * MILLI_MICROS);
        whole.map(|(_, micros)| micros).collect()
    }
}

/// The slots of queues over time. Number `i` of a column is the mean over the step that begins `i` steps
/// after `from_millis`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SharesAnswer {
    /// In milliseconds since 1970.
    pub from_millis: u64,
    /// Likewise; the last step is shorter where it would go beyond this.
    pub until_millis: u64,
    pub step_millis: u64,
    /// By name, those of which a job was there.
    pub queues: Vec<QueueSharesAnswer>,
    /// Jobs of the window that are not counted, since there are too many.
    pub jobs_left_out: usize,
    /// What could not be read of what was noted.
    pub remarks: Vec<String>,
}

/// What the jobs of a queue had.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QueueSharesAnswer {
    pub queue: String,
    pub map: SharesOfKind,
    pub reduce: SharesOfKind,
}

/// Of tasks of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SharesOfKind {
    /// Slots that were held.
    pub held: Vec<f64>,
    /// Attempts that were suspended, and held none.
    pub suspended: Vec<f64>,
    /// What jobs of the queue could have used beside that, as the coordinator noted it every few seconds;
    /// nothing for times in which it did not. Empty where nothing was noted at all.
    pub wanted: Vec<Option<f64>>,
    /// What the queue was guaranteed, likewise.
    pub guaranteed: Vec<Option<f64>>,
}

/// Microseconds in each step.
#[derive(Clone)]
struct Sums {
    held: Vec<u64>,
    suspended: Vec<u64>,
}

impl SharesAnswer {
    pub fn of<'job>(jobs: impl IntoIterator<Item = &'job JobDetail>, steps: Steps) -> SharesAnswer {
        let lengths = steps.lengths();
        let none = Sums { held: vec![0; lengths.len()], suspended: vec![0; lengths.len()] };
        let mut queues: BTreeMap<&str, [Sums; 2]> = BTreeMap::new();
        for job in jobs {
            let sums = queues.entry(&job.summary.queue).or_insert_with(|| [none.clone(), none.clone()]);
            let of_kind = |kind: TaskKind| usize::from(kind == TaskKind::Reduce);
            let timeline = Timeline::of(job, steps.until_millis * MILLI_MICROS);
            for stint in &timeline.stints {
                let held = &mut sums[of_kind(stint.attempt.task.kind)].held;
                steps
                    .parts(stint.from_micros, stint.until_micros)
                    .for_each(|(at, micros)| held[at] += micros);
            }
            for nap in timeline.naps.iter().filter(|nap| nap.is_suspended()) {
                let suspended = &mut sums[of_kind(nap.attempt.task.kind)].suspended;
                steps
                    .parts(nap.from_micros, nap.until_micros)
                    .for_each(|(at, micros)| suspended[at] += micros);
            }
        }
        let mean = |sums: Vec<u64>| -> Vec<f64> {
            // Thousandths are more than a picture shows.
            let of = |(sum, length): (u64, &u64)| (sum as f64 / *length as f64 * 1e3).round() / 1e3;
            sums.into_iter().zip(&lengths).map(of).collect()
        };
        let of_kind = |sums: Sums| SharesOfKind {
            held: mean(sums.held),
            suspended: mean(sums.suspended),
            wanted: Vec::new(),
            guaranteed: Vec::new(),
        };
        let queues = queues.into_iter().map(|(queue, [map, reduce])| QueueSharesAnswer {
            queue: queue.to_owned(),
            map: of_kind(map),
            reduce: of_kind(reduce),
        });
        let Steps { from_millis, until_millis, step_millis } = steps;
        let queues = queues.collect();
        let (jobs_left_out, remarks) = (0, Vec::new());
        SharesAnswer { from_millis, until_millis, step_millis, queues, jobs_left_out, remarks }
    }
}

#[cfg(test)]
mod tests {
    use napreduce_core::{AttemptId, JobId, Primitive, TaskId};
    use napreduce_protocol::PreemptionEnd;
    use proptest::prelude::*;

    use super::super::samples::{detail, preempted};
    use super::*;

    #[test]
    fn slots_are_counted_by_queue_kind_and_step() {
        // Its map is there from 100 to 1,300 ms.
        let mut job = detail();
        let begin = job.summary.submitted_millis;
        let reduce = TaskId { job: JobId(7), kind: TaskKind::Reduce, index: 0 };
        let mut second = job.attempts[0].clone();
        second.attempt = AttemptId { task: reduce, number: 1 };
        (second.launched_millis, second.ended_millis) = (begin + 1_000, None);
        job.attempts.push(second);
        let mut other = detail();
        other.summary.queue = "research".to_owned();
        let steps = Steps { from_millis: begin, until_millis: begin + 1_250, step_millis: 500 };
        let shares = SharesAnswer::of([&job, &other], steps);
        let held: Vec<_> = shares
            .queues
            .iter()
            .map(|queue| (queue.queue.as_str(), queue.map.held.clone(), queue.reduce.held.clone()))
            .collect();
        let map = vec![0.8, 1.0, 1.0];
        assert_eq!(
            held,
            [("default", map.clone(), vec![0.0, 0.0, 1.0]), ("research", map, vec![0.0, 0.0, 0.0])]
        );
    }

    #[test]
    fn a_suspended_attempt_holds_no_slot() {
        let mut job = preempted(&[(490, Primitive::Suspend, Some(PreemptionEnd::Suspended))]);
        job.summary.queue = "default".to_owned();
        let begin = job.summary.submitted_millis;
        let steps = Steps { from_millis: begin, until_millis: begin + 1_000, step_millis: 500 };
        let map = &SharesAnswer::of([&job], steps).queues[0].map;
        assert_eq!((&map.held, &map.suspended), (&vec![1.0, 0.0], &vec![0.0, 1.0]));
    }

    proptest! {
        /// What is in the steps is what of the stretch is in the window.
        #[test]
        fn no_microsecond_is_lost_or_counted_twice(
            (from, length, step) in (0_u64..50, 0_u64..50, 1_u64..9),
            (begin, end) in (0_u64..120_000, 0_u64..120_000),
        ) {
            let steps = Steps { from_millis: from, until_millis: from + length, step_millis: step };
            let parts: Vec<_> = steps.parts(begin, end).collect();
            let inside = end.min((from + length) * 1_000).saturating_sub(begin.max(from * 1_000));
            prop_assert_eq!(parts.iter().map(|(_, micros)| micros).sum::<u64>(), inside);
            prop_assert!(parts.iter().all(|(at, micros)| (*at as u64) < steps.count() && *micros <= step * 1_000));
            prop_assert!(parts.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0));
            prop_assert_eq!(steps.lengths().len() as u64, steps.count());
        }
    }
}

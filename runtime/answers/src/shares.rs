//! Slots that the jobs of each queue held over time: means per step, and the most at once.

use std::collections::BTreeMap;

use napreduce_engine::TaskKind;
use napreduce_history::Timeline;
use napreduce_protocol::JobDetail;
use schemars::JsonSchema;
use serde::Serialize;

const MILLI_MICROS: u64 = 1_000;
/// Launches are known to the millisecond.
const LAUNCH_MICROS: u64 = 1_000;
/// Later than any window.
const NO_END_MICROS: u64 = u64::MAX / 2;

/// Steps of equal length; the last one ends with the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    pub from_millis: u64,
    /// Open stretches extend to here.
    pub until_millis: u64,
    /// Not 0.
    pub step_millis: u64,
}

impl Steps {
    pub fn count(self) -> u64 {
        self.until_millis
            .saturating_sub(self.from_millis)
            .div_ceil(self.step_millis)
    }

    /// Splits a stretch into steps: returns step numbers and lengths in microseconds.
    pub(crate) fn parts(
        self,
        from_micros: u64,
        until_micros: u64,
    ) -> impl Iterator<Item = (usize, u64)> {
        let base = self.from_millis * MILLI_MICROS;
        let step = self.step_millis * MILLI_MICROS;
        let from = from_micros.max(base) - base;
        let until = until_micros
            .min(self.until_millis * MILLI_MICROS)
            .saturating_sub(base);
        let steps = if from < until {
            from / step..until.div_ceil(step)
        } else {
            0..0
        };
        steps.map(move |at| {
            (
                at as usize,
                until.min((at + 1) * step) - from.max(at * step),
            )
        })
    }

    /// Returns the length of each step in microseconds.
    fn lengths(self) -> Vec<u64> {
        let whole = self.parts(
            self.from_millis * MILLI_MICROS,
            self.until_millis * MILLI_MICROS,
        );
        whole.map(|(_, micros)| micros).collect()
    }
}

/// The slots of queues over time. Entry `i` of a column is the mean over the step that starts `i` steps after
/// `from_millis`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SharesAnswer {
    /// Milliseconds since 1970.
    pub from_millis: u64,
    /// Milliseconds since 1970; the last step may be shorter.
    pub until_millis: u64,
    pub step_millis: u64,
    /// Queues that had jobs, by name.
    pub queues: Vec<QueueSharesAnswer>,
    /// Jobs of the window that are not counted; `remarks` has the reasons.
    pub jobs_left_out: usize,
    /// Excluded data, and why.
    pub remarks: Vec<String>,
}

/// The slots of one queue.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QueueSharesAnswer {
    pub queue: String,
    pub map: SharesOfKind,
    pub reduce: SharesOfKind,
}

/// The slots of one queue for one kind of task.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SharesOfKind {
    /// Slots held.
    pub held: Vec<f64>,
    /// Suspended attempts, which hold no slot.
    pub suspended: Vec<f64>,
    /// Further slots that its jobs could have used, sampled every few seconds; `null` for times without samples. Empty
    /// if there are no samples.
    pub wanted: Vec<Option<f64>>,
    /// Guaranteed slots, sampled like `wanted`.
    pub guaranteed: Vec<Option<f64>>,
    /// The most slots held at once in the window.
    pub held_most: usize,
    /// The most attempts suspended at once.
    pub suspended_most: usize,
    /// The most slots held and wanted together in one sample; `null` if there are no samples.
    pub demand_most: Option<u64>,
}

/// A period in which an attempt held a slot or was suspended.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    from_micros: u64,
    until_micros: u64,
    kind: TaskKind,
    is_suspended: bool,
}

/// The stretches of one job.
#[derive(Debug)]
pub struct JobSlots(Vec<Stretch>);

impl JobSlots {
    /// Stretches of a running job are open: they extend beyond every window.
    pub fn of(detail: &JobDetail) -> JobSlots {
        let until = detail
            .summary
            .ended_millis
            .map_or(NO_END_MICROS, |ended| ended * MILLI_MICROS);
        let timeline = Timeline::new(detail, until);
        let stints = timeline.stints.iter().map(|stint| Stretch {
            from_micros: stint.from_micros,
            until_micros: stint.until_micros,
            kind: stint.attempt.task.kind,
            is_suspended: false,
        });
        let naps = timeline
            .naps
            .iter()
            .filter(|nap| nap.is_suspended())
            .map(|nap| Stretch {
                from_micros: nap.from_micros,
                until_micros: nap.until_micros,
                kind: nap.attempt.task.kind,
                is_suspended: true,
            });
        JobSlots(stints.chain(naps).collect())
    }

    /// Returns the number of stretches.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// Sums the slots of queues, job by job.
#[derive(Debug)]
pub struct SharesSum {
    steps: Steps,
    queues: BTreeMap<String, [Sums; 2]>,
}

/// Stretches of one kind.
#[derive(Debug, Clone)]
struct Sums {
    held: Sum,
    suspended: Sum,
}

/// The time in slots, or suspended.
#[derive(Debug, Clone)]
struct Sum {
    /// Microseconds in each step.
    micros: Vec<u64>,
    /// Starts, and ends, of the stretches within the window.
    starts: Vec<u64>,
    ends: Vec<u64>,
}

impl Sum {
    fn add(&mut self, steps: Steps, from_micros: u64, until_micros: u64) {
        for (at, micros) in steps.parts(from_micros, until_micros) {
            self.micros[at] += micros;
        }
        // The attempt before it in its slot may have ended in the millisecond of its launch.
        let from = (from_micros + LAUNCH_MICROS).max(steps.from_millis * MILLI_MICROS);
        if from < until_micros.min(steps.until_millis * MILLI_MICROS) {
            self.starts.push(from);
            self.ends.push(until_micros);
        }
    }

    /// Returns the most stretches at once.
    fn most(&mut self) -> usize {
        self.starts.sort_unstable();
        self.ends.sort_unstable();
        let mut ended = 0;
        let at_once = self.starts.iter().enumerate().map(|(before, start)| {
            while self.ends[ended] <= *start {
                ended += 1;
            }
            before + 1 - ended
        });
        at_once.max().unwrap_or(0)
    }
}

impl SharesSum {
    pub fn new(steps: Steps) -> SharesSum {
        SharesSum {
            steps,
            queues: BTreeMap::new(),
        }
    }

    pub fn add(&mut self, queue: &str, job: &JobSlots) {
        if !self.queues.contains_key(queue) {
            let micros = vec![0; usize::try_from(self.steps.count()).unwrap_or(0)];
            let none = Sum {
                micros,
                starts: Vec::new(),
                ends: Vec::new(),
            };
            let none = Sums {
                held: none.clone(),
                suspended: none,
            };
            self.queues.insert(queue.to_owned(), [none.clone(), none]);
        }
        let Some(sums) = self.queues.get_mut(queue) else {
            return;
        };
        for stretch in &job.0 {
            let of_kind = &mut sums[usize::from(stretch.kind == TaskKind::Reduce)];
            let sum = if stretch.is_suspended {
                &mut of_kind.suspended
            } else {
                &mut of_kind.held
            };
            sum.add(self.steps, stretch.from_micros, stretch.until_micros);
        }
    }

    /// Returns means and maxima, which are too low where `jobs_left_out` held slots.
    pub fn answer(self, jobs_left_out: usize, remarks: Vec<String>) -> SharesAnswer {
        let lengths = self.steps.lengths();
        let mean = |sums: Vec<u64>| -> Vec<f64> {
            // Three decimals are more than a chart shows.
            let of = |(sum, length): (u64, &u64)| (sum as f64 / *length as f64 * 1e3).round() / 1e3;
            sums.into_iter().zip(&lengths).map(of).collect()
        };
        let of_kind = |Sums {
                           mut held,
                           mut suspended,
                       }: Sums| SharesOfKind {
            held_most: held.most(),
            suspended_most: suspended.most(),
            demand_most: None,
            held: mean(held.micros),
            suspended: mean(suspended.micros),
            wanted: Vec::new(),
            guaranteed: Vec::new(),
        };
        let queues = self
            .queues
            .into_iter()
            .map(|(queue, [map, reduce])| QueueSharesAnswer {
                queue,
                map: of_kind(map),
                reduce: of_kind(reduce),
            });
        let Steps {
            from_millis,
            until_millis,
            step_millis,
        } = self.steps;
        let queues = queues.collect();
        SharesAnswer {
            from_millis,
            until_millis,
            step_millis,
            queues,
            jobs_left_out,
            remarks,
        }
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{AttemptId, JobId, Primitive, TaskId};
    use napreduce_protocol::PreemptionEnd;
    use proptest::prelude::*;

    use super::super::samples::{detail, preempted};
    use super::*;

    fn shares_of(jobs: &[&JobDetail], steps: Steps) -> SharesAnswer {
        let mut sum = SharesSum::new(steps);
        for job in jobs {
            sum.add(&job.summary.queue, &JobSlots::of(job));
        }
        sum.answer(0, Vec::new())
    }

    #[test]
    fn shares_count_slots_by_queue_kind_and_step() {
        // The map runs from 100 to 1,300 ms.
        let mut job = detail();
        let begin = job.summary.submitted_millis;
        let reduce = TaskId {
            job: JobId(7),
            kind: TaskKind::Reduce,
            index: 0,
        };
        let mut second = job.attempts[0].clone();
        second.attempt = AttemptId {
            task: reduce,
            number: 1,
        };
        (second.launched_millis, second.ended_millis) = (begin + 1_000, None);
        job.attempts.push(second);
        let mut other = detail();
        other.summary.queue = "research".to_owned();
        let steps = Steps {
            from_millis: begin,
            until_millis: begin + 1_250,
            step_millis: 500,
        };
        let shares = shares_of(&[&job, &other], steps);
        let held: Vec<_> = shares
            .queues
            .iter()
            .map(|queue| {
                (
                    queue.queue.as_str(),
                    queue.map.held.clone(),
                    queue.reduce.held.clone(),
                )
            })
            .collect();
        let map = vec![0.8, 1.0, 1.0];
        assert_eq!(
            held,
            [
                ("default", map.clone(), vec![0.0, 0.0, 1.0]),
                ("research", map, vec![0.0, 0.0, 0.0])
            ]
        );
    }

    #[test]
    fn suspended_attempt_holds_no_slot() {
        let mut job = preempted(&[(490, Primitive::Suspend, Some(PreemptionEnd::Suspended))]);
        job.summary.queue = "default".to_owned();
        let begin = job.summary.submitted_millis;
        let steps = Steps {
            from_millis: begin,
            until_millis: begin + 1_000,
            step_millis: 500,
        };
        let map = &shares_of(&[&job], steps).queues[0].map;
        assert_eq!(
            (&map.held, &map.suspended),
            (&vec![1.0, 0.0], &vec![0.0, 1.0])
        );
        assert_eq!((map.held_most, map.suspended_most), (1, 1));
    }

    #[test]
    fn attempts_in_turn_hold_one_slot_and_attempts_at_once_two() {
        let job = detail();
        let begin = job.summary.submitted_millis;
        let steps = Steps {
            from_millis: begin,
            until_millis: begin + 2_000,
            step_millis: 2_000,
        };
        let most = |begun_millis: u64| {
            let mut job = job.clone();
            let mut second = job.attempts[0].clone();
            second.attempt.number = 2;
            // The first attempt ends in this millisecond.
            second.launched_millis = begin + begun_millis;
            second.ended_millis = Some(begin + 1_900);
            job.attempts.push(second);
            shares_of(&[&job], steps).queues[0].map.held_most
        };
        assert_eq!((most(1_300), most(1_200)), (1, 2));
    }

    proptest! {
        #[test]
        fn most_at_once_is_that_of_a_naive_count(
            stretches in prop::collection::vec((0_u64..30_000, 0_u64..20_000), 0..20),
        ) {
            let steps = Steps { from_millis: 5, until_millis: 25, step_millis: 20 };
            let mut sum = Sum { micros: vec![0], starts: Vec::new(), ends: Vec::new() };
            for (from, length) in &stretches {
                sum.add(steps, *from, from + length);
            }
            let count = |micros: u64| {
                stretches.iter().filter(|(from, length)| (from + 1_000..from + length).contains(&micros)).count()
            };
            prop_assert_eq!(sum.most(), (5_000..25_000).map(count).max().unwrap_or(0));
        }

        /// The parts sum to the stretch's overlap with the window.
        #[test]
        fn parts_neither_lose_nor_repeat_time(
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

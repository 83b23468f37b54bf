//! The training of a job's size: measures sampled tasks, and keeps recent task times for the initial estimate
//! of other jobs.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use napreduce_engine::{Attempt, Ratio, SortedMap, Span, Time};

use crate::hfsp::size::{self, Sample};

/// A running reduce of a sample.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Measure {
    attempt: u32,
    /// Active time and progress at its first report.
    begun: Span,
    progress: u32,
    /// Estimated total time.
    time: Option<Span>,
}

/// The sample of one phase of a job.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Training {
    /// Number of sampled tasks; 0 if none is needed.
    pub target: u32,
    measures: SortedMap<u32, Measure>,
}

impl Training {
    /// Creates a sample of `target` tasks.
    pub fn new(target: u32) -> Training {
        Training {
            target,
            measures: SortedMap::new(),
        }
    }

    /// Returns the mean task time once enough tasks are finished or measured. `done` tasks are finished, with
    /// total active time `worked`.
    pub fn complete(&self, done: u32, worked: Span) -> Option<Ratio> {
        let times: Vec<Span> = self
            .measures
            .values()
            .filter_map(|measure| measure.time)
            .collect();
        if (done as usize) + times.len() < self.target as usize {
            return None;
        }
        let mut sample = Sample::new(Ratio::whole(worked.0), done);
        for time in times {
            sample.add(Ratio::whole(time.0));
        }
        sample.mean()
    }

    /// Records the progress of a reduce. Returns whether its time has just become known, and for a new reduce
    /// when to measure it.
    pub fn progressed(
        &mut self,
        now: Time,
        attempt: &Attempt,
        delta: Span,
    ) -> (bool, Option<Time>) {
        let Some(progress) = attempt.progress_millionths() else {
            return (false, None);
        };
        let index = attempt.id().task.index;
        let number = attempt.id().number;
        let active = attempt.active_time(now);
        let known = self
            .measures
            .get_mut(&index)
            .filter(|measure| measure.attempt == number);
        let Some(measure) = known else {
            self.measures.insert(
                index,
                Measure {
                    attempt: number,
                    begun: active,
                    progress,
                    time: None,
                },
            );
            return (false, Some(now + delta));
        };
        let executed = Span(active.0 - measure.begun.0.min(active.0));
        if measure.time.is_some() || executed < delta {
            return (false, None);
        }
        let share = Ratio::new(
            i128::from(progress) - i128::from(measure.progress),
            1_000_000,
        );
        let time = size::reduce_time(Ratio::whole(executed.0), share);
        measure.time = time.map(|time| Span(time.of_rounded(1)));
        (measure.time.is_some(), None)
    }

    /// Drops the measurement of a reduce that finished or restarts.
    pub fn ended(&mut self, index: u32) {
        self.measures.remove(&index);
    }
}

/// The times of recently finished tasks of all jobs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Recent {
    times: VecDeque<Span>,
    total: u64,
}

impl Recent {
    /// Adds `count` tasks with total active time `worked`; keeps the last `most`.
    pub fn add(&mut self, count: u32, worked: Span, most: u32) {
        let each = Span(worked.0.checked_div(u64::from(count)).unwrap_or_default());
        for _ in 0..count.min(most) {
            self.times.push_back(each);
            self.total += each.0;
        }
        while self.times.len() > most as usize {
            self.total -= self.times.pop_front().unwrap_or_default().0;
        }
    }

    /// Returns the mean; `None` if empty.
    pub fn mean(&self) -> Option<Ratio> {
        (!self.times.is_empty())
            .then(|| Ratio::new(i128::from(self.total), self.times.len() as i128))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_completes_with_last_task() {
        let training = Training::new(3);
        assert_eq!(training.complete(2, Span(100)), None);
        assert_eq!(training.complete(3, Span(150)), Some(Ratio::whole(50)));
    }

    #[test]
    fn recent_mean_covers_last_tasks() {
        let mut recent = Recent::default();
        assert_eq!(recent.mean(), None);
        recent.add(2, Span(200), 3);
        assert_eq!(recent.mean(), Some(Ratio::whole(100)));
        recent.add(2, Span(20), 3);
        assert_eq!(recent.mean(), Some(Ratio::whole(40)));
        recent.add(9, Span(63), 3);
        assert_eq!(recent.mean(), Some(Ratio::whole(7)));
    }
}

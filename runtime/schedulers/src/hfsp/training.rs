//! What is measured of a job to know its size, and of the tasks done lately to guess that of the next.
//!
//! Owns when a sample is complete and what it says. Does not own which tasks run, nor the formulas.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use napreduce_engine::{Attempt, Ratio, Span, Time};

use crate::hfsp::size::{self, Sample};

/// A reduce of a sample that executes.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Measure {
    attempt: u32,
    /// How long it had been at work when it was first heard of, and its progress then.
    begun: Span,
    progress: u32,
    /// What it will take in all, once that is known.
    time: Option<Span>,
}

/// How far the sample of one phase of a job is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Training {
    /// How many tasks are the sample; none of a job that needs none.
    pub target: u32,
    measures: BTreeMap<u32, Measure>,
}

impl Training {
    /// A sample of so many tasks.
    pub fn of(target: u32) -> Training {
        Training { target, measures: BTreeMap::new() }
    }

    /// The mean time of a task, once enough are done or measured: `done` of them, which were at work for
    /// `worked`.
    pub fn complete(&self, done: u32, worked: Span) -> Option<Ratio> {
        let times: Vec<Span> = self.measures.values().filter_map(|measure| measure.time).collect();
        if (done as usize) + times.len() < self.target as usize {
            return None;
        }
        let mut sample = Sample::of(Ratio::whole(worked.0), done);
        times.into_iter().for_each(|time| sample.add(Ratio::whole(time.0)));
        sample.mean()
    }

    /// A reduce reported progress. True if its time is known now and was not before; else, when it has just
    /// begun to execute, the time at which it is worth another look.
    pub fn progressed(&mut self, now: Time, attempt: &Attempt, delta: Span) -> (bool, Option<Time>) {
        let Some(progress) = attempt.progress_millionths() else { return (false, None) };
        let (index, number) = (attempt.id().task.index, attempt.id().number);
        let active = attempt.active_time(now);
        let known = self.measures.get_mut(&index).filter(|measure| measure.attempt == number);
        let Some(measure) = known else {
            self.measures.insert(index, Measure { attempt: number, begun: active, progress, time: None });
            return (false, Some(now + delta));
        };
        let executed = Span(active.0 - measure.begun.0.min(active.0));
        if measure.time.is_some() || executed < delta {
            return (false, None);
        }
        let share = Ratio::new(i128::from(progress) - i128::from(measure.progress), 1_000_000);
        let time = size::reduce_time(Ratio::whole(executed.0), share);
        measure.time = time.map(|time| Span(time.of_rounded(1)));
        (measure.time.is_some(), None)
    }

    /// A task is done or begins again: what it takes is counted with those done, or nothing is known of it.
    pub fn ended(&mut self, index: u32) {
        self.measures.remove(&index);
    }
}

/// The times of the tasks done last, of all jobs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Recent {
    times: VecDeque<Span>,
    total: u64,
}

impl Recent {
    /// So many tasks were done, at work for so long together; the last `most` are kept.
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

    /// Their mean; unknown of none.
    pub fn mean(&self) -> Option<Ratio> {
        (!self.times.is_empty()).then(|| Ratio::new(i128::from(self.total), self.times.len() as i128))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_complete_with_its_last_task() {
        let training = Training::of(3);
        assert_eq!(training.complete(2, Span(100)), None);
        assert_eq!(training.complete(3, Span(150)), Some(Ratio::whole(50)));
    }

    #[test]
    fn the_recent_mean_is_that_of_the_last_tasks() {
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

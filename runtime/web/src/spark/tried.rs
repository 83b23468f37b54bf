//! The attempts of a job, and what each of them took and moved, in Spark's kinds of it.
//!
//! Owns what of ours is which of Spark's figures: what a map reads is input, what it writes for reduces is
//! shuffle; what a reduce fetches is shuffle, what it writes is output. Of attempts that did not do their
//! tasks nothing is known that was moved. Does not own names of fields (`metrics`, `stages`, `executors`).

use napreduce_engine::TaskKind;
use napreduce_protocol::{AttemptSummary, JobDetail};

use crate::foreign::{Naptimes, TriedState};

/// An attempt, which Spark calls a task.
#[derive(Debug, Clone, Copy)]
pub struct Tried<'job> {
    /// Its number among all of the job, in the order in which they were launched.
    pub id: u64,
    pub attempt: &'job AttemptSummary,
    pub state: TriedState,
    pub spent: Spent,
}

impl Tried<'_> {
    pub fn kind(&self) -> TaskKind {
        self.attempt.attempt.task.kind
    }
}

/// All attempts of a job.
pub fn tried_of(job: &JobDetail, now_millis: u64) -> Vec<Tried<'_>> {
    let naptimes = Naptimes::of(job, now_millis);
    let has_reduces = job.summary.progress.reduce.tasks > 0;
    let one = |(id, attempt): (u64, _)| Tried {
        id,
        attempt,
        state: TriedState::of(attempt),
        spent: Spent::of(attempt, has_reduces, naptimes.millis(attempt.attempt), now_millis),
    };
    (0..).zip(&job.attempts).map(one).collect()
}

/// Bytes, and the records in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    pub bytes: u64,
    pub records: u64,
}

impl Moved {
    fn plus(self, other: Moved) -> Moved {
        let bytes = self.bytes.saturating_add(other.bytes);
        Moved { bytes, records: self.records.saturating_add(other.records) }
    }
}

/// What one attempt took and moved, or several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// From when it was launched until it ended, as are the others in milliseconds.
    pub took: u64,
    /// Of that, until its process began to work.
    pub delay: u64,
    /// Of that, suspended.
    pub napped: u64,
    pub processor_nanos: u64,
    pub input: Moved,
    pub output: Moved,
    pub fetched: Moved,
    /// What it waited for outputs of maps.
    pub fetch_wait: u64,
    pub shuffled: Moved,
}

impl Spent {
    fn of(attempt: &AttemptSummary, has_reduces: bool, napped: u64, now_millis: u64) -> Spent {
        let took = attempt.ended_millis.unwrap_or(now_millis).saturating_sub(attempt.launched_millis);
        let begun = attempt.started_micros().unwrap_or(0);
        let delay = (begun.saturating_sub(attempt.launched_micros()) / 1_000).min(took);
        let figures = attempt.figures.unwrap_or_default();
        let read = Moved { bytes: figures.input_bytes, records: figures.input_records };
        let wrote = Moved { bytes: figures.output_bytes, records: figures.output_records };
        let processor_nanos = figures.processor_millis.saturating_mul(1_000_000);
        let timed = Spent { took, delay, napped, processor_nanos, ..Spent::default() };
        match attempt.attempt.task.kind {
            TaskKind::Map if has_reduces => Spent { input: read, shuffled: wrote, ..timed },
            TaskKind::Map => Spent { input: read, output: wrote, ..timed },
            TaskKind::Reduce => {
                Spent { fetched: read, fetch_wait: figures.shuffle_millis.min(took), output: wrote, ..timed }
            }
        }
    }

    /// How long it worked, or was able to.
    pub fn ran(&self) -> u64 {
        self.took.saturating_sub(self.delay).saturating_sub(self.napped)
    }

    /// Of all of these together.
    pub fn sum<'all>(all: impl IntoIterator<Item = &'all Tried<'all>>) -> Spent {
        all.into_iter().fold(Spent::default(), |sum, tried| sum.plus(&tried.spent))
    }

    fn plus(self, other: &Spent) -> Spent {
        Spent {
            took: self.took.saturating_add(other.took),
            delay: self.delay.saturating_add(other.delay),
            napped: self.napped.saturating_add(other.napped),
            processor_nanos: self.processor_nanos.saturating_add(other.processor_nanos),
            input: self.input.plus(other.input),
            output: self.output.plus(other.output),
            fetched: self.fetched.plus(other.fetched),
            fetch_wait: self.fetch_wait.saturating_add(other.fetch_wait),
            shuffled: self.shuffled.plus(other.shuffled),
        }
    }
}

/// How many are where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub running: usize,
    pub done: usize,
    pub failed: usize,
    pub killed: usize,
}

impl Counts {
    pub fn of<'all>(all: impl IntoIterator<Item = &'all Tried<'all>>) -> Counts {
        let mut counts = Counts::default();
        for tried in all {
            match tried.state {
                TriedState::Running | TriedState::Scheduled => counts.running += 1,
                TriedState::Succeeded => counts.done += 1,
                TriedState::Failed => counts.failed += 1,
                TriedState::Killed => counts.killed += 1,
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::{AttemptFigures, AttemptMoments};

    use super::super::super::answers::samples::detail;
    use super::*;

    #[test]
    fn what_an_attempt_moved_is_input_shuffle_or_output() {
        let mut job = detail();
        let attempt = &mut job.attempts[0];
        attempt.figures = Some(AttemptFigures {
            input_bytes: 9,
            input_records: 3,
            output_bytes: 7,
            output_records: 2,
            shuffle_millis: 5,
            processor_millis: 4,
            spilled_records: 0,
        });
        let launched = attempt.launched_micros();
        attempt.moments = Some(AttemptMoments { launched, started: Some(launched + 200_000), ended: None });
        let spent = |job: &JobDetail| tried_of(job, 0)[0].spent;
        let (read, wrote) = (Moved { bytes: 9, records: 3 }, Moved { bytes: 7, records: 2 });
        let alone = spent(&job);
        assert_eq!((alone.input, alone.output, alone.shuffled), (read, wrote, Moved::default()));
        assert_eq!(
            (alone.took, alone.delay, alone.ran(), alone.processor_nanos),
            (1_200, 200, 1_000, 4_000_000)
        );
        job.summary.progress.reduce.tasks = 1;
        let map = spent(&job);
        assert_eq!((map.input, map.output, map.shuffled), (read, Moved::default(), wrote));
        job.attempts[0].attempt.task.kind = TaskKind::Reduce;
        let reduce = spent(&job);
        assert_eq!((reduce.input, reduce.fetched, reduce.output), (Moved::default(), read, wrote));
        assert_eq!(reduce.fetch_wait, 5);
        let most = Spent { took: u64::MAX, ..reduce };
        assert_eq!(most.plus(&most).took, u64::MAX);
    }
}

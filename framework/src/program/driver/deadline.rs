//! The deadline of a chain of jobs, shared among its jobs. The expected length of a job is that of earlier
//! runs of the same definition in this program.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use napreduce_engine::{Span, chain_share};
use napreduce_protocol::whole_micros;

/// The deadline of a chain of jobs.
#[derive(Debug)]
pub(super) struct ChainDeadline {
    due: Instant,
    /// Number and total duration of the runs of each definition.
    took: BTreeMap<String, (u32, Duration)>,
    /// Number of jobs still to run, including the next one, if the program has set it.
    to_come: Option<u32>,
}

impl ChainDeadline {
    /// Creates a deadline this long from now.
    pub fn of(lasts: Duration) -> Option<ChainDeadline> {
        let due = Instant::now().checked_add(lasts)?;
        Some(ChainDeadline {
            due,
            took: BTreeMap::new(),
            to_come: None,
        })
    }

    /// Sets how many jobs are still to run.
    pub fn expect(&mut self, jobs: u32) {
        self.to_come = Some(jobs);
    }

    /// Returns the time from submission to deadline of the next job; the last job writes the program's
    /// output.
    pub fn next(&self, definition: &str, is_last: bool) -> Duration {
        let left = self.due.saturating_duration_since(Instant::now());
        // At least one job has to write the output.
        let later = self
            .to_come
            .map_or(u32::from(!is_last), |jobs| jobs.saturating_sub(1));
        let took = self
            .took
            .get(definition)
            .map(|(runs, total)| span(*total / (*runs).max(1)));
        Duration::from_micros(chain_share(span(left), took, &vec![took; later as usize]).0)
    }

    /// Records the end of a job.
    pub fn ended(&mut self, definition: &str, took: Duration) {
        let (runs, total) = self.took.entry(definition.to_owned()).or_default();
        *runs += 1;
        *total += took;
        self.to_come = self.to_come.map(|jobs| jobs.saturating_sub(1));
    }
}

fn span(time: Duration) -> Span {
    Span(whole_micros(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    /// Returns the job's part of 1,000 s, in tens of seconds.
    fn part(chain: &ChainDeadline, name: &str, is_last: bool) -> f64 {
        (chain.next(name, is_last).as_secs_f64() / 10.0).round()
    }

    #[test]
    fn one_more_job_is_expected_before_output() {
        let mut chain = ChainDeadline::of(seconds(1_000)).expect("a finite deadline");
        assert_eq!(part(&chain, "count", false), 50.0);
        assert_eq!(part(&chain, "count", true), 100.0);
        chain.ended("count", seconds(100));
        assert_eq!(part(&chain, "sort", false), 50.0);
        assert_eq!(
            part(&chain, "count", false),
            90.0,
            "another round of 100 s comes"
        );
    }

    #[test]
    fn declared_number_of_jobs_is_expected() {
        let mut chain = ChainDeadline::of(seconds(1_000)).expect("a finite deadline");
        chain.expect(4);
        assert_eq!(part(&chain, "count", false), 25.0);
        chain.ended("count", seconds(200));
        assert_eq!(part(&chain, "count", false), 60.0, "two more of 200 s");
        chain.ended("count", seconds(100));
        assert_eq!(part(&chain, "count", false), 85.0, "one more of 150 s");
        chain.ended("count", seconds(100));
        assert_eq!(part(&chain, "count", true), 100.0);
    }

    #[test]
    fn late_chain_has_no_time_left() {
        let chain = ChainDeadline::of(Duration::ZERO).expect("a finite deadline");
        assert_eq!(chain.next("count", false), Duration::ZERO);
        assert!(
            ChainDeadline::of(Duration::MAX).is_none(),
            "the deadline overflows"
        );
    }
}

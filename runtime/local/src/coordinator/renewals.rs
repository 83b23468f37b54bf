//! The renewals of the leases of outputs: when they are due, and which of them hang.

use std::collections::{BTreeMap, VecDeque};

use napreduce_engine::JobId;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::output::RENEWAL;

/// Number of ticks over which the renewals of a round are spread: each needs a thread for a moment.
const TICKS: usize = 50;

/// The renewals of the leases of all jobs, in rounds.
pub(super) struct Renewals {
    round_began: Instant,
    /// Jobs of this round.
    waiting: VecDeque<JobId>,
    at_each_tick: usize,
    /// Renewals of this round and earlier ones, which may hang because the storage does.
    running: BTreeMap<JobId, JoinHandle<()>>,
}

impl Renewals {
    pub fn new(now: Instant) -> Renewals {
        Renewals {
            round_began: now,
            waiting: VecDeque::new(),
            at_each_tick: 0,
            running: BTreeMap::new(),
        }
    }

    /// Begins a round for these jobs, if it is time.
    pub fn begin_round_if_due(&mut self, now: Instant, jobs: impl Iterator<Item = JobId>) {
        if now.duration_since(self.round_began) < RENEWAL {
            return;
        }
        self.round_began = now;
        self.waiting = jobs.collect();
        self.at_each_tick = self.waiting.len().div_ceil(TICKS);
        self.running.retain(|_, renewal| !renewal.is_finished());
    }

    /// Returns the jobs whose leases are to be renewed at this tick. Leaves out those whose last renewal hangs.
    pub fn take_next(&mut self) -> Vec<JobId> {
        let count = self.at_each_tick.min(self.waiting.len());
        let next = self.waiting.drain(..count);
        next.filter(|job| !self.running.contains_key(job)).collect()
    }

    /// Notes the renewal of a job's lease, which was started.
    pub fn started(&mut self, job: JobId, renewal: JoinHandle<()>) {
        self.running.insert(job, renewal);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::time::Duration;

    use super::*;
    use crate::clock::now;
    use crate::world::World;

    /// Returns the jobs of a round that begins at this time, and the number of ticks that it takes.
    fn round(renewals: &mut Renewals, at: Instant, jobs: u32) -> (Vec<JobId>, usize) {
        renewals.begin_round_if_due(at, (1..=jobs).map(JobId));
        let mut renewed = Vec::new();
        let mut ticks = 0;
        while !renewals.waiting.is_empty() {
            renewed.extend(renewals.take_next());
            ticks += 1;
        }
        (renewed, ticks)
    }

    /// Another run may take an output whose lease was not renewed.
    #[test]
    fn each_job_is_renewed_at_each_interval() {
        let began = now();
        let mut renewals = Renewals::new(began);
        for interval in 1..4 {
            let due = began + RENEWAL * interval;
            let early = due - Duration::from_millis(1);
            assert_eq!(round(&mut renewals, early, 120), (Vec::new(), 0));
            let all: Vec<JobId> = (1..=120).map(JobId).collect();
            assert_eq!(round(&mut renewals, due, 120), (all, 40));
            assert_eq!(round(&mut renewals, due, 120), (Vec::new(), 0));
        }
    }

    #[tokio::test]
    async fn hanging_renewal_is_not_repeated_and_delays_no_other() {
        let began = now();
        let mut renewals = Renewals::new(began);
        let (first, _) = round(&mut renewals, began + RENEWAL, 2);
        assert_eq!(first, [JobId(1), JobId(2)]);
        let tasks = World::real().tasks;
        renewals.started(JobId(1), tasks.spawn(pending()));
        renewals.started(JobId(2), tasks.spawn(ready(())));
        tokio::task::yield_now().await;
        let (second, _) = round(&mut renewals, began + RENEWAL * 2, 3);
        assert_eq!(second, [JobId(2), JobId(3)]);
    }
}

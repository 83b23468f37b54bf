//! The virtual cluster: the progress of all jobs under fair sharing, in virtual time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use napreduce_engine::{JobId, SortedMap, SortedSet, Span, Time};

use crate::hfsp::shares::Shares;
use crate::hfsp::virtual_job::{VirtualJob, is_never, saturated};

/// Jobs share as many slots as the real cluster has, in whole tasks, until all their virtual tasks end. A job
/// that finishes in reality first stays until then; a job that finishes here first is *late*.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct VirtualCluster {
    now: Time,
    shares: Shares,
    /// A tree, as the members of a lane.
    jobs: BTreeMap<JobId, VirtualJob>,
    /// The next task end of each running job.
    ends: SortedSet<(Time, JobId)>,
    finished: Vec<(Time, JobId)>,
}

/// Finish times in the virtual cluster without further arrivals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projection {
    /// By job; `Time(u64::MAX)` for endless jobs.
    pub finishes: SortedMap<JobId, Time>,
    /// Number of virtual task ends that were simulated.
    pub steps: usize,
}

impl VirtualCluster {
    /// Creates an empty cluster of `slots`.
    pub fn new(slots: u32) -> VirtualCluster {
        VirtualCluster {
            shares: Shares::new(slots),
            ..VirtualCluster::default()
        }
    }

    pub fn slots(&self) -> u32 {
        self.shares.slots()
    }

    /// Returns the number of jobs that have not finished virtually.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Whether a job is here and has not finished virtually.
    pub fn contains(&self, job: JobId) -> bool {
        self.jobs.contains_key(&job)
    }

    /// Returns the jobs that have not finished virtually.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        self.jobs.keys().copied()
    }

    /// Returns the virtual slots of a job.
    pub fn allotted(&self, job: JobId) -> u32 {
        self.shares.allotted(job)
    }

    /// Returns the remaining virtual work of a job; zero if it finished or is unknown.
    pub fn remaining(&self, job: JobId) -> Span {
        self.jobs
            .get(&job)
            .map_or(Span::default(), |known| known.remaining(self.now))
    }

    /// Returns the jobs that finished since the last call, with their finish times; ties by submission.
    pub fn take_finished(&mut self) -> Vec<(Time, JobId)> {
        std::mem::take(&mut self.finished)
    }

    /// Advances virtual time. Slots are shared again at every virtual task end.
    pub fn age(&mut self, to: Time) {
        while self.ends.first().is_some_and(|&(end, _)| end <= to) {
            self.end_next();
        }
        self.now = self.now.max(to);
    }

    /// Adds a job with groups of task time and count.
    pub fn enter(&mut self, job: JobId, submitted: Time, weight: u32, groups: &[(Span, u32)]) {
        let known = VirtualJob::new(submitted, groups);
        self.shares.enter(job, submitted, weight, known.tasks());
        if known.tasks() == 0 {
            self.shares.leave(job);
            self.finished.push((self.now, job));
        } else {
            self.jobs.insert(job, known);
        }
        self.share();
        self.age(self.now);
    }

    /// Removes a cancelled job.
    pub fn leave(&mut self, job: JobId) {
        if let Some(end) = self.jobs.remove(&job).and_then(|known| known.next_end()) {
            self.ends.remove(&(end, job));
        }
        self.shares.leave(job);
        self.share();
    }

    /// Sets the mean task time of a job.
    pub fn resize(&mut self, job: JobId, task_size: Span) {
        let now = self.now;
        if let Some(known) = self.jobs.get_mut(&job) {
            let before = known.next_end();
            known.resize(task_size, now);
            reindex(&mut self.ends, job, before, known.next_end());
        }
        self.age(now);
    }

    pub fn set_slots(&mut self, slots: u32) {
        self.shares.set_slots(slots);
        self.share();
    }

    /// Simulates a copy until every job has finished or `steps_max` task ends are reached. The remaining jobs
    /// are then estimated at their current shares.
    pub fn project(&self, steps_max: usize) -> Projection {
        let mut ahead = self.clone();
        ahead.finished.clear();
        let mut steps = 0;
        while steps < steps_max && ahead.ends.first().is_some_and(|&(end, _)| !is_never(end)) {
            steps += ahead.end_next();
        }
        let mut finishes: SortedMap<JobId, Time> = ahead
            .finished
            .iter()
            .map(|&(finish, job)| (job, finish))
            .collect();
        for job in ahead.jobs.keys() {
            finishes.insert(*job, ahead.estimated_finish(*job));
        }
        Projection { finishes, steps }
    }

    /// Returns the finish time of a job at its current share; without a slot, at an equal part of all slots.
    /// `Time(u64::MAX)` for endless jobs.
    pub fn estimated_finish(&self, job: JobId) -> Time {
        let Some(known) = self.jobs.get(&job) else {
            return self.now;
        };
        if known.is_endless() {
            return Time(u64::MAX);
        }
        let left = u128::from(known.remaining(self.now).0);
        let slots = u128::from(self.slots());
        let wait = match u128::from(self.allotted(job)) {
            0 => (left * self.jobs.len() as u128)
                .checked_div(slots)
                .unwrap_or(u128::MAX),
            allotted => left / allotted,
        };
        self.now + Span(saturated(wait))
    }

    /// Advances to the next task end, ends those tasks and shares the slots again. Returns the number of
    /// ended groups.
    fn end_next(&mut self) -> usize {
        let Some(&(at, _)) = self.ends.first() else {
            return 0;
        };
        self.now = self.now.max(at);
        let mut ended = Vec::new();
        let mut groups = 0;
        while let Some(&(end, job)) = self.ends.first()
            && end == at
        {
            self.ends.pop_first();
            groups += 1;
            let Some(known) = self.jobs.get_mut(&job) else {
                continue;
            };
            let left = known.end_tasks(at);
            if let Some(next) = known.next_end() {
                self.ends.insert((next, job));
            }
            if left == 0 {
                ended.push((known.submitted, job));
                self.jobs.remove(&job);
                self.shares.leave(job);
            } else {
                self.shares.set_tasks(job, left);
            }
        }
        ended.sort_unstable();
        self.finished
            .extend(ended.into_iter().map(|(_, job)| (at, job)));
        self.share();
        groups
    }

    /// Runs as many tasks of each job as it has slots.
    fn share(&mut self) {
        for job in self.shares.settle() {
            let allotted = self.shares.allotted(job);
            let Some(known) = self.jobs.get_mut(&job) else {
                continue;
            };
            let before = known.next_end();
            known.run(allotted, self.now);
            reindex(&mut self.ends, job, before, known.next_end());
        }
    }
}

fn reindex(
    ends: &mut SortedSet<(Time, JobId)>,
    job: JobId,
    before: Option<Time>,
    after: Option<Time>,
) {
    if before == after {
        return;
    }
    if let Some(end) = before {
        ends.remove(&(end, job));
    }
    if let Some(end) = after {
        ends.insert((end, job));
    }
}

//! The virtual cluster: what every job would have done if they had shared the slots fairly.
//!
//! Owns virtual time, which jobs are in it and when they end there. Does not own what is done with that: the
//! order of the real jobs.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use napreduce_engine::{JobId, Span, Time};

use crate::hfsp::shares::Shares;
use crate::hfsp::virtual_job::{VirtualJob, is_never, saturated};

/// Jobs that share as many slots as the real cluster has, whole tasks at a time, until all of their virtual
/// tasks ended. A job that ends in reality first stays until then; one that ends here first is *late*.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct VirtualCluster {
    now: Time,
    shares: Shares,
    jobs: BTreeMap<JobId, VirtualJob>,
    /// When the next task of each running job ends.
    ends: BTreeSet<(Time, JobId)>,
    finished: Vec<(Time, JobId)>,
}

/// When jobs will end in the virtual cluster if no other comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projection {
    /// By job; an endless one ends at the end of time.
    pub finishes: BTreeMap<JobId, Time>,
    /// How many ends of virtual tasks were gone through for it.
    pub steps: usize,
}

impl VirtualCluster {
    /// An empty cluster of so many slots.
    pub fn new(slots: u32) -> VirtualCluster {
        VirtualCluster { shares: Shares::new(slots), ..VirtualCluster::default() }
    }

    pub fn slots(&self) -> u32 {
        self.shares.slots()
    }

    /// How many jobs have not ended virtually.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether every job ended virtually.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Whether a job is here and has not ended virtually.
    pub fn contains(&self, job: JobId) -> bool {
        self.jobs.contains_key(&job)
    }

    /// The jobs that have not ended virtually.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        self.jobs.keys().copied()
    }

    /// How many virtual slots a job has.
    pub fn allotted(&self, job: JobId) -> u32 {
        self.shares.allotted(job)
    }

    /// What is left of a job virtually, over all of its tasks; nothing of one that ended or was never here.
    pub fn remaining(&self, job: JobId) -> Span {
        self.jobs.get(&job).map_or(Span::default(), |known| known.remaining(self.now))
    }

    /// The jobs that ended since they were last taken, and when: in the order in which they did, those of one
    /// instant by submission.
    pub fn take_finished(&mut self) -> Vec<(Time, JobId)> {
        std::mem::take(&mut self.finished)
    }

    /// Lets time pass. Where a virtual task ends the slots are shared anew, so that nobody loses too little
    /// or too much.
    pub fn age(&mut self, to: Time) {
        while self.ends.first().is_some_and(|&(end, _)| end <= to) {
            self.end_next();
        }
        self.now = self.now.max(to);
    }

    /// A job comes, with so many tasks of each length.
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

    /// A job goes that will not be done.
    pub fn leave(&mut self, job: JobId) {
        if let Some(end) = self.jobs.remove(&job).and_then(|known| known.next_end()) {
            self.ends.remove(&(end, job));
        }
        self.shares.leave(job);
        self.share();
    }

    /// The tasks of a job are of another size, in the mean.
    pub fn resize(&mut self, job: JobId, task_size: Span) {
        let now = self.now;
        if let Some(known) = self.jobs.get_mut(&job) {
            let before = known.next_end();
            known.resize(task_size, now);
            relist(&mut self.ends, job, before, known.next_end());
        }
        self.age(now);
    }

    /// Another number of slots.
    pub fn set_slots(&mut self, slots: u32) {
        self.shares.set_slots(slots);
        self.share();
    }

    /// Runs a copy of it forward until every job ended, or so many ends of tasks were gone through: the rest
    /// is then projected as if every job kept its share.
    pub fn project(&self, steps_max: usize) -> Projection {
        let mut ahead = self.clone();
        ahead.finished.clear();
        let mut steps = 0;
        while steps < steps_max && ahead.ends.first().is_some_and(|&(end, _)| !is_never(end)) {
            steps += ahead.end_next();
        }
        let mut finishes: BTreeMap<JobId, Time> =
            ahead.finished.iter().map(|&(finish, job)| (job, finish)).collect();
        finishes.extend(ahead.jobs.keys().map(|&job| (job, ahead.estimated_finish(job))));
        Projection { finishes, steps }
    }

    /// When a job ends if it keeps its share; without a slot, if it got an equal part of all. The end of time
    /// for one that is endless.
    pub fn estimated_finish(&self, job: JobId) -> Time {
        let Some(known) = self.jobs.get(&job) else { return self.now };
        if known.is_endless() {
            return Time(u64::MAX);
        }
        let left = u128::from(known.remaining(self.now).0);
        let slots = u128::from(self.slots());
        let wait = match u128::from(self.allotted(job)) {
            0 => (left * self.jobs.len() as u128).checked_div(slots).unwrap_or(u128::MAX),
            allotted => left / allotted,
        };
        self.now + Span(saturated(wait))
    }

    /// Goes to the next time at which tasks end, ends them, and shares the slots anew; says how many groups
    /// ended.
    fn end_next(&mut self) -> usize {
        let Some(&(at, _)) = self.ends.first() else { return 0 };
        self.now = self.now.max(at);
        let (mut gone, mut groups) = (Vec::new(), 0);
        while let Some(&(end, job)) = self.ends.first()
            && end == at
        {
            self.ends.pop_first();
            groups += 1;
            let Some(known) = self.jobs.get_mut(&job) else { continue };
            let left = known.end_tasks(at);
            if let Some(next) = known.next_end() {
                self.ends.insert((next, job));
            }
            if left == 0 {
                gone.push((known.submitted, job));
                self.jobs.remove(&job);
                self.shares.leave(job);
            } else {
                self.shares.set_tasks(job, left);
            }
        }
        gone.sort_unstable();
        self.finished.extend(gone.into_iter().map(|(_, job)| (at, job)));
        self.share();
        groups
    }

    /// Runs as many tasks of each job as it has slots.
    fn share(&mut self) {
        for job in self.shares.settle() {
            let allotted = self.shares.allotted(job);
            let Some(known) = self.jobs.get_mut(&job) else { continue };
            let before = known.next_end();
            known.run(allotted, self.now);
            relist(&mut self.ends, job, before, known.next_end());
        }
    }
}

fn relist(ends: &mut BTreeSet<(Time, JobId)>, job: JobId, before: Option<Time>, after: Option<Time>) {
    if before != after {
        before.map(|end| ends.remove(&(end, job)));
        after.map(|end| ends.insert((end, job)));
    }
}

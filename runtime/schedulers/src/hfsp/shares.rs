//! Whole slots shared between jobs, max-min: one slot at a time, round after round, to the jobs with the
//! fewest tasks left first.
//!
//! Owns how many slots each job has, and changes it a slot at a time when a job comes, goes or has fewer
//! tasks left. Does not own what the slots are used for.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use napreduce_core::{JobId, Time};

/// The largest weight: products of two fit the exact comparison of turns.
pub const WEIGHT_MAX: u32 = 1 << 16;

/// The turn at which a job gets a slot: the round, then fewer tasks left, then earlier submitted.
type ShareKey = (u64, u32, Time, JobId);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Share {
    tasks: u32,
    allotted: u32,
    weight: u32,
    submitted: Time,
}

/// The slots of a virtual cluster, shared between the jobs in it.
///
/// Giving one slot after another to the job whose turn is least takes the least turns of all, so the result
/// does not depend on what was given before: a change is worked in by exchanging slots until no turn that was
/// given is above one that was not. Most changes move one slot or none.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Shares {
    slots: u32,
    given: u32,
    jobs: BTreeMap<JobId, Share>,
    /// The next turn of each job that could use another slot.
    next: BTreeSet<ShareKey>,
    /// The last turn given to each job that has a slot.
    last: BTreeSet<ShareKey>,
    changed: BTreeSet<JobId>,
}

impl Share {
    /// The round of the slot after `allotted` others. Proportional to one over the weight, and exact enough
    /// to compare any two of them for weights up to `WEIGHT_MAX`.
    fn turn(&self, job: JobId, allotted: u32) -> ShareKey {
        ((u64::from(allotted) << 32) / u64::from(self.weight), self.tasks, self.submitted, job)
    }
}

impl Shares {
    pub fn new(slots: u32) -> Shares {
        Shares { slots, ..Shares::default() }
    }

    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Another number of slots.
    pub fn set_slots(&mut self, slots: u32) {
        self.slots = slots;
    }

    /// A job comes. Its weight is at least 1 and at most `WEIGHT_MAX`; others count as the nearest of the
    /// two.
    pub fn enter(&mut self, job: JobId, submitted: Time, weight: u32, tasks: u32) {
        self.leave(job);
        let weight = weight.clamp(1, WEIGHT_MAX);
        self.jobs.insert(job, Share { tasks, allotted: 0, weight, submitted });
        self.list(job);
    }

    /// A job goes.
    pub fn leave(&mut self, job: JobId) {
        self.unlist(job);
        if let Some(share) = self.jobs.remove(&job) {
            self.given -= share.allotted;
        }
        self.changed.remove(&job);
    }

    /// A job has so many tasks left.
    pub fn set_tasks(&mut self, job: JobId, tasks: u32) {
        self.unlist(job);
        if let Some(share) = self.jobs.get_mut(&job) {
            let freed = share.allotted.saturating_sub(tasks);
            share.tasks = tasks;
            share.allotted -= freed;
            self.given -= freed;
            self.changed.insert(job);
        }
        self.list(job);
    }

    /// How many slots a job has.
    pub fn allotted(&self, job: JobId) -> u32 {
        self.jobs.get(&job).map_or(0, |share| share.allotted)
    }

    /// Works in what changed, and returns the jobs that have or may have other shares than before, in order.
    pub fn settle(&mut self) -> BTreeSet<JobId> {
        while self.given > self.slots {
            let Some(&(.., job)) = self.last.last() else { break };
            self.set_allotted(job, |allotted| allotted - 1);
        }
        while self.given < self.slots {
            let Some(&(.., job)) = self.next.first() else { break };
            self.set_allotted(job, |allotted| allotted + 1);
        }
        while let (Some(&last), Some(&next)) = (self.last.last(), self.next.first())
            && next < last
        {
            self.set_allotted(last.3, |allotted| allotted - 1);
            self.set_allotted(next.3, |allotted| allotted + 1);
        }
        std::mem::take(&mut self.changed)
    }

    fn set_allotted(&mut self, job: JobId, change: impl Fn(u32) -> u32) {
        self.unlist(job);
        if let Some(share) = self.jobs.get_mut(&job) {
            let before = share.allotted;
            share.allotted = change(before);
            self.given = self.given - before + share.allotted;
            self.changed.insert(job);
        }
        self.list(job);
    }

    fn list(&mut self, job: JobId) {
        let Some(share) = self.jobs.get(&job) else { return };
        if share.allotted < share.tasks {
            self.next.insert(share.turn(job, share.allotted));
        }
        if share.allotted > 0 {
            self.last.insert(share.turn(job, share.allotted - 1));
        }
    }

    fn unlist(&mut self, job: JobId) {
        let Some(share) = self.jobs.get(&job) else { return };
        self.next.remove(&share.turn(job, share.allotted));
        if share.allotted > 0 {
            self.last.remove(&share.turn(job, share.allotted - 1));
        }
    }
}

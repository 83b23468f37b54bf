//! Whole slots shared between jobs, max-min: one slot at a time, round after round, to the jobs with the
//! fewest tasks left first.
//!
//! Owns how many slots each job has, and changes it a slot at a time when a job comes, goes or has fewer
//! tasks left. Does not own what the slots are used for.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use napreduce_engine::{JobId, Time};

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
    changed: Vec<JobId>,
}

impl Share {
    /// The round of the slot after `allotted` others. Proportional to one over the weight, and exact enough
    /// to compare any two of them for weights up to `WEIGHT_MAX`.
    fn turn(&self, job: JobId, allotted: u32) -> ShareKey {
        ((u64::from(allotted) << 32) / u64::from(self.weight), self.tasks, self.submitted, job)
    }

    /// Its next turn if it could use another slot, and the last one it was given.
    fn turns(&self, job: JobId) -> [Option<ShareKey>; 2] {
        let next = (self.allotted < self.tasks).then(|| self.turn(job, self.allotted));
        let last = self.allotted.checked_sub(1).map(|before| self.turn(job, before));
        [next, last]
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
        let share = Share { tasks, allotted: 0, weight, submitted };
        self.relist([None, None], share.turns(job));
        self.jobs.insert(job, share);
    }

    /// A job goes.
    pub fn leave(&mut self, job: JobId) {
        if let Some(share) = self.jobs.remove(&job) {
            self.given -= share.allotted;
            self.relist(share.turns(job), [None, None]);
        }
        self.changed.retain(|changed| *changed != job);
    }

    /// A job has so many tasks left.
    pub fn set_tasks(&mut self, job: JobId, tasks: u32) {
        self.change(job, |share| {
            share.tasks = tasks;
            share.allotted = share.allotted.min(tasks);
        });
    }

    /// How many slots a job has.
    pub fn allotted(&self, job: JobId) -> u32 {
        self.jobs.get(&job).map_or(0, |share| share.allotted)
    }

    /// Works in what changed, and returns the jobs that have or may have other shares than before, in order.
    pub fn settle(&mut self) -> Vec<JobId> {
        while self.given > self.slots {
            let Some(&(.., job)) = self.last.last() else { break };
            self.change(job, |share| share.allotted -= 1);
        }
        while self.given < self.slots {
            let Some(&(.., job)) = self.next.first() else { break };
            self.change(job, |share| share.allotted += 1);
        }
        while let (Some(&last), Some(&next)) = (self.last.last(), self.next.first())
            && next < last
        {
            self.change(last.3, |share| share.allotted -= 1);
            self.change(next.3, |share| share.allotted += 1);
        }
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    fn change(&mut self, job: JobId, change: impl FnOnce(&mut Share)) {
        let Some(share) = self.jobs.get_mut(&job) else { return };
        let (before, allotted) = (share.turns(job), share.allotted);
        change(share);
        self.given = self.given - allotted + share.allotted;
        self.changed.push(job);
        let after = share.turns(job);
        self.relist(before, after);
    }

    fn relist(&mut self, before: [Option<ShareKey>; 2], after: [Option<ShareKey>; 2]) {
        let lists = [&mut self.next, &mut self.last];
        for (list, (before, after)) in lists.into_iter().zip(before.into_iter().zip(after)) {
            if before != after {
                before.map(|turn| list.remove(&turn));
                after.map(|turn| list.insert(turn));
            }
        }
    }
}

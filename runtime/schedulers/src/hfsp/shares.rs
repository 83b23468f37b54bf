//! Max-min sharing of whole slots between jobs: one slot at a time, round after round, to the jobs with the
//! fewest tasks left first. Updates are incremental.

use serde::{Deserialize, Serialize};

use napreduce_engine::{JobId, SortedMap, SortedSet, Time};

/// The largest weight: turns then compare exactly.
pub const WEIGHT_MAX: u32 = 1 << 16;

/// The turn at which a job gets a slot: round, tasks left, submission.
type ShareKey = (u64, u32, Time, JobId);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Share {
    tasks: u32,
    allotted: u32,
    weight: u32,
    submitted: Time,
}

/// The slots of a virtual cluster and their allotment.
///
/// Slots go to the least turns, so the result does not depend on the order of changes. After a change slots
/// are exchanged until no allotted turn is above an unallotted one. Most changes move at most one slot.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Shares {
    slots: u32,
    given: u32,
    jobs: SortedMap<JobId, Share>,
    /// The next turn of each job that can use another slot.
    next: SortedSet<ShareKey>,
    /// The last allotted turn of each job that has a slot.
    last: SortedSet<ShareKey>,
    changed: Vec<JobId>,
}

impl Share {
    /// Returns the turn of the slot after `allotted` others, proportional to 1/weight. Exact enough to
    /// compare any two turns for weights up to `WEIGHT_MAX`.
    fn turn(&self, job: JobId, allotted: u32) -> ShareKey {
        (
            (u64::from(allotted) << 32) / u64::from(self.weight),
            self.tasks,
            self.submitted,
            job,
        )
    }

    /// Returns the next turn, if the job can use another slot, and the last allotted one.
    fn turns(&self, job: JobId) -> [Option<ShareKey>; 2] {
        let next = (self.allotted < self.tasks).then(|| self.turn(job, self.allotted));
        let last = self
            .allotted
            .checked_sub(1)
            .map(|before| self.turn(job, before));
        [next, last]
    }
}

impl Shares {
    pub fn new(slots: u32) -> Shares {
        Shares {
            slots,
            ..Shares::default()
        }
    }

    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Sets the number of slots; takes effect in [`Shares::settle`].
    pub fn set_slots(&mut self, slots: u32) {
        self.slots = slots;
    }

    /// Adds a job. The weight is clamped to 1..=`WEIGHT_MAX`.
    pub fn enter(&mut self, job: JobId, submitted: Time, weight: u32, tasks: u32) {
        self.leave(job);
        let weight = weight.clamp(1, WEIGHT_MAX);
        let share = Share {
            tasks,
            allotted: 0,
            weight,
            submitted,
        };
        self.reindex([None, None], share.turns(job));
        self.jobs.insert(job, share);
    }

    /// Removes a job.
    pub fn leave(&mut self, job: JobId) {
        if let Some(share) = self.jobs.remove(&job) {
            self.given -= share.allotted;
            self.reindex(share.turns(job), [None, None]);
        }
        self.changed.retain(|changed| *changed != job);
    }

    /// Sets the number of tasks left of a job.
    pub fn set_tasks(&mut self, job: JobId, tasks: u32) {
        self.change(job, |share| {
            share.tasks = tasks;
            share.allotted = share.allotted.min(tasks);
        });
    }

    /// Returns the slots of a job.
    pub fn allotted(&self, job: JobId) -> u32 {
        self.jobs.get(&job).map_or(0, |share| share.allotted)
    }

    /// Applies all changes. Returns the jobs whose allotment may have changed, in order.
    pub fn settle(&mut self) -> Vec<JobId> {
        while self.given > self.slots {
            let Some(&(.., job)) = self.last.last() else {
                break;
            };
            self.change(job, |share| share.allotted -= 1);
        }
        while self.given < self.slots {
            let Some(&(.., job)) = self.next.first() else {
                break;
            };
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
        let Some(share) = self.jobs.get_mut(&job) else {
            return;
        };
        let before = share.turns(job);
        let allotted = share.allotted;
        change(share);
        self.given = self.given - allotted + share.allotted;
        self.changed.push(job);
        let after = share.turns(job);
        self.reindex(before, after);
    }

    fn reindex(&mut self, before: [Option<ShareKey>; 2], after: [Option<ShareKey>; 2]) {
        replace(&mut self.next, before[0], after[0]);
        replace(&mut self.last, before[1], after[1]);
    }
}

/// Replaces the turn of a job in a list.
fn replace(list: &mut SortedSet<ShareKey>, before: Option<ShareKey>, after: Option<ShareKey>) {
    if before == after {
        return;
    }
    if let Some(turn) = before {
        list.remove(&turn);
    }
    if let Some(turn) = after {
        list.insert(turn);
    }
}

//! The tasks of a job in the virtual cluster, in groups of equal remaining time.
//!
//! Owns which of them run when the job has a number of virtual slots: those with the least left. Does not own
//! that number, nor virtual time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use napreduce_core::{Span, Time};

/// The size of a task of which nothing is known and that is to count as endless.
pub const ENDLESS: Span = Span(u64::MAX);

/// From here on a time is never reached: what is left of an endless task, whatever was run of it.
const NEVER: u64 = u64::MAX / 2;

/// Whether a time is the end of an endless task.
pub fn is_never(time: Time) -> bool {
    time.0 >= NEVER
}

/// Groups of equal virtual tasks. What runs is kept by when it ends, so that time passes without a change;
/// what does not is kept by what is left. Nothing that runs has more left than anything that does not.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VirtualJob {
    /// When it was submitted; ties are decided by it.
    pub submitted: Time,
    /// The time of one task, in the mean, before any of it was run.
    task_size: Span,
    ends: BTreeMap<Time, u32>,
    halted: BTreeMap<Span, u32>,
    running: u32,
    tasks: u32,
}

impl VirtualJob {
    /// A job none of whose tasks runs: how many there are of each length.
    pub fn new(submitted: Time, groups: &[(Span, u32)]) -> VirtualJob {
        let mut halted = BTreeMap::new();
        let (mut tasks, mut size) = (0_u32, 0_u128);
        for &(length, count) in groups.iter().filter(|(_, count)| *count > 0) {
            *halted.entry(length).or_insert(0) += count;
            tasks += count;
            size += u128::from(length.0) * u128::from(count);
        }
        let task_size = Span(saturated(size.checked_div(u128::from(tasks)).unwrap_or(0)));
        VirtualJob { submitted, task_size, ends: BTreeMap::new(), halted, running: 0, tasks }
    }

    /// How many tasks have not ended virtually.
    pub fn tasks(&self) -> u32 {
        self.tasks
    }

    /// When the next of its tasks ends if nothing changes.
    pub fn next_end(&self) -> Option<Time> {
        self.ends.first_key_value().map(|(end, _)| *end)
    }

    /// Ends the tasks that end at a time, and returns how many are left.
    pub fn end_tasks(&mut self, at: Time) -> u32 {
        if let Some(count) = self.ends.remove(&at) {
            self.running -= count;
            self.tasks -= count;
        }
        self.tasks
    }

    /// Runs so many tasks from now on.
    pub fn run(&mut self, slots: u32, now: Time) {
        while self.running < slots
            && let Some(mut least) = self.halted.first_entry()
        {
            let count = (*least.get()).min(slots - self.running);
            *self.ends.entry(now + *least.key()).or_insert(0) += count;
            self.running += count;
            *least.get_mut() -= count;
            if *least.get() == 0 {
                least.remove();
            }
        }
        while self.running > slots
            && let Some(mut most) = self.ends.last_entry()
        {
            let count = (*most.get()).min(self.running - slots);
            *self.halted.entry(most.key().since(now)).or_insert(0) += count;
            self.running -= count;
            *most.get_mut() -= count;
            if *most.get() == 0 {
                most.remove();
            }
        }
    }

    /// What is left of all tasks together.
    pub fn remaining(&self, now: Time) -> Span {
        let running = self.ends.iter().map(|(end, count)| (end.since(now), *count));
        let all = running.chain(self.halted.iter().map(|(left, count)| (*left, *count)));
        let sum =
            all.fold(0_u128, |sum, (left, count)| sum.saturating_add(u128::from(left.0) * u128::from(count)));
        Span(saturated(sum))
    }

    /// Whether its size is not known and counts as endless.
    pub fn is_endless(&self) -> bool {
        self.task_size.0 >= NEVER
    }

    /// Another size of a task, in the mean; each keeps the share of it that was run virtually.
    pub fn resize(&mut self, task_size: Span, now: Time) {
        let slots = self.running;
        self.run(0, now);
        let before = u128::from(self.task_size.0);
        let halted = std::mem::take(&mut self.halted);
        for (left, count) in halted {
            let scaled = match before {
                _ if self.is_endless() || task_size.0 >= NEVER || before == 0 => task_size,
                _ => Span(saturated((u128::from(left.0) * u128::from(task_size.0)).div_ceil(before))),
            };
            *self.halted.entry(scaled).or_insert(0) += count;
        }
        self.task_size = task_size;
        self.run(slots, now);
    }
}

pub(super) fn saturated(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

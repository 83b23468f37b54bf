//! The tasks of a job in the virtual cluster, in groups of equal remaining time.
//!
//! Owns which of them run when the job has a number of virtual slots: those with the least left. Does not own
//! that number, nor virtual time.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use napreduce_engine::{Span, Time};

/// The size of a task of which nothing is known and that is to count as endless.
pub const ENDLESS: Span = Span(u64::MAX);

/// From here on a time is never reached: what is left of an endless task, whatever was run of it.
const NEVER: u64 = u64::MAX / 2;

/// Whether a time is the end of an endless task.
pub fn is_never(time: Time) -> bool {
    time.0 >= NEVER
}

/// Groups of tasks by a time, least first, and how many are in each. They come and go at the ends.
type Groups<T> = VecDeque<(T, u32)>;

/// Groups of equal virtual tasks. What runs is kept by when it ends, so that time passes without a change;
/// what does not is kept by what is left. Nothing that runs has more left than anything that does not.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VirtualJob {
    /// When it was submitted; ties are decided by it.
    pub submitted: Time,
    /// The time of one task, in the mean, before any of it was run.
    task_size: Span,
    #[serde(with = "as_map")]
    ends: Groups<Time>,
    #[serde(with = "as_map")]
    halted: Groups<Span>,
    running: u32,
    tasks: u32,
}

impl VirtualJob {
    /// A job none of whose tasks runs: how many there are of each length.
    pub fn new(submitted: Time, groups: &[(Span, u32)]) -> VirtualJob {
        let mut halted = Groups::new();
        let (mut tasks, mut size) = (0_u32, 0_u128);
        for &(length, count) in groups.iter().filter(|(_, count)| *count > 0) {
            add(&mut halted, length, count);
            tasks += count;
            size += u128::from(length.0) * u128::from(count);
        }
        let task_size = Span(saturated(size.checked_div(u128::from(tasks)).unwrap_or(0)));
        VirtualJob { submitted, task_size, ends: Groups::new(), halted, running: 0, tasks }
    }

    /// How many tasks have not ended virtually.
    pub fn tasks(&self) -> u32 {
        self.tasks
    }

    /// When the next of its tasks ends if nothing changes.
    pub fn next_end(&self) -> Option<Time> {
        self.ends.front().map(|(end, _)| *end)
    }

    /// Ends the tasks that end at a time, and returns how many are left.
    pub fn end_tasks(&mut self, at: Time) -> u32 {
        if let Ok(place) = self.ends.binary_search_by_key(&at, |(end, _)| *end)
            && let Some((_, count)) = self.ends.remove(place)
        {
            self.running -= count;
            self.tasks -= count;
        }
        self.tasks
    }

    /// Runs so many tasks from now on.
    pub fn run(&mut self, slots: u32, now: Time) {
        while self.running < slots
            && let Some((left, waiting)) = self.halted.front_mut()
        {
            let (left, count) = (*left, (*waiting).min(slots - self.running));
            *waiting -= count;
            if *waiting == 0 {
                self.halted.pop_front();
            }
            self.running += count;
            add(&mut self.ends, now + left, count);
        }
        while self.running > slots
            && let Some((end, at_work)) = self.ends.back_mut()
        {
            let (end, count) = (*end, (*at_work).min(self.running - slots));
            *at_work -= count;
            if *at_work == 0 {
                self.ends.pop_back();
            }
            self.running -= count;
            add(&mut self.halted, end.since(now), count);
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
            add(&mut self.halted, scaled, count);
        }
        self.task_size = task_size;
        self.run(slots, now);
    }
}

/// Adds tasks to the group of a time.
fn add<T: Ord + Copy>(groups: &mut Groups<T>, time: T, count: u32) {
    match groups.binary_search_by_key(&time, |(known, _)| *known) {
        Ok(place) => groups[place].1 += count,
        Err(place) => groups.insert(place, (time, count)),
    }
}

/// Groups as a map: so they are saved.
mod as_map {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Groups;

    pub fn serialize<T: Serialize, S: Serializer>(
        groups: &Groups<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(groups.iter().map(|(time, count)| (time, count)))
    }

    pub fn deserialize<'de, T: Deserialize<'de> + Ord, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Groups<T>, D::Error> {
        Ok(BTreeMap::deserialize(deserializer)?.into_iter().collect())
    }
}

pub(super) fn saturated(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

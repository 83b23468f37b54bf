//! A job in the virtual cluster: its tasks in groups of equal remaining time. The tasks with the least
//! remaining time run first.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use napreduce_engine::{Span, Time};

/// The time of a task of unknown size that counts as endless.
pub const ENDLESS: Span = Span(u64::MAX);

/// Times from here on are never reached, whatever part of an endless task has run.
const NEVER: u64 = u64::MAX / 2;

/// Whether a time is the end of an endless task.
pub fn is_never(time: Time) -> bool {
    time.0 >= NEVER
}

/// Tasks per time, least first. Groups are added and removed at both ends.
type Groups<T> = VecDeque<(T, u32)>;

/// Running tasks are stored by end time, so that passing time changes nothing; halted ones by remaining time.
/// No running task has more remaining time than a halted one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VirtualJob {
    /// Breaks ties.
    pub submitted: Time,
    /// Mean time of a task at its start.
    task_size: Span,
    #[serde(with = "as_map")]
    ends: Groups<Time>,
    #[serde(with = "as_map")]
    halted: Groups<Span>,
    running: u32,
    tasks: u32,
}

impl VirtualJob {
    /// Creates a job without running tasks, from groups of task time and count.
    pub fn new(submitted: Time, groups: &[(Span, u32)]) -> VirtualJob {
        let mut halted = Groups::new();
        let mut tasks = 0_u32;
        let mut size = 0_u128;
        for &(length, count) in groups.iter().filter(|(_, count)| *count > 0) {
            add(&mut halted, length, count);
            tasks += count;
            size += u128::from(length.0) * u128::from(count);
        }
        let task_size = Span(saturated(size.checked_div(u128::from(tasks)).unwrap_or(0)));
        VirtualJob {
            submitted,
            task_size,
            ends: Groups::new(),
            halted,
            running: 0,
            tasks,
        }
    }

    /// Returns the number of tasks that have not ended.
    pub fn tasks(&self) -> u32 {
        self.tasks
    }

    /// Returns the next task end.
    pub fn next_end(&self) -> Option<Time> {
        self.ends.front().map(|(end, _)| *end)
    }

    /// Ends the tasks due at `at`; returns the number of tasks left.
    pub fn end_tasks(&mut self, at: Time) -> u32 {
        if let Ok(place) = self.ends.binary_search_by_key(&at, |(end, _)| *end)
            && let Some((_, count)) = self.ends.remove(place)
        {
            self.running -= count;
            self.tasks -= count;
        }
        self.tasks
    }

    /// Sets the number of running tasks.
    pub fn run(&mut self, slots: u32, now: Time) {
        while self.running < slots
            && let Some((left, waiting)) = self.halted.front_mut()
        {
            let left = *left;
            let count = (*waiting).min(slots - self.running);
            *waiting -= count;
            if *waiting == 0 {
                self.halted.pop_front();
            }
            self.running += count;
            add(&mut self.ends, now + left, count);
        }
        while self.running > slots
            && let Some((end, running)) = self.ends.back_mut()
        {
            let end = *end;
            let count = (*running).min(self.running - slots);
            *running -= count;
            if *running == 0 {
                self.ends.pop_back();
            }
            self.running -= count;
            add(&mut self.halted, end.since(now), count);
        }
    }

    /// Returns the total remaining time.
    pub fn remaining(&self, now: Time) -> Span {
        let running = self
            .ends
            .iter()
            .map(|(end, count)| (end.since(now), *count));
        let all = running.chain(self.halted.iter().map(|(left, count)| (*left, *count)));
        let sum = all.fold(0_u128, |sum, (left, count)| {
            sum.saturating_add(u128::from(left.0) * u128::from(count))
        });
        Span(saturated(sum))
    }

    /// Whether its size is unknown and counts as endless.
    pub fn is_endless(&self) -> bool {
        self.task_size.0 >= NEVER
    }

    /// Sets the mean task time; each task keeps its completed fraction.
    pub fn resize(&mut self, task_size: Span, now: Time) {
        let slots = self.running;
        self.run(0, now);
        let before = u128::from(self.task_size.0);
        let halted = std::mem::take(&mut self.halted);
        for (left, count) in halted {
            let scaled = match before {
                _ if self.is_endless() || task_size.0 >= NEVER || before == 0 => task_size,
                _ => Span(saturated(
                    (u128::from(left.0) * u128::from(task_size.0)).div_ceil(before),
                )),
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

/// Serializes groups as a map.
mod as_map {
    use napreduce_engine::SortedMap;
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
        Ok(SortedMap::deserialize(deserializer)?.into_iter().collect())
    }
}

pub(super) fn saturated(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

//! Algorithm 2: which reduce gets a free slot, with the patience that brings preempted ones back to their
//! worker.
//!
//! Owns the counters of declined opportunities. Does not own the order of jobs.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// What to do with a slot that is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchChoice<T> {
    /// Go on with a task on the worker where it was preempted.
    Return(T),
    /// Start a task that was never launched.
    Fresh,
    /// Go on with a task elsewhere than where it was preempted.
    Migrate(T),
}

/// A preempted task that waits, and how many opportunities its job had declined when it began to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Waiting<T, W> {
    task: T,
    worker: W,
    since: u64,
}

/// The preempted tasks of one job.
///
/// Each task counts the opportunities that were declined for it. All of them decline the same ones, so it is
/// enough to count once for the job and to remember from where each task counts: the oldest has always
/// declined the most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de> + Ord, W: Deserialize<'de> + Ord"))]
pub struct PreemptedTasks<T, W> {
    /// By a number that grows, so that the oldest comes first.
    waiting: BTreeMap<u64, Waiting<T, W>>,
    numbers: BTreeMap<T, u64>,
    here: BTreeSet<(W, u64)>,
    next_number: u64,
    declined: u64,
}

impl<T, W> Default for PreemptedTasks<T, W> {
    fn default() -> PreemptedTasks<T, W> {
        PreemptedTasks {
            waiting: BTreeMap::new(),
            numbers: BTreeMap::new(),
            here: BTreeSet::new(),
            next_number: 0,
            declined: 0,
        }
    }
}

impl<T: Copy + Ord, W: Copy + Ord> PreemptedTasks<T, W> {
    /// A task was preempted on a worker; it begins to wait, behind all that do already.
    pub fn wait(&mut self, task: T, worker: W) {
        self.stop_waiting(task);
        let number = self.next_number;
        self.next_number += 1;
        self.waiting.insert(number, Waiting { task, worker, since: self.declined });
        self.numbers.insert(task, number);
        self.here.insert((worker, number));
    }

    /// A task goes on, or never will.
    pub fn stop_waiting(&mut self, task: T) {
        if let Some(number) = self.numbers.remove(&task)
            && let Some(gone) = self.waiting.remove(&number)
        {
            self.here.remove(&(gone.worker, number));
        }
    }

    /// Whether no task waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many tasks wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether a task waits, and where it was preempted.
    pub fn place_of(&self, task: T) -> Option<W> {
        let waiting = self.waiting.get(self.numbers.get(&task)?)?;
        Some(waiting.worker)
    }

    /// The tasks that wait and where they were preempted, oldest first.
    pub fn waiting(&self) -> impl Iterator<Item = (T, W)> + '_ {
        self.waiting.values().map(|one| (one.task, one.worker))
    }

    /// Whether the task that waits for the longest has declined enough to go anywhere.
    pub fn is_over(&self, patience: u64) -> bool {
        self.waiting.first_key_value().is_some_and(|(_, oldest)| self.declined - oldest.since > patience)
    }

    /// What the job does with a slot of a worker, with so many tasks that were never launched; a task
    /// migrates when it has declined more than `patience` opportunities. When it is to decline, and `counts`,
    /// this was one more.
    pub fn answer(&mut self, worker: W, fresh: bool, patience: u64, counts: bool) -> Option<LaunchChoice<T>> {
        if let Some((at, number)) = self.here.range((worker, 0)..).next()
            && *at == worker
        {
            return self.waiting.get(number).map(|here| LaunchChoice::Return(here.task));
        }
        if fresh {
            return Some(LaunchChoice::Fresh);
        }
        let (_, oldest) = self.waiting.first_key_value()?;
        if self.is_over(patience) {
            return Some(LaunchChoice::Migrate(oldest.task));
        }
        self.declined += u64::from(counts);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_declines_one_opportunity_more_than_its_patience() {
        let mut job = PreemptedTasks::default();
        job.wait("r1", "n1");
        for _ in 0..=2 {
            assert_eq!(job.answer("n2", false, 2, true), None);
        }
        assert_eq!(job.answer("n2", false, 2, true), Some(LaunchChoice::Migrate("r1")));
    }

    #[test]
    fn each_task_counts_from_when_it_began_to_wait() {
        let mut job = PreemptedTasks::default();
        job.wait("old", "n1");
        assert_eq!(job.answer("n3", false, 1, true), None);
        job.wait("young", "n2");
        assert_eq!(job.answer("n3", false, 1, true), None);
        assert_eq!(job.answer("n3", false, 1, true), Some(LaunchChoice::Migrate("old")));
        job.stop_waiting("old");
        assert_eq!(job.answer("n3", false, 1, true), None);
        assert_eq!(job.answer("n3", false, 1, true), Some(LaunchChoice::Migrate("young")));
    }

    #[test]
    fn an_opportunity_that_does_not_count_may_still_be_the_one_that_is_taken() {
        let mut job = PreemptedTasks::default();
        job.wait("r1", "n1");
        assert_eq!(job.answer("n2", false, 0, false), None);
        assert_eq!(job.answer("n2", false, 0, true), None);
        assert_eq!(job.answer("n2", false, 0, false), Some(LaunchChoice::Migrate("r1")));
    }

    #[test]
    fn tasks_return_before_others_are_started() {
        let mut job = PreemptedTasks::default();
        job.wait("r1", "n1");
        assert_eq!(job.answer("n1", true, 0, true), Some(LaunchChoice::Return("r1")));
        assert_eq!(job.answer("n2", true, 0, true), Some(LaunchChoice::Fresh));
        job.stop_waiting("r1");
        assert_eq!(job.answer("n2", false, 0, true), None);
        assert!(job.is_empty());
    }
}

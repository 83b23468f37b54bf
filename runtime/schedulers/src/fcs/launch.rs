//! Algorithm 2 of FCS: which reduce of a job gets a free slot. Preempted reduces wait for their worker until
//! their patience is exhausted.

use napreduce_engine::{SortedMap, SortedSet};
use serde::{Deserialize, Serialize};

/// The use of an offered slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchChoice<T> {
    /// Resume a task on the worker where it was preempted.
    Return(T),
    /// Start a new task.
    Fresh,
    /// Restore a task on another worker.
    Migrate(T),
}

/// A waiting preempted task, and the job's count of declined opportunities when it began to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Waiting<T, W> {
    task: T,
    worker: W,
    since: u64,
}

/// The preempted tasks of one job.
///
/// All tasks decline the same opportunities, so one counter per job suffices: each task stores its start
/// value, and the oldest task has declined the most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de> + Ord, W: Deserialize<'de> + Ord"))]
pub struct PreemptedTasks<T, W> {
    /// By age: numbers grow, so the oldest comes first.
    waiting: SortedMap<u64, Waiting<T, W>>,
    numbers: SortedMap<T, u64>,
    here: SortedSet<(W, u64)>,
    next_number: u64,
    declined: u64,
}

impl<T, W> Default for PreemptedTasks<T, W> {
    fn default() -> PreemptedTasks<T, W> {
        PreemptedTasks {
            waiting: SortedMap::new(),
            numbers: SortedMap::new(),
            here: SortedSet::new(),
            next_number: 0,
            declined: 0,
        }
    }
}

impl<T: Copy + Ord, W: Copy + Ord> PreemptedTasks<T, W> {
    /// Adds a task preempted on a worker, behind all waiting ones.
    pub fn wait(&mut self, task: T, worker: W) {
        self.stop_waiting(task);
        let number = self.next_number;
        self.next_number += 1;
        self.waiting.insert(
            number,
            Waiting {
                task,
                worker,
                since: self.declined,
            },
        );
        self.numbers.insert(task, number);
        self.here.insert((worker, number));
    }

    /// Removes a task that runs again or never will.
    pub fn stop_waiting(&mut self, task: T) {
        if let Some(number) = self.numbers.remove(&task)
            && let Some(gone) = self.waiting.remove(&number)
        {
            self.here.remove(&(gone.worker, number));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the worker where a waiting task was preempted.
    pub fn place_of(&self, task: T) -> Option<W> {
        let waiting = self.waiting.get(self.numbers.get(&task)?)?;
        Some(waiting.worker)
    }

    /// Returns the waiting tasks and their workers, oldest first.
    pub fn waiting(&self) -> impl Iterator<Item = (T, W)> + '_ {
        self.waiting.values().map(|one| (one.task, one.worker))
    }

    /// Whether the oldest task has declined more than `patience` opportunities.
    pub fn is_patience_exhausted(&self, patience: u64) -> bool {
        self.waiting
            .first()
            .is_some_and(|(_, oldest)| self.declined - oldest.since > patience)
    }

    /// Returns the use of a slot on a worker; `fresh` is whether there is a task to start. A task migrates
    /// after declining more than `patience` opportunities. Otherwise the slot is declined, which is counted
    /// if `counts`.
    pub fn choose(
        &mut self,
        worker: W,
        fresh: bool,
        patience: u64,
        counts: bool,
    ) -> Option<LaunchChoice<T>> {
        if let Some((at, number)) = self.here.range_from(&(worker, 0)).next()
            && *at == worker
        {
            return self
                .waiting
                .get(number)
                .map(|here| LaunchChoice::Return(here.task));
        }
        if fresh {
            return Some(LaunchChoice::Fresh);
        }
        let (_, oldest) = self.waiting.first()?;
        if self.is_patience_exhausted(patience) {
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
    fn task_migrates_after_exceeding_patience() {
        let mut job = PreemptedTasks::default();
        job.wait("r1", "n1");
        for _ in 0..=2 {
            assert_eq!(job.choose("n2", false, 2, true), None);
        }
        assert_eq!(
            job.choose("n2", false, 2, true),
            Some(LaunchChoice::Migrate("r1"))
        );
    }

    #[test]
    fn patience_counts_from_start_of_wait() {
        let mut job = PreemptedTasks::default();
        job.wait("old", "n1");
        assert_eq!(job.choose("n3", false, 1, true), None);
        job.wait("young", "n2");
        assert_eq!(job.choose("n3", false, 1, true), None);
        assert_eq!(
            job.choose("n3", false, 1, true),
            Some(LaunchChoice::Migrate("old"))
        );
        job.stop_waiting("old");
        assert_eq!(job.choose("n3", false, 1, true), None);
        assert_eq!(
            job.choose("n3", false, 1, true),
            Some(LaunchChoice::Migrate("young"))
        );
    }

    #[test]
    fn uncounted_opportunity_can_be_accepted() {
        let mut job = PreemptedTasks::default();
        job.wait("r1", "n1");
        assert_eq!(job.choose("n2", false, 0, false), None);
        assert_eq!(job.choose("n2", false, 0, true), None);
        assert_eq!(
            job.choose("n2", false, 0, false),
            Some(LaunchChoice::Migrate("r1"))
        );
    }

    #[test]
    fn preempted_tasks_return_before_fresh_ones() {
        let mut job = PreemptedTasks::default();
        job.wait("r1", "n1");
        assert_eq!(
            job.choose("n1", true, 0, true),
            Some(LaunchChoice::Return("r1"))
        );
        assert_eq!(job.choose("n2", true, 0, true), Some(LaunchChoice::Fresh));
        job.stop_waiting("r1");
        assert_eq!(job.choose("n2", false, 0, true), None);
        assert!(job.is_empty());
    }
}

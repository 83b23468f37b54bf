//! A set of tasks of one kind of a job.

/// A set of task indexes: one bit per task.
#[derive(Debug)]
pub(super) struct TaskSet {
    words: Vec<u64>,
    count: u32,
}

impl TaskSet {
    /// Creates an empty set for a number of tasks.
    pub fn new(tasks: usize) -> TaskSet {
        TaskSet {
            words: vec![0; tasks.div_ceil(64)],
            count: 0,
        }
    }

    /// Returns the number of tasks in the set.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Adds a task; returns whether it was not in the set.
    pub fn insert(&mut self, index: u32) -> bool {
        let word = &mut self.words[index as usize / 64];
        let bit = 1_u64 << (index % 64);
        if *word & bit != 0 {
            return false;
        }
        *word |= bit;
        self.count += 1;
        true
    }

    /// Removes a task; returns whether it was in the set.
    pub fn remove(&mut self, index: u32) -> bool {
        let word = &mut self.words[index as usize / 64];
        let bit = 1_u64 << (index % 64);
        if *word & bit == 0 {
            return false;
        }
        *word &= !bit;
        self.count -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_counts_each_task_once() {
        let mut set = TaskSet::new(100);
        assert!(set.insert(0) && set.insert(99));
        assert!(!set.insert(99));
        assert_eq!(set.count(), 2);
        assert!(set.remove(0));
        assert!(!set.remove(0));
        assert_eq!(set.count(), 1);
    }
}

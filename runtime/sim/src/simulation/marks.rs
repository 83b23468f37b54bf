//! Points of progress that are reported exactly when they are reached.
//!
//! Owns where they are. Does not own the progress.

use std::collections::BTreeMap;

use napreduce_engine::{Ratio, TaskId, TaskKind};

use crate::settings::ProgressMark;

/// The marks, by the name of the job.
#[derive(Debug, Default)]
pub(super) struct Marks {
    by_job: BTreeMap<String, Vec<(TaskKind, u32, Ratio)>>,
}

impl Marks {
    pub fn new(marks: &[ProgressMark]) -> Marks {
        let mut by_job: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for mark in marks {
            by_job.entry(mark.job.clone()).or_default().push((mark.kind, mark.index, mark.share));
        }
        Marks { by_job }
    }

    pub fn is_empty(&self) -> bool {
        self.by_job.is_empty()
    }

    /// The work that is done when the marks of a task are reached: the least whole microseconds that are that
    /// share.
    pub fn of(&self, job: &str, task: TaskId, total: u64) -> Vec<u64> {
        let all = self.by_job.get(job).map_or(&[][..], |marks| marks);
        let mine = all.iter().filter(|(kind, index, _)| *kind == task.kind && *index == task.index);
        mine.map(|(_, _, share)| share.of_raised(total)).collect()
    }
}

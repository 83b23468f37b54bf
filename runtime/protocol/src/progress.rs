//! The progress of a job, as plain numbers.

use napreduce_engine::{TaskKind, TimeLeft};
use serde::{Deserialize, Serialize};

/// The progress of one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PhaseProgress {
    /// All tasks.
    pub tasks: u32,
    /// Finished tasks.
    pub done: u32,
    /// Attempts that hold a slot.
    pub running: u32,
    /// Suspended attempts, and suspended tasks that have lost their attempts.
    pub suspended: u32,
    /// Tasks that will be restored from a checkpoint.
    pub checkpointed: u32,
    /// Bytes of input consumed.
    pub bytes_done: u64,
    /// An estimate while some tasks have not reported; 0 while unknown.
    pub bytes_total: u64,
}

impl PhaseProgress {
    /// Per cent done, by bytes if known, else by tasks; 100 only when every task is done.
    pub fn percent(&self) -> u32 {
        if self.done == self.tasks {
            return 100;
        }
        let (done, total) = match self.bytes_total {
            0 => (u64::from(self.done), u64::from(self.tasks)),
            total => (self.bytes_done, total),
        };
        let percent = u128::from(done) * 100 / u128::from(total.max(1));
        u32::try_from(percent.min(99)).unwrap_or(99)
    }

    /// Whether any of its tasks has ever been started.
    pub fn has_begun(&self) -> bool {
        self.done > 0 || self.running > 0 || self.suspended > 0 || self.checkpointed > 0
    }

    pub fn is_done(&self) -> bool {
        self.done == self.tasks
    }
}

/// The progress of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JobProgress {
    pub map: PhaseProgress,
    pub reduce: PhaseProgress,
    /// When it will be done, from now; `None` while it waits for slots or too little is known.
    #[serde(default)]
    pub left: Option<TimeLeft>,
}

impl JobProgress {
    /// The phases that have tasks, in order.
    pub fn phases(&self) -> impl Iterator<Item = (TaskKind, PhaseProgress)> {
        let both = [(TaskKind::Map, self.map), (TaskKind::Reduce, self.reduce)];
        both.into_iter().filter(|(_, phase)| phase.tasks > 0)
    }
}

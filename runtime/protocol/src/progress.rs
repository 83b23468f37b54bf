//! How far a job is at one moment.
//!
//! Owns plain numbers. Does not own time: rates are the display's.

use napreduce_engine::TaskKind;
use serde::{Deserialize, Serialize};

/// How far one phase is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PhaseProgress {
    /// Tasks in all.
    pub tasks: u32,
    /// Tasks that are done.
    pub done: u32,
    /// Attempts that hold a slot.
    pub running: u32,
    /// Attempts that are suspended, and tasks that operators suspended whose attempts are gone since.
    pub suspended: u32,
    /// Tasks that will go on from a checkpoint.
    pub checkpointed: u32,
    /// Bytes of input consumed.
    pub bytes_done: u64,
    /// An estimate while some tasks have not said theirs; 0 while nothing is known.
    pub bytes_total: u64,
}

impl PhaseProgress {
    /// Per cent done, by bytes where they are known, else by tasks; 100 only when every task is done.
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

    /// Whether a task of it has ever been started.
    pub fn has_begun(&self) -> bool {
        self.done > 0 || self.running > 0 || self.suspended > 0 || self.checkpointed > 0
    }

    pub fn is_done(&self) -> bool {
        self.done == self.tasks
    }
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JobProgress {
    pub map: PhaseProgress,
    pub reduce: PhaseProgress,
}

impl JobProgress {
    /// The phases that have tasks, in order.
    pub fn phases(&self) -> impl Iterator<Item = (TaskKind, PhaseProgress)> {
        let both = [(TaskKind::Map, self.map), (TaskKind::Reduce, self.reduce)];
        both.into_iter().filter(|(_, phase)| phase.tasks > 0)
    }
}

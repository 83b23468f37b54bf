//! The map outputs of a job as their log tells them, at both ends of it.
//!
//! Owns which output there is of each map after some entries. Does not own who is told how much of the log
//! (`coordinator::output_log`).

use napreduce_engine::MapOutput;
use napreduce_protocol::OutputEntry;

/// The output of each map, by its index; `None` of one that has none, or none any more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OutputTable(Vec<Option<MapOutput>>);

impl OutputTable {
    /// What stands there after these entries.
    pub(crate) fn of_log(entries: &[OutputEntry]) -> OutputTable {
        let mut table = OutputTable::default();
        entries.iter().for_each(|entry| table.apply(*entry));
        table
    }

    /// The log goes on by one entry.
    pub(crate) fn apply(&mut self, entry: OutputEntry) {
        let (map, output) = match entry {
            OutputEntry::Ready(output) => (output.attempt.task.index, Some(output)),
            OutputEntry::Lost { map } => (map, None),
        };
        let map = map as usize;
        if self.0.len() <= map {
            self.0.resize(map + 1, None);
        }
        self.0[map] = output;
    }

    /// Of each map that has one, in their order.
    pub(crate) fn all(&self) -> Vec<MapOutput> {
        self.0.iter().flatten().copied().collect()
    }

    pub(crate) fn get(&self, map: u32) -> Option<MapOutput> {
        self.0.get(map as usize).copied().flatten()
    }

    /// One more than the highest map of which something was said.
    pub(crate) fn maps(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
}

//! Failed reads of map outputs, until an attempt on the reading host has read all its inputs.

use serde::{Deserialize, Serialize};

use crate::ids::WorkerId;
use crate::sorted::SortedSet;

/// Workers that could not be read from, with the hosts that report it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Unread {
    /// A worker, and a host that could not read from it.
    pairs: SortedSet<(WorkerId, String)>,
}

impl Unread {
    pub fn insert(&mut self, holder: WorkerId, reader: String) {
        self.pairs.insert((holder, reader));
    }

    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (WorkerId, &str)> {
        self.pairs
            .iter()
            .map(|(holder, reader)| (*holder, reader.as_str()))
    }

    /// Returns the hosts that could not read from a worker.
    pub fn readers(&self, holder: WorkerId) -> impl Iterator<Item = &str> {
        // No host sorts before the empty name.
        let from_holder = self.pairs.range_from(&(holder, String::new()));
        from_holder
            .take_while(move |(worker, _)| *worker == holder)
            .map(|(_, reader)| reader.as_str())
    }

    /// Removes the failures about a worker.
    pub fn remove_holder(&mut self, holder: WorkerId) {
        self.pairs.retain(|(worker, _)| *worker != holder);
    }

    /// Removes the failures that a host reported.
    pub fn remove_reader(&mut self, host: &str) {
        self.pairs.retain(|(_, reader)| reader != host);
    }
}

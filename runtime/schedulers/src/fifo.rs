//! `[scheduler.fifo]`: the policy itself is in the engine, since embedded runs use it.

use napreduce_engine::Fifo;

use crate::tables::{Built, Heeds, PolicyTable, PolicyTables};

impl PolicyTable for Fifo {
    fn build(&self, _all: &PolicyTables<'_>) -> Built {
        Ok(Box::new(*self))
    }

    fn heeds(&self, _all: &PolicyTables<'_>) -> Heeds {
        Heeds { priority: !self.ignore_priority, ..Heeds::default() }
    }
}

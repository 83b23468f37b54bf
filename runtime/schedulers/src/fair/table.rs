//! Fair as an entry of the table of policies.
//!
//! Owns what follows from its values before it runs. Does not own the values (`configuration`) nor what it
//! does (`policy`).

use napreduce_engine::TaskKind;

use crate::fair::{Fair, FairConfiguration};
use crate::tables::{Built, Heeds, PolicyTable, PolicyTables, Wish};

impl PolicyTable for FairConfiguration {
    fn build(&self, _all: &PolicyTables<'_>) -> Built {
        Ok(Box::new(Fair::new(self.clone())?))
    }

    fn wishes(&self, _kind: TaskKind, _job: &str, _all: &PolicyTables<'_>) -> Vec<Wish> {
        Vec::from_iter(self.preemption.then_some(("[scheduler.fair] primitive", self.primitive)))
    }

    fn heeds(&self, _all: &PolicyTables<'_>) -> Heeds {
        Heeds { priority: self.priority_weight || self.root.has_fifo(), queue: true, deadline: false }
    }

    fn queues(&self) -> Option<Vec<&str>> {
        None
    }
}

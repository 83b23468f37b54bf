//! HFSP as an entry of the table of policies.
//!
//! Owns what follows from its values before it runs. Does not own the values (`configuration`) nor what it
//! does (`policy`).

use napreduce_engine::TaskKind;

use crate::hfsp::{Hfsp, HfspConfiguration};
use crate::tables::{Built, PolicyTable, PolicyTables, Wish};

impl PolicyTable for HfspConfiguration {
    fn build(&self, _all: &PolicyTables<'_>) -> Built {
        Ok(Box::new(Hfsp::new(self.clone())?))
    }

    fn wishes(&self, _kind: TaskKind, _job: &str, _all: &PolicyTables<'_>) -> Vec<Wish> {
        vec![("[scheduler.hfsp] primitive", self.primitive)]
    }

    fn queues(&self) -> Option<Vec<&str>> {
        Some(self.weights.keys().map(String::as_str).collect())
    }
}

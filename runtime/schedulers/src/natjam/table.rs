//! Natjam and Natjam-R as entries of the table of policies.
//!
//! Owns what follows from their values before they run. Does not own the values (`configuration`) nor what
//! they do.

use napreduce_engine::TaskKind;

use crate::natjam::{Natjam, NatjamConfiguration, NatjamR, NatjamRConfiguration};
use crate::tables::{Built, Heeds, PolicyTable, PolicyTables, Wish};

impl PolicyTable for NatjamConfiguration {
    fn build(&self, _all: &PolicyTables<'_>) -> Built {
        Ok(Box::new(Natjam::new(self.clone())?))
    }

    fn wishes(&self, kind: TaskKind, _job: &str, _all: &PolicyTables<'_>) -> Vec<Wish> {
        Vec::from_iter(self.takes(kind).then_some(("[scheduler.natjam] primitive", self.primitive)))
    }

    /// Research is every queue that is not production.
    fn queues(&self) -> Option<Vec<&str>> {
        None
    }
}

impl PolicyTable for NatjamRConfiguration {
    fn build(&self, _all: &PolicyTables<'_>) -> Built {
        Ok(Box::new(NatjamR::new(self.clone())?))
    }

    fn wishes(&self, kind: TaskKind, _job: &str, _all: &PolicyTables<'_>) -> Vec<Wish> {
        Vec::from_iter(self.takes(kind).then_some(("[scheduler.natjam-deadline] primitive", self.primitive)))
    }

    fn heeds(&self, _all: &PolicyTables<'_>) -> Heeds {
        Heeds { deadline: true, ..Heeds::default() }
    }
}

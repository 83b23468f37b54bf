//! FCS as an entry of the table of policies.
//!
//! Owns what follows from its values before it runs. Does not own the values (`configuration`) nor what it
//! does (`policy`).

use napreduce_engine::TaskKind;

use crate::composed::Composed;
use crate::fcs::{Fcs, FcsConfiguration};
use crate::tables::{Built, Heeds, PolicyTable, PolicyTables, SchedulerError, Wish};

impl PolicyTable for FcsConfiguration {
    fn build(&self, all: &PolicyTables<'_>) -> Built {
        let maps = all.build_part(&self.maps, TaskKind::Map)?;
        Ok(Box::new(Composed::new(maps, self.build_part(TaskKind::Reduce, all)?, None)))
    }

    fn build_part(&self, kind: TaskKind, _all: &PolicyTables<'_>) -> Built {
        match kind {
            TaskKind::Map => Err(SchedulerError::ReducesOnly.into()),
            TaskKind::Reduce => Ok(Box::new(Fcs::new(self.clone())?)),
        }
    }

    fn wishes(&self, kind: TaskKind, job: &str, all: &PolicyTables<'_>) -> Vec<Wish> {
        match kind {
            TaskKind::Map => all.wishes_of_part(&self.maps, kind, job),
            TaskKind::Reduce => self.wishes_as_part(kind, job, all),
        }
    }

    fn heeds(&self, all: &PolicyTables<'_>) -> Heeds {
        all.heeds_of_part(&self.maps)
    }

    fn wishes_as_part(&self, kind: TaskKind, _job: &str, _all: &PolicyTables<'_>) -> Vec<Wish> {
        Vec::from_iter((kind == TaskKind::Reduce).then_some(("[scheduler.fcs] primitive", self.primitive)))
    }

    fn goes_by_output_bytes(&self, _all: &PolicyTables<'_>) -> bool {
        true
    }
}

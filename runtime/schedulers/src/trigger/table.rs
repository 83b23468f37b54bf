//! The trigger scheduler as an entry of the table of policies.
//!
//! Owns what its rules may do before they fire. Does not own how rules are read (`text`).

use napreduce_engine::{Primitive, TaskKind};

use super::{Deed, Trigger, TriggerSettings, read_rules};
use crate::tables::{Built, Heeds, PolicyTable, PolicyTables, Wish};

impl PolicyTable for TriggerSettings {
    fn build(&self, _all: &PolicyTables<'_>) -> Built {
        Ok(Box::new(Trigger::new(self)?))
    }

    /// What the rules do to a job of this name. Rules that cannot be read are refused when the policy is
    /// built.
    fn wishes(&self, kind: TaskKind, job: &str, _all: &PolicyTables<'_>) -> Vec<Wish> {
        let rules = read_rules(&self.rules).unwrap_or_default();
        let deeds = rules.iter().flat_map(|rule| &rule.actions);
        let wish = |deed: &Deed| {
            let (target, primitive) = match deed {
                Deed::Suspend(target) => (target, Primitive::Suspend),
                Deed::Kill(target) => (target, Primitive::Kill),
                Deed::Checkpoint(target) => (target, Primitive::Checkpoint),
                _ => return None,
            };
            let meant = target.job == job && target.task.is_none_or(|(of, _)| of == kind);
            meant.then_some(("[scheduler.trigger] rules", primitive))
        };
        deeds.filter_map(wish).collect()
    }

    fn heeds(&self, _all: &PolicyTables<'_>) -> Heeds {
        Heeds { priority: true, ..Heeds::default() }
    }
}

//! Which policy to use, with what values: from names and tables to a policy that runs.
//!
//! Owns the names and the tables of all policies. Does not own the files they come from, nor what the values of one policy
//! mean (its folder).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use napreduce_core::{Scheduler, TaskKind};

use crate::capacity::{Capacity, CapacityConfiguration, CapacityMonitor};
use crate::fair::{Fair, FairConfiguration};
use crate::fcs::{Fcs, FcsConfiguration};
use crate::hfsp::{Hfsp, HfspConfiguration};
use crate::natjam::{Natjam, NatjamConfiguration, NatjamR, NatjamRConfiguration};
use crate::trigger::{Trigger, TriggerSettings};
use crate::{Composed, Fifo};

/// A policy by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerName {
    /// Jobs by priority, then in order of submission.
    #[default]
    Fifo,
    /// Weighted shares for pools and the jobs in them.
    Fair,
    /// Queues with guaranteed shares.
    Capacity,
    /// Production before research, which gives way.
    Natjam,
    /// One queue by deadline or laxity; the least urgent give way.
    NatjamDeadline,
    /// Reduces of small jobs before those of large ones; another policy gives map slots.
    Fcs,
    /// Jobs by size, in the order in which they would be done if they shared the slots.
    Hfsp,
    /// What is said in rules.
    Trigger,
    /// One policy for each kind of slot, and a preemption monitor.
    Composed,
}

impl SchedulerName {
    /// Every policy.
    pub const ALL: [SchedulerName; 9] = [
        SchedulerName::Fifo,
        SchedulerName::Fair,
        SchedulerName::Capacity,
        SchedulerName::Natjam,
        SchedulerName::NatjamDeadline,
        SchedulerName::Fcs,
        SchedulerName::Hfsp,
        SchedulerName::Trigger,
        SchedulerName::Composed,
    ];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            SchedulerName::Fifo => "fifo",
            SchedulerName::Fair => "fair",
            SchedulerName::Capacity => "capacity",
            SchedulerName::Natjam => "natjam",
            SchedulerName::NatjamDeadline => "natjam-deadline",
            SchedulerName::Fcs => "fcs",
            SchedulerName::Hfsp => "hfsp",
            SchedulerName::Trigger => "trigger",
            SchedulerName::Composed => "composed",
        }
    }
}

impl fmt::Display for SchedulerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// There is no policy of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no scheduler {0:?}; allowed: {allowed}", allowed = SchedulerName::ALL.map(SchedulerName::as_str).join(", "))]
pub struct UnknownScheduler(pub String);

impl FromStr for SchedulerName {
    type Err = UnknownScheduler;

    fn from_str(text: &str) -> Result<SchedulerName, UnknownScheduler> {
        let known = SchedulerName::ALL.into_iter().find(|name| name.as_str() == text);
        known.ok_or_else(|| UnknownScheduler(text.to_owned()))
    }
}

/// The tables of all policies, each at its published values unless said otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct SchedulerTables {
    /// `[scheduler.fifo]`
    pub fifo: Fifo,
    /// `[scheduler.fair]`
    pub fair: FairConfiguration,
    /// `[scheduler.capacity]`
    pub capacity: CapacityConfiguration,
    /// `[scheduler.natjam]`
    pub natjam: NatjamConfiguration,
    /// `[scheduler.natjam-deadline]`
    pub natjam_deadline: NatjamRConfiguration,
    /// `[scheduler.fcs]`
    pub fcs: FcsConfiguration,
    /// `[scheduler.hfsp]`
    pub hfsp: HfspConfiguration,
    /// `[scheduler.trigger]`
    pub trigger: TriggerSettings,
    /// `[scheduler.composed]`
    pub composed: ComposedSettings,
}

/// `[scheduler.composed]`: which policies, by their names; each takes its values from its own table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct ComposedSettings {
    /// Gives map slots.
    pub map: SchedulerName,
    /// Gives reduce slots.
    pub reduce: SchedulerName,
    /// The monitor of `[scheduler.capacity]` takes slots back under them.
    pub monitor: bool,
}

/// A policy and its values.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct SchedulerConfiguration {
    /// Which.
    pub scheduler: SchedulerName,
    /// The tables, of which it takes its own.
    pub tables: SchedulerTables,
}

/// The values make no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchedulerError {
    /// A part of a composed policy is composed itself.
    #[error(
        "[scheduler.composed] {0} = \"composed\": a part cannot be composed itself; name the policy for each kind of slot"
    )]
    Nested(TaskKind),
    /// A policy of reduce slots is to give map slots.
    #[error(
        "fcs gives reduce slots only; name another policy for maps, in [scheduler.fcs] maps or [scheduler.composed] map"
    )]
    ReducesOnly,
    /// A value of the policy's table.
    #[error("[scheduler.{scheduler}] {what}")]
    Value {
        /// Whose table.
        scheduler: SchedulerName,
        /// What is wrong with it.
        what: String,
    },
}

impl SchedulerConfiguration {
    /// A policy with its published values.
    pub fn named(scheduler: SchedulerName) -> SchedulerConfiguration {
        SchedulerConfiguration { scheduler, tables: SchedulerTables::default() }
    }

    /// Whether reduces are served by the bytes that maps wrote for them: without these it cannot tell jobs apart.
    pub fn goes_by_output_bytes(&self) -> bool {
        let composed = self.scheduler == SchedulerName::Composed;
        self.scheduler == SchedulerName::Fcs
            || (composed && self.tables.composed.reduce == SchedulerName::Fcs)
    }

    /// The policy, new.
    ///
    /// # Errors
    /// Names the value that makes no sense and what is allowed.
    pub fn build(&self) -> Result<Box<dyn Scheduler>, SchedulerError> {
        self.tables.build(self.scheduler)
    }
}

impl SchedulerTables {
    fn build(&self, scheduler: SchedulerName) -> Result<Box<dyn Scheduler>, SchedulerError> {
        Ok(match scheduler {
            SchedulerName::Fifo => Box::new(self.fifo),
            SchedulerName::Fair => Box::new(checked(scheduler, Fair::new(self.fair.clone()))?),
            SchedulerName::Capacity => Box::new(checked(scheduler, Capacity::new(&self.capacity))?),
            SchedulerName::Natjam => Box::new(checked(scheduler, Natjam::new(self.natjam.clone()))?),
            SchedulerName::NatjamDeadline => {
                Box::new(checked(scheduler, NatjamR::new(self.natjam_deadline.clone()))?)
            }
            SchedulerName::Fcs => {
                let maps = self.part(TaskKind::Map, self.fcs.maps)?;
                Box::new(Composed::new(maps, self.part(TaskKind::Reduce, scheduler)?, None))
            }
            SchedulerName::Hfsp => Box::new(checked(scheduler, Hfsp::new(self.hfsp.clone()))?),
            SchedulerName::Trigger => Box::new(checked(scheduler, Trigger::new(&self.trigger))?),
            SchedulerName::Composed => {
                let ComposedSettings { map, reduce, monitor } = self.composed;
                let monitor = monitor.then(|| {
                    let made = checked(SchedulerName::Capacity, CapacityMonitor::new(&self.capacity))?;
                    Ok(Box::new(made) as Box<dyn Scheduler>)
                });
                let (map, reduce) = (self.part(TaskKind::Map, map)?, self.part(TaskKind::Reduce, reduce)?);
                Box::new(Composed::new(map, reduce, monitor.transpose()?))
            }
        })
    }

    /// The policy that gives slots of one kind.
    fn part(&self, kind: TaskKind, scheduler: SchedulerName) -> Result<Box<dyn Scheduler>, SchedulerError> {
        match (scheduler, kind) {
            (SchedulerName::Composed, _) => Err(SchedulerError::Nested(kind)),
            (SchedulerName::Fcs, TaskKind::Map) => Err(SchedulerError::ReducesOnly),
            (SchedulerName::Fcs, TaskKind::Reduce) => {
                Ok(Box::new(checked(scheduler, Fcs::new(self.fcs.clone()))?))
            }
            _ => self.build(scheduler),
        }
    }
}

/// A policy, or what is wrong with its table.
fn checked<T, E: fmt::Display>(scheduler: SchedulerName, made: Result<T, E>) -> Result<T, SchedulerError> {
    made.map_err(|error| SchedulerError::Value { scheduler, what: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_has_a_name_that_leads_to_it() {
        for name in SchedulerName::ALL {
            assert_eq!(name.as_str().parse(), Ok(name));
            assert_eq!(serde_json::to_string(&name).expect("text"), format!("{:?}", name.as_str()));
            assert!(SchedulerConfiguration::named(name).build().is_ok(), "{name} at its published values");
        }
        let error = "fare".parse::<SchedulerName>().expect_err("no such policy");
        assert!(error.to_string().starts_with("there is no scheduler \"fare\"; allowed: fifo, "), "{error}");
    }

    #[test]
    fn tables_are_read_and_refused_by_name() {
        let read = |text: &str| {
            serde_json::from_str::<SchedulerConfiguration>(text).map_err(|error| error.to_string())
        };
        let rules = r#"{"scheduler": "trigger", "tables": {"trigger": {"rules": "when tim"}}}"#;
        let error = read(rules).expect("well-formed").build().err().expect("no rule");
        assert_eq!(
            error.to_string().split(';').next(),
            Some("[scheduler.trigger] line 1, column 6: \"tim\" is no condition")
        );
        let nested = r#"{"scheduler": "composed", "tables": {"composed": {"map": "composed"}}}"#;
        assert_eq!(
            read(nested).expect("well-formed").build().err(),
            Some(SchedulerError::Nested(TaskKind::Map))
        );
        let maps = r#"{"scheduler": "fcs", "tables": {"fcs": {"maps": "fcs"}}}"#;
        assert_eq!(read(maps).expect("well-formed").build().err(), Some(SchedulerError::ReducesOnly));
        let delta = r#"{"scheduler": "hfsp", "tables": {"hfsp": {"delta": "0s"}}}"#;
        let error = read(delta).expect("well-formed").build().err().expect("no span");
        assert_eq!(error.to_string(), "[scheduler.hfsp] delta is 0s; give a span above");
        assert!(read(r#"{"tables": {"fifo": {"ignore": true}}}"#).expect_err("unknown").contains("ignore"));
    }
}

//! The interface between a policy's configuration and the crate: building the policy, and the properties that
//! follow from its configuration before it runs.

use std::error::Error;

use napreduce_engine::{
    Converted, Fifo, PreemptionSettings, Primitive, PrimitiveChoice, Scheduler, TaskKind,
};
use serde::de::{Deserialize, Deserializer, Error as _};

/// A primitive that a policy may use, with the configuration key that selects it.
pub type ConfiguredPrimitive = (&'static str, Primitive);

/// A policy, or the error in its configuration.
pub type Built = Result<Box<dyn Scheduler>, Box<dyn Error>>;

/// The attributes of a job that a policy may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobAttributes {
    pub priority: bool,
    pub queue: bool,
    pub deadline: bool,
}

impl std::ops::BitOr for JobAttributes {
    type Output = JobAttributes;
    fn bitor(self, other: JobAttributes) -> JobAttributes {
        JobAttributes {
            priority: self.priority || other.priority,
            queue: self.queue || other.queue,
            deadline: self.deadline || other.deadline,
        }
    }
}

/// The configuration of one policy: `[scheduler.NAME]` in a configuration file.
pub trait PolicyTable {
    /// Builds the policy.
    ///
    /// # Errors
    /// Fails if a value is invalid; names the value and the allowed range.
    fn build(&self, all: &PolicyTables<'_>) -> Built;

    /// Builds the policy for one slot kind; another policy assigns the other kind.
    ///
    /// # Errors
    /// As for [`PolicyTable::build`], and if the policy cannot be restricted to `kind`.
    fn build_part(&self, _kind: TaskKind, all: &PolicyTables<'_>) -> Built {
        self.build(all)
    }

    /// Returns the preemption monitor for use under other policies, if the policy has one.
    fn monitor(&self) -> Option<Box<dyn PolicyTable + '_>> {
        None
    }

    /// Returns the primitives with which the policy preempts tasks of a job; empty if it never preempts.
    fn primitives(
        &self,
        _kind: TaskKind,
        _job: &str,
        _all: &PolicyTables<'_>,
    ) -> Vec<ConfiguredPrimitive> {
        Vec::new()
    }

    /// As [`PolicyTable::primitives`], for a policy restricted to one slot kind; empty if it cannot be
    /// restricted.
    fn primitives_as_part(
        &self,
        kind: TaskKind,
        job: &str,
        all: &PolicyTables<'_>,
    ) -> Vec<ConfiguredPrimitive> {
        self.primitives(kind, job, all)
    }

    /// Returns the configured queues; `None` if the policy resolves queue names itself.
    fn queues(&self) -> Option<Vec<&str>> {
        Some(Vec::new())
    }

    /// Returns the job attributes that affect the policy's decisions.
    fn honored_attributes(&self, _all: &PolicyTables<'_>) -> JobAttributes {
        JobAttributes {
            queue: self.queues().is_none_or(|queues| !queues.is_empty()),
            ..JobAttributes::default()
        }
    }

    /// Whether the policy orders reduces by the bytes that maps wrote for them.
    fn uses_output_bytes(&self, _all: &PolicyTables<'_>) -> bool {
        false
    }

    /// Returns whether the progress of tasks affects its decisions.
    fn uses_progress(&self, _all: &PolicyTables<'_>) -> bool {
        true
    }
}

/// The tables of all policies, by name.
pub struct PolicyTables<'a>(pub(crate) Vec<(&'static str, &'a dyn PolicyTable)>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no scheduler {name:?}; allowed: {}", allowed.join(", "))]
pub struct UnknownScheduler {
    pub(crate) name: String,
    pub(crate) allowed: Vec<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchedulerError {
    #[error(
        "[scheduler.composed] {0} = \"composed\": a part cannot be composed itself; name the policy for each kind of slot"
    )]
    Nested(TaskKind),
    #[error(
        "fcs assigns reduce slots only; name a policy for maps in [scheduler.fcs] maps or [scheduler.composed] map"
    )]
    ReducesOnly,
    #[error(transparent)]
    Unknown(#[from] UnknownScheduler),
    /// An invalid value in a policy's table.
    #[error("[scheduler.{scheduler}] {what}")]
    Value { scheduler: String, what: String },
}

impl<'a> PolicyTables<'a> {
    /// Builds the named policy.
    ///
    /// # Errors
    /// Fails if there is no such policy or its configuration is invalid; names the table and the value.
    pub fn build(&self, name: &str) -> Result<Box<dyn Scheduler>, SchedulerError> {
        self.make(name, |table| table.build(self))
    }

    /// Builds the named policy for one slot kind.
    ///
    /// # Errors
    /// As for [`PolicyTables::build`], and if the policy cannot be restricted to `kind`.
    pub fn build_part(
        &self,
        name: &str,
        kind: TaskKind,
    ) -> Result<Box<dyn Scheduler>, SchedulerError> {
        self.make(name, |table| table.build_part(kind, self))
    }

    /// Builds the preemption monitor of the named policy.
    ///
    /// # Errors
    /// As for [`PolicyTables::build`], and if the policy has no monitor.
    pub fn build_monitor(&self, name: &str) -> Result<Box<dyn Scheduler>, SchedulerError> {
        self.make(name, |table| {
            table
                .monitor()
                .ok_or("the policy has no monitor")?
                .build(self)
        })
    }

    /// Returns the primitives of the named policy as a part; empty if there is no such policy.
    pub fn primitives_of_part(
        &self,
        name: &str,
        kind: TaskKind,
        job: &str,
    ) -> Vec<ConfiguredPrimitive> {
        self.named(name).map_or_else(
            |_| Vec::new(),
            |table| table.primitives_as_part(kind, job, self),
        )
    }

    /// Returns the attributes that the named policy uses; none if there is no such policy.
    pub fn attributes_of_part(&self, name: &str) -> JobAttributes {
        self.named(name).map_or_else(
            |_| JobAttributes::default(),
            |table| table.honored_attributes(self),
        )
    }

    /// Returns the table of the named policy.
    ///
    /// # Errors
    /// Fails if there is no such policy.
    pub fn named(&self, name: &str) -> Result<&'a dyn PolicyTable, UnknownScheduler> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, table)| *table)
            .ok_or_else(|| UnknownScheduler {
                name: name.to_owned(),
                allowed: self.0.iter().map(|(name, _)| *name).collect(),
            })
    }

    /// Reports an error under the named table, unless it comes from the table of a part.
    fn make(
        &self,
        name: &str,
        from: impl FnOnce(&dyn PolicyTable) -> Built,
    ) -> Result<Box<dyn Scheduler>, SchedulerError> {
        let table = self.named(name)?;
        from(table).map_err(|error| match error.downcast::<SchedulerError>() {
            Ok(of_part) if !matches!(*of_part, SchedulerError::Unknown(_)) => *of_part,
            Ok(unknown) => SchedulerError::Value {
                scheduler: name.to_owned(),
                what: unknown.to_string(),
            },
            Err(own) => SchedulerError::Value {
                scheduler: name.to_owned(),
                what: own.to_string(),
            },
        })
    }
}

impl PolicyTable for Fifo {
    fn uses_progress(&self, _all: &PolicyTables<'_>) -> bool {
        false
    }

    fn build(&self, _all: &PolicyTables<'_>) -> Built {
        Ok(Box::new(*self))
    }

    fn honored_attributes(&self, _all: &PolicyTables<'_>) -> JobAttributes {
        JobAttributes {
            priority: !self.ignore_priority,
            ..JobAttributes::default()
        }
    }
}

/// Returns the configuration key that makes the policy checkpoint tasks of a kind; `None` if nothing does.
pub(crate) fn checkpoint_source(
    kind: TaskKind,
    primitives: &[ConfiguredPrimitive],
    settings: &PreemptionSettings,
) -> Option<&'static str> {
    if !settings.of(kind).checkpoint {
        return None;
    }
    let wanted = match settings.primitive {
        Some(PrimitiveChoice::Checkpoint) if !primitives.is_empty() => {
            Some("[preemption] primitive")
        }
        Some(_) => None,
        None => primitives
            .iter()
            .find(|(_, primitive)| *primitive == Primitive::Checkpoint)
            .map(|(source, _)| *source),
    };
    let suspends = primitives.iter().any(|(_, primitive)| {
        let used = settings
            .primitive
            .unwrap_or(PrimitiveChoice::from(*primitive));
        matches!(used, PrimitiveChoice::Suspend | PrimitiveChoice::Auto)
            && settings.of(kind).suspend
    });
    let converts = settings
        .convert
        .is_some_and(|rule| rule.to == Converted::Checkpoint)
        && suspends;
    wanted.or(converts.then_some("[preemption.convert]"))
}

/// An access control key of a queue. Reading it fails: a cluster has no users, and an access list that is not
/// enforced would be misleading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoAccessList;

impl<'de> Deserialize<'de> for NoAccessList {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<NoAccessList, D::Error> {
        Err(D::Error::custom(
            "access control lists are not supported: a cluster has no users, so anyone with its secret may \
             submit to every queue; remove the key",
        ))
    }
}

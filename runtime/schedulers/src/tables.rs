//! What the table of policies knows of each: how it is built from its values, and what follows from them.
//!
//! Owns the trait that the folder of a policy implements, and how policies that consist of others find these.
//! Does not own which policies there are (the crate's root) nor what the values of one mean (its folder).

use std::error::Error;

use napreduce_engine::{Primitive, Scheduler, TaskKind};

/// A primitive that a policy may ask for, and the place of a configuration file that says so.
pub type Wish = (&'static str, Primitive);

/// A policy, or what is wrong with its values.
pub type Built = Result<Box<dyn Scheduler>, Box<dyn Error>>;

/// What a job asks for that a policy may go by or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Heeds {
    pub priority: bool,
    pub queue: bool,
    pub deadline: bool,
}

impl std::ops::BitOr for Heeds {
    type Output = Heeds;
    fn bitor(self, other: Heeds) -> Heeds {
        Heeds {
            priority: self.priority || other.priority,
            queue: self.queue || other.queue,
            deadline: self.deadline || other.deadline,
        }
    }
}

/// The values of one policy: `[scheduler.NAME]` of a configuration file.
pub trait PolicyTable {
    /// The policy, new.
    ///
    /// # Errors
    /// Names the value that makes no sense and what is allowed.
    fn build(&self, all: &PolicyTables<'_>) -> Built;

    /// The policy where it gives slots of one kind only and another one gives the others.
    ///
    /// # Errors
    /// The same, and when it cannot do that.
    fn build_part(&self, _kind: TaskKind, all: &PolicyTables<'_>) -> Built {
        self.build(all)
    }

    /// What takes slots back under other policies, where it has such a part.
    fn monitor(&self) -> Option<Box<dyn PolicyTable + '_>> {
        None
    }

    /// How it takes slots of a kind back from a job of this name. Nothing, when it never does.
    fn wishes(&self, _kind: TaskKind, _job: &str, _all: &PolicyTables<'_>) -> Vec<Wish> {
        Vec::new()
    }

    /// The same where it gives slots of one kind only. Nothing, when it cannot.
    fn wishes_as_part(&self, kind: TaskKind, job: &str, all: &PolicyTables<'_>) -> Vec<Wish> {
        self.wishes(kind, job, all)
    }

    /// The queues that it tells apart; none when it looks at the names of queues itself.
    fn queues(&self) -> Option<Vec<&str>> {
        Some(Vec::new())
    }

    /// What of a job it goes by.
    fn heeds(&self, _all: &PolicyTables<'_>) -> Heeds {
        Heeds { queue: self.queues().is_none_or(|queues| !queues.is_empty()), ..Heeds::default() }
    }

    /// Whether it serves reduces by the bytes that maps wrote for them: without these it cannot tell jobs
    /// apart.
    fn goes_by_output_bytes(&self, _all: &PolicyTables<'_>) -> bool {
        false
    }
}

/// The tables of all policies by their names.
pub struct PolicyTables<'a>(pub(crate) Vec<(&'static str, &'a dyn PolicyTable)>);

/// There is no policy of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no scheduler {name:?}; allowed: {}", allowed.join(", "))]
pub struct UnknownScheduler {
    pub(crate) name: String,
    pub(crate) allowed: Vec<&'static str>,
}

/// The values make no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchedulerError {
    #[error(
        "[scheduler.composed] {0} = \"composed\": a part cannot be composed itself; name the policy for each kind of slot"
    )]
    Nested(TaskKind),
    /// A policy of reduce slots is to give map slots.
    #[error(
        "fcs gives reduce slots only; name another policy for maps, in [scheduler.fcs] maps or [scheduler.composed] map"
    )]
    ReducesOnly,
    #[error(transparent)]
    Unknown(#[from] UnknownScheduler),
    /// A value of the policy's table.
    #[error("[scheduler.{scheduler}] {what}")]
    Value {
        /// Whose table.
        scheduler: String,
        what: String,
    },
}

impl<'a> PolicyTables<'a> {
    /// The policy of that name, new.
    ///
    /// # Errors
    /// Names the table and the value that makes no sense, or says that there is no such policy.
    pub fn build(&self, name: &str) -> Result<Box<dyn Scheduler>, SchedulerError> {
        self.make(name, |table| table.build(self))
    }

    /// The policy of that name where it gives slots of one kind only.
    ///
    /// # Errors
    /// The same, and when it cannot do that.
    pub fn build_part(&self, name: &str, kind: TaskKind) -> Result<Box<dyn Scheduler>, SchedulerError> {
        self.make(name, |table| table.build_part(kind, self))
    }

    /// What takes slots back under other policies by the values of that table.
    ///
    /// # Errors
    /// The same, and when it has no such part.
    pub fn build_monitor(&self, name: &str) -> Result<Box<dyn Scheduler>, SchedulerError> {
        self.make(name, |table| table.monitor().ok_or("it has no monitor")?.build(self))
    }

    /// How a part takes slots of its kind back; nothing where there is no such part.
    pub fn wishes_of_part(&self, name: &str, kind: TaskKind, job: &str) -> Vec<Wish> {
        self.named(name).map_or_else(|_| Vec::new(), |table| table.wishes_as_part(kind, job, self))
    }

    /// What of a job a part goes by; nothing where there is no such part.
    pub fn heeds_of_part(&self, name: &str) -> Heeds {
        self.named(name).map_or_else(|_| Heeds::default(), |table| table.heeds(self))
    }

    /// The table of a policy.
    ///
    /// # Errors
    /// When there is no such policy.
    pub fn named(&self, name: &str) -> Result<&'a dyn PolicyTable, UnknownScheduler> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, table)| *table).ok_or_else(|| UnknownScheduler {
            name: name.to_owned(),
            allowed: self.0.iter().map(|(name, _)| *name).collect(),
        })
    }

    /// What is made of a table. What is wrong with it is told under its name, unless the table of a part is
    /// to blame.
    fn make(
        &self,
        name: &str,
        from: impl FnOnce(&dyn PolicyTable) -> Built,
    ) -> Result<Box<dyn Scheduler>, SchedulerError> {
        let table = self.named(name)?;
        from(table).map_err(|error| match error.downcast::<SchedulerError>() {
            Ok(of_part) if !matches!(*of_part, SchedulerError::Unknown(_)) => *of_part,
            Ok(unknown) => SchedulerError::Value { scheduler: name.to_owned(), what: unknown.to_string() },
            Err(own) => SchedulerError::Value { scheduler: name.to_owned(), what: own.to_string() },
        })
    }
}

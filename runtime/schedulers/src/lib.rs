//! Scheduling policies, and the table that maps their names to configurations.
//!
//! A policy decides which job gets a free slot and which running task is preempted. The engine defines the
//! `Scheduler` trait and carries out the decisions.

pub mod capacity;
mod composed;
pub mod fair;
pub mod fcs;
pub mod hfsp;
pub mod larger;
pub mod natjam;
mod running;
pub mod serving;
mod tables;
pub mod trigger;
mod turns;

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;

use napreduce_engine::{Fifo, PolicyChoice, PreemptionSettings, Scheduler, Span, TaskKind, listed};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use composed::{Composed, ComposedSettings};
pub use tables::{
    Built, ConfiguredPrimitive, JobAttributes, PolicyTable, PolicyTables, SchedulerError,
    UnknownScheduler,
};

/// Generates `SchedulerName` and `SchedulerTables` from one list.
macro_rules! policies {
    ($($name:literal $variant:ident $field:ident: $table:ty, $about:literal;)+) => {
        listed! {
            /// A policy by name; the first is the default.
            #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
            pub enum SchedulerName {
                $(#[doc = $about] #[serde(rename = $name)] $variant = $name,)+
            }
        }

        /// The configuration tables of all policies, with published values as defaults.
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct SchedulerTables {
            $(#[doc = concat!("`[scheduler.", $name, "]`")] #[serde(rename = $name)] pub $field: $table,)+
        }

        impl SchedulerTables {
            /// Returns the tables that differ from the published values, as in a configuration file.
            pub fn changed(&self) -> Option<serde_json::Value> {
                let published = serde_json::to_value(SchedulerTables::default()).ok()?;
                let mut changed = serde_json::to_value(self).ok()?;
                changed.as_object_mut()?.retain(|name, table| published.get(name) != Some(table));
                Some(changed)
            }

            fn all(&self) -> PolicyTables<'_> {
                PolicyTables(vec![$(($name, &self.$field)),+])
            }

            fn of(&self, scheduler: SchedulerName) -> &dyn PolicyTable {
                match scheduler {
                    $(SchedulerName::$variant => &self.$field,)+
                }
            }
        }
    };
}

// Name, variant, field, configuration type, summary; in the order of `--help`.
policies! {
    "fifo" Fifo fifo: Fifo, "Jobs by priority, then in order of submission.";
    "fair" Fair fair: fair::FairConfiguration, "Weighted shares for pools and the jobs in them.";
    "capacity" Capacity capacity: capacity::CapacityConfiguration, "Queues with guaranteed shares.";
    "natjam" Natjam natjam: natjam::NatjamConfiguration, "Production jobs before research jobs, which can be preempted.";
    "natjam-deadline" NatjamDeadline natjam_deadline: natjam::NatjamRConfiguration,
        "One queue by deadline or laxity; the least urgent jobs are preempted.";
    "fcs" Fcs fcs: fcs::FcsConfiguration,
        "Reduces of small jobs before those of large ones; another policy assigns map slots.";
    "hfsp" Hfsp hfsp: hfsp::HfspConfiguration,
        "Jobs by size, in the order in which they would finish under fair sharing.";
    "trigger" Trigger trigger: trigger::TriggerSettings, "Preemption scripted by rules.";
    "composed" Composed composed: ComposedSettings,
        "One policy per slot kind, and an optional preemption monitor.";
}

impl SchedulerName {
    /// Returns all names, separated by commas.
    pub fn listed() -> String {
        SchedulerName::WORDS.join(", ")
    }
}

impl Default for SchedulerName {
    fn default() -> SchedulerName {
        SchedulerName::ALL[0]
    }
}

impl FromStr for SchedulerName {
    type Err = UnknownScheduler;

    fn from_str(text: &str) -> Result<SchedulerName, UnknownScheduler> {
        SchedulerName::of_word(text).ok_or_else(|| UnknownScheduler {
            name: text.to_owned(),
            allowed: SchedulerName::WORDS.to_vec(),
        })
    }
}

/// A policy and its configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct SchedulerConfiguration {
    pub scheduler: SchedulerName,
    /// All tables; `scheduler` reads its own.
    pub tables: SchedulerTables,
}

impl SchedulerConfiguration {
    /// Returns a policy with its published values.
    pub fn named(scheduler: SchedulerName) -> SchedulerConfiguration {
        SchedulerConfiguration {
            scheduler,
            tables: SchedulerTables::default(),
        }
    }

    /// Builds the policy.
    ///
    /// # Errors
    /// Fails if a value is invalid; names the value and the allowed range.
    pub fn build(&self) -> Result<Box<dyn Scheduler>, SchedulerError> {
        self.tables.all().build(self.scheduler.in_words())
    }

    /// Returns whether the progress of tasks affects the policy's decisions.
    pub fn uses_progress(&self) -> bool {
        self.tables
            .of(self.scheduler)
            .uses_progress(&self.tables.all())
    }

    /// Whether the policy orders reduces by the bytes that maps wrote for them. Without these counts it
    /// cannot tell jobs apart.
    pub fn uses_output_bytes(&self) -> bool {
        self.tables
            .of(self.scheduler)
            .uses_output_bytes(&self.tables.all())
    }

    /// Describes the given priorities, queues and deadlines that the policy ignores.
    pub fn ignored<'a>(
        &self,
        jobs: impl Iterator<Item = (i32, &'a str, Option<Span>)>,
    ) -> Vec<String> {
        let mut priorities = BTreeSet::new();
        let mut queues = BTreeSet::new();
        let mut deadlines = false;
        for (priority, queue, deadline) in jobs {
            priorities.insert(priority);
            if !queues.contains(queue) {
                queues.insert(queue.to_owned());
            }
            deadlines |= deadline.is_some();
        }
        let honored = self
            .tables
            .of(self.scheduler)
            .honored_attributes(&self.tables.all());
        let used = [
            (honored.priority, "priority"),
            (honored.queue, "queue"),
            (honored.deadline, "deadline"),
        ];
        let used: Vec<&str> = used
            .into_iter()
            .filter(|(is, _)| *is)
            .map(|(_, what)| what)
            .collect();
        let uses = if used.is_empty() {
            String::new()
        } else {
            format!("; it uses {}", used.join(" and "))
        };
        let mut ignored = Vec::new();
        let name = self.scheduler;
        if let (Some(least), Some(most)) = (priorities.first(), priorities.last())
            && !honored.priority
            && (priorities.len() > 1 || *least != 0)
        {
            let range = if least == most {
                least.to_string()
            } else {
                format!("{least} to {most}")
            };
            ignored.push(format!(
                "{name} ignores the priorities of jobs ({range}){uses}"
            ));
        }
        if !honored.queue && queues.len() > 1 {
            let named = Vec::from_iter(queues.iter().take(5).map(String::as_str)).join(", ");
            let more = if queues.len() > 5 { ", ..." } else { "" };
            ignored.push(format!(
                "{name} ignores the queues of jobs ({named}{more}){uses}"
            ));
        }
        if !honored.deadline && deadlines {
            ignored.push(format!("{name} ignores the deadlines of jobs{uses}"));
        }
        ignored
    }

    /// Reads a policy and its configuration from JSON.
    ///
    /// # Errors
    /// Fails on an unknown field or an invalid value.
    pub fn read(json: &Value) -> Result<Arc<dyn PolicyChoice>, String> {
        let read = SchedulerConfiguration::deserialize(json).map_err(|error| error.to_string())?;
        Ok(Arc::new(read))
    }
}

impl PolicyChoice for SchedulerConfiguration {
    fn name(&self) -> &'static str {
        self.scheduler.in_words()
    }

    fn build(&self) -> Result<Box<dyn Scheduler>, String> {
        SchedulerConfiguration::build(self).map_err(|error| error.to_string())
    }

    fn queues(&self) -> Option<Vec<&str>> {
        self.tables.of(self.scheduler).queues()
    }

    fn checkpoints(
        &self,
        kind: TaskKind,
        job: &str,
        settings: &PreemptionSettings,
    ) -> Option<&'static str> {
        let primitives = self
            .tables
            .of(self.scheduler)
            .primitives(kind, job, &self.tables.all());
        tables::checkpoint_source(kind, &primitives, settings)
    }

    fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    fn changed_values(&self) -> Option<Value> {
        self.tables.changed()
    }
}

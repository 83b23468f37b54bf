//! The policies of napreduce: who gets a free slot, and whose slot is taken for whom.
//!
//! Owns the table of policies, from names to policies that run; each but FIFO has a folder of its own. Does not
//! own what a policy is (the trait `Scheduler` of the engine) nor what is done with its decisions (the engine).

mod access;
pub mod capacity;
mod composed;
pub mod fair;
pub mod fcs;
mod fifo;
pub mod hfsp;
pub mod larger;
pub mod natjam;
mod preference;
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
pub use tables::{Built, Heeds, PolicyTable, PolicyTables, SchedulerError, UnknownScheduler, Wish};

/// Makes the names of the policies and their tables from the one list of them.
macro_rules! policies {
    ($($name:literal $variant:ident $field:ident: $table:ty, $about:literal;)+) => {
        listed! {
            /// A policy by its name; the first is the default.
            #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
            pub enum SchedulerName {
                $(#[doc = $about] #[serde(rename = $name)] $variant = $name,)+
            }
        }

        /// The tables of all policies, each at its published values unless said otherwise.
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct SchedulerTables {
            $(#[doc = concat!("`[scheduler.", $name, "]`")] #[serde(rename = $name)] pub $field: $table,)+
        }

        impl SchedulerTables {
            /// Those whose values are not the published ones, as a configuration file would say them.
            pub fn changed(&self) -> Option<serde_json::Value> {
                let published = serde_json::to_value(SchedulerTables::default()).ok()?;
                let mut said = serde_json::to_value(self).ok()?;
                said.as_object_mut()?.retain(|name, table| published.get(name) != Some(table));
                Some(said)
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

// The table of policies, in the order in which they are listed: name, variant, field, its values, what it
// does.
policies! {
    "fifo" Fifo fifo: Fifo, "Jobs by priority, then in order of submission.";
    "fair" Fair fair: fair::FairConfiguration, "Weighted shares for pools and the jobs in them.";
    "capacity" Capacity capacity: capacity::CapacityConfiguration, "Queues with guaranteed shares.";
    "natjam" Natjam natjam: natjam::NatjamConfiguration, "Production before research, which gives way.";
    "natjam-deadline" NatjamDeadline natjam_deadline: natjam::NatjamRConfiguration,
        "One queue by deadline or laxity; the least urgent give way.";
    "fcs" Fcs fcs: fcs::FcsConfiguration,
        "Reduces of small jobs before those of large ones; another policy gives map slots.";
    "hfsp" Hfsp hfsp: hfsp::HfspConfiguration,
        "Jobs by size, in the order in which they would be done if they shared the slots.";
    "trigger" Trigger trigger: trigger::TriggerSettings, "What is said in rules.";
    "composed" Composed composed: ComposedSettings,
        "One policy for each kind of slot, and a preemption monitor.";
}

impl SchedulerName {
    /// All names as they stand in a sentence.
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
        SchedulerName::of_word(text)
            .ok_or_else(|| UnknownScheduler { name: text.to_owned(), allowed: SchedulerName::WORDS.to_vec() })
    }
}

/// A policy and its values.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct SchedulerConfiguration {
    pub scheduler: SchedulerName,
    /// The tables, of which it takes its own.
    pub tables: SchedulerTables,
}

impl SchedulerConfiguration {
    /// A policy with its published values.
    pub fn named(scheduler: SchedulerName) -> SchedulerConfiguration {
        SchedulerConfiguration { scheduler, tables: SchedulerTables::default() }
    }

    /// The policy, new.
    ///
    /// # Errors
    /// Names the value that makes no sense and what is allowed.
    pub fn build(&self) -> Result<Box<dyn Scheduler>, SchedulerError> {
        self.tables.all().build(self.scheduler.in_words())
    }

    /// Whether reduces are served by the bytes that maps wrote for them: without these it cannot tell jobs
    /// apart.
    pub fn goes_by_output_bytes(&self) -> bool {
        self.tables.of(self.scheduler).goes_by_output_bytes(&self.tables.all())
    }

    /// What of jobs with these priorities, queues and deadlines makes no difference under the policy, as
    /// sentences.
    pub fn ignored<'a>(&self, jobs: impl Iterator<Item = (i32, &'a str, Option<Span>)>) -> Vec<String> {
        let (mut priorities, mut queues, mut deadlines) = (BTreeSet::new(), BTreeSet::new(), false);
        for (priority, queue, deadline) in jobs {
            priorities.insert(priority);
            if !queues.contains(queue) {
                queues.insert(queue.to_owned());
            }
            deadlines |= deadline.is_some();
        }
        let heeds = self.tables.of(self.scheduler).heeds(&self.tables.all());
        let heeded = [(heeds.priority, "priority"), (heeds.queue, "queue"), (heeds.deadline, "deadline")];
        let heeded: Vec<&str> = heeded.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect();
        let goes_by =
            if heeded.is_empty() { String::new() } else { format!("; it goes by {}", heeded.join(" and ")) };
        let mut ignored = Vec::new();
        let name = self.scheduler;
        if let (Some(least), Some(most)) = (priorities.first(), priorities.last())
            && !heeds.priority
            && (priorities.len() > 1 || *least != 0)
        {
            let range = if least == most { least.to_string() } else { format!("{least} to {most}") };
            ignored.push(format!("{name} ignores the priorities of jobs ({range}){goes_by}"));
        }
        if !heeds.queue && queues.len() > 1 {
            let named = Vec::from_iter(queues.iter().take(5).map(String::as_str)).join(", ");
            let more = if queues.len() > 5 { ", ..." } else { "" };
            ignored.push(format!("{name} ignores the queues of jobs ({named}{more}){goes_by}"));
        }
        if !heeds.deadline && deadlines {
            ignored.push(format!("{name} ignores the deadlines of jobs{goes_by}"));
        }
        ignored
    }

    /// Reads a policy and its values from JSON.
    ///
    /// # Errors
    /// Names the field that is not understood.
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

    fn checkpoints(&self, kind: TaskKind, job: &str, settings: &PreemptionSettings) -> Option<&'static str> {
        let wishes = self.tables.of(self.scheduler).wishes(kind, job, &self.tables.all());
        preference::checkpoints(kind, &wishes, settings)
    }

    fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    fn changed_values(&self) -> Option<Value> {
        self.tables.changed()
    }
}

//! The same facts as Hadoop 3 writes them: YARN's ResourceManager and MapReduce's history server.
//!
//! Owns the names of Hadoop's fields, and what of ours stands there. What does not exist here has the value
//! that Hadoop writes for nothing; what would need a question for each job of a list is left out of lists.
//! Does not own routes.

/// Reads listed enums by their words in any case, and refuses others as YARN does.
macro_rules! read_yarn_words {
    ($($type:ident: $what:literal),+) => {$(
        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<$type, String> {
                let known = $type::of_word(&text.to_ascii_uppercase());
                known.ok_or_else(|| format!(concat!("Invalid ", $what, " {} specified."), text))
            }
        }
    )+};
}

mod cluster;
mod counters;
mod ids;
mod jobs;
mod nodes;
mod scheduler;
mod tasks;
mod yarn_apps;

pub use cluster::{ClusterInfo, ClusterMetrics, HistoryInfo};
pub use counters::{AttemptCounters, JobCounters, TaskCounters};
pub use ids::from_hadoop;
pub use jobs::{JobConf, JobOfHistory, JobOfList, JobState, MapReduceAttempts};
pub use nodes::{NodeState, YarnNode};
pub use scheduler::SchedulerInfo;
pub use tasks::{TaskOfHistory, TriedTask, tasks_of};
pub use yarn_apps::{AppAttempts, AppState, AppStatistics, FinalStatus, YarnApp, count_apps};

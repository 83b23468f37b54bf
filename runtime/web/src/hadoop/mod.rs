//! The same facts as Hadoop 3 writes them: YARN's ResourceManager and MapReduce's history server.
//!
//! Owns the names of Hadoop's fields, and what of ours stands there. What does not exist here has the value
//! that Hadoop writes for nothing; what would need a question for each job of a list is left out of lists.
//! Does not own routes.

mod cluster;
mod counters;
mod jobs;
mod nodes;
mod scheduler;
mod tasks;
mod yarn_apps;

pub use cluster::{ClusterInfo, ClusterMetrics, HistoryInfo};
pub use counters::{AttemptCounters, JobCounters, TaskCounters};
pub use jobs::{JobConf, JobOfHistory, JobOfList, JobState, MapReduceAttempts};
pub use nodes::{NodeState, YarnNode};
pub use scheduler::SchedulerInfo;
pub use tasks::{TaskOfHistory, TriedTask, tasks_of};
pub use yarn_apps::{AppAttempts, AppState, AppStatistics, FinalStatus, YarnApp, count_apps};

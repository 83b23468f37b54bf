//! Hadoop's answers are objects with one field, named after what is in it; lists are in two of them.
//!
//! Owns these objects. Does not own what is in them (`crate::hadoop`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hadoop::{
    AppAttempts, AppState, AppStatistics, AttemptCounters, ClusterInfo, ClusterMetrics, HistoryInfo, JobConf,
    JobCounters, JobOfHistory, JobOfList, MapReduceAttempts, SchedulerInfo, TaskCounters, TaskOfHistory,
    TriedTask, YarnApp, YarnNode,
};

macro_rules! one {
    ($($name:ident { $field:literal: $of:ty })*) => {$(
        #[derive(Debug, Clone, Serialize, JsonSchema)]
        pub struct $name {
            #[serde(rename = $field)]
            pub it: $of,
        }
    )*};
}

macro_rules! many {
    ($($name:ident { $outer:literal: $inside:ident { $field:literal: $of:ty } })*) => {$(
        #[derive(Debug, Clone, Serialize, JsonSchema)]
        pub struct $inside {
            #[serde(rename = $field)]
            pub items: Vec<$of>,
        }

        #[derive(Debug, Clone, Serialize, JsonSchema)]
        pub struct $name {
            #[serde(rename = $outer)]
            pub list: $inside,
        }

        impl From<Vec<$of>> for $name {
            fn from(items: Vec<$of>) -> $name {
                $name { list: $inside { items } }
            }
        }
    )*};
}

one! {
    Cluster { "clusterInfo": ClusterInfo }
    Metrics { "clusterMetrics": ClusterMetrics }
    App { "app": YarnApp }
    AppStateAnswer { "state": AppState }
    AppQueue { "queue": String }
    AppPriority { "priority": i32 }
    Node { "node": YarnNode }
    History { "historyInfo": HistoryInfo }
    Job { "job": JobOfHistory }
    Counters { "jobCounters": JobCounters }
    Conf { "conf": JobConf }
    Task { "task": TaskOfHistory }
    CountersOfTask { "jobTaskCounters": TaskCounters }
    TaskAttempt { "taskAttempt": TriedTask }
    CountersOfAttempt { "jobTaskAttemptCounters": AttemptCounters }
}

many! {
    AppList { "apps": AppItems { "app": YarnApp } }
    AppStat { "appStatInfo": AppStatItems { "statItem": AppStatistics } }
    AppAttemptList { "appAttempts": AppAttemptItems { "appAttempt": AppAttempts } }
    NodeList { "nodes": NodeItems { "node": YarnNode } }
    JobList { "jobs": JobItems { "job": JobOfList } }
    JobAttemptList { "jobAttempts": JobAttemptItems { "jobAttempt": MapReduceAttempts } }
    TaskList { "tasks": TaskItems { "task": TaskOfHistory } }
    TaskAttemptList { "taskAttempts": TaskAttemptItems { "taskAttempt": TriedTask } }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SchedulerAnswer {
    #[serde(rename = "scheduler")]
    pub it: SchedulerItem,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SchedulerItem {
    #[serde(rename = "schedulerInfo")]
    pub it: SchedulerInfo,
}

/// What the state of an application is to become: `KILLED`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct AppStateWanted {
    pub state: String,
}

//! Attempts, as Spark describes tasks.
//!
//! Owns this object. A suspended attempt is running to Spark; how long it has napped stands beside that. Does
//! not own what it took and moved (`tried`).

use std::collections::BTreeMap;

use napreduce_engine::listed;
use napreduce_protocol::LogStream;
use schemars::JsonSchema;
use serde::Serialize;

use super::metrics::SparkTaskMetrics;
use super::times::written;
use super::tried::Tried;
use crate::foreign::TriedState;

listed! {
    /// Spark's words for where a task is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "UPPERCASE")]
    pub enum SparkTaskStatus {
        Running = "RUNNING",
        Killed = "KILLED",
        Failed = "FAILED",
        Success = "SUCCESS",
        Unknown = "UNKNOWN",
    }
}

read_words!(SparkTaskStatus: "{:?} is no status of a task; there are running, killed, failed, success and unknown");

impl From<TriedState> for SparkTaskStatus {
    fn from(state: TriedState) -> SparkTaskStatus {
        match state {
            TriedState::Running => SparkTaskStatus::Running,
            TriedState::Succeeded => SparkTaskStatus::Success,
            TriedState::Failed => SparkTaskStatus::Failed,
            TriedState::Killed => SparkTaskStatus::Killed,
            TriedState::Scheduled => SparkTaskStatus::Unknown,
        }
    }
}

answer! {
    /// `TaskData`
    #[serde(rename_all = "camelCase")]
    pub struct SparkTask {
        /// Attempts of a job are counted from 0, in the order in which they were launched.
        pub task_id: u64 = tried.id,
        pub index: u32 = task.index,
        pub attempt: u32 = tried.attempt.attempt.number.saturating_sub(1),
        pub partition_id: u32 = task.index,
        pub launch_time: String = written(tried.attempt.launched_millis),
        /// Milliseconds, those in which it was suspended included.
        pub duration: u64 = tried.spent.took,
        pub executor_id: String = tried.attempt.worker.to_string(),
        /// The name of its worker.
        pub host: String = tried.attempt.worker_name.clone(),
        pub status: SparkTaskStatus = tried.state.into(),
        pub task_locality: &'static str = "ANY",
        pub speculative: bool,
        pub accumulator_updates: [u64; 0],
        /// How it ended, if it was not done.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub error_message: Option<String> = tried.attempt.end.clone().filter(|end| end != "done"),
        pub task_metrics: SparkTaskMetrics = SparkTaskMetrics::of(&tried.spent),
        /// Where its logs are, from the address of the server on.
        pub executor_logs: BTreeMap<&'static str, String> = logs.into(),
        /// Milliseconds until its process began to work.
        pub scheduler_delay: u64 = tried.spent.delay,
        pub getting_result_time: u64,
        /// Milliseconds for which it was suspended.
        pub naptime: u64 = tried.spent.napped,
    }

    pub fn of(tried: &Tried<'_>) {
        let task = tried.attempt.attempt.task;
        let logs = LogStream::ALL.map(|stream| {
            let path = format!("/api/nap/v1/attempts/{}/log/{stream}", tried.attempt.attempt);
            (stream.in_words(), path)
        });
    }
}

//! Jobs, as Spark describes applications.
//!
//! Owns these objects. Does not own what is in them (`jobs`, `stages`, `executors`).

use napreduce_engine::listed;
use napreduce_protocol::JobSummary;

use super::times::{NEVER, written};
use crate::foreign::{VERSION, application_id};

answer! {
    /// `VersionInfo`
    pub struct SparkVersion {
        pub spark: &'static str = VERSION,
    }
}

listed! {
    /// Spark's words for where an application is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum SparkApplicationStatus {
        Running = "RUNNING",
        Completed = "COMPLETED",
    }
}

read_words!(SparkApplicationStatus: "{:?} is no status of an application; there are running and completed");

impl SparkApplicationStatus {
    pub fn of(job: &JobSummary) -> SparkApplicationStatus {
        if job.ended_millis.is_some() {
            SparkApplicationStatus::Completed
        } else {
            SparkApplicationStatus::Running
        }
    }
}

answer! {
    /// `ApplicationInfo`
    pub struct SparkApplication {
        pub id: String = application_id(job.job),
        pub name: String = job.name.clone(),
        /// One: an application is tried once.
        pub attempts: Vec<SparkApplicationAttempt> = vec![SparkApplicationAttempt::of(job, now_millis)],
    }

    pub fn of(job: &JobSummary, now_millis: u64);
}

answer! {
    /// `ApplicationAttemptInfo`
    #[serde(rename_all = "camelCase")]
    pub struct SparkApplicationAttempt {
        pub start_time: String = written(job.submitted_millis),
        /// A millisecond before 1970 while it runs.
        pub end_time: String = job.ended_millis.map_or_else(|| NEVER.to_owned(), written),
        pub last_updated: String = written(until),
        /// Milliseconds.
        pub duration: u64 = until.saturating_sub(job.submitted_millis),
        pub spark_user: String = job.user.clone(),
        pub completed: bool = job.ended_millis.is_some(),
        pub app_spark_version: &'static str = VERSION,
        pub start_time_epoch: u64 = job.submitted_millis,
        /// -1 while it runs.
        pub end_time_epoch: i64 = job.ended_millis.map_or(-1, |at| i64::try_from(at).unwrap_or(i64::MAX)),
        pub last_updated_epoch: u64 = until,
    }

    fn of(job: &JobSummary, now_millis: u64) {
        let until = job.ended_millis.unwrap_or(now_millis);
    }
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::JobPhase;

    use super::super::super::answers::samples::{job, summary};
    use super::*;

    #[test]
    fn a_job_is_an_application_with_one_attempt() {
        let told = serde_json::to_value(SparkApplication::of(&summary(), 0)).expect("JSON");
        assert_eq!((&told["id"], &told["name"]), (&"application_0_0007".into(), &"wordcount".into()));
        for (field, value) in [
            ("startTime", "\"2026-09-21T14:13:20.000GMT\""),
            ("endTime", "\"2026-09-21T14:13:21.500GMT\""),
            ("duration", "1500"),
            ("completed", "true"),
            ("endTimeEpoch", "1790000001500"),
        ] {
            assert_eq!(told["attempts"][0][field].to_string(), value, "{field}");
        }
        let runs = job(1, JobPhase::Active, 1, 0);
        let told = serde_json::to_value(SparkApplication::of(&runs, 1_790_000_000_040)).expect("JSON");
        let attempt = &told["attempts"][0];
        assert_eq!((&attempt["endTime"], &attempt["endTimeEpoch"]), (&NEVER.into(), &(-1).into()));
        assert_eq!((&attempt["duration"], &attempt["completed"]), (&40.into(), &false.into()));
    }
}

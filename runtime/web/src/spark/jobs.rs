//! The one job that Spark would have of an application.
//!
//! Owns this object. Does not own its stages (`stages`).

use std::collections::BTreeMap;

use napreduce_engine::listed;
use napreduce_protocol::{JobDetail, JobPhase, JobSummary};
use schemars::JsonSchema;
use serde::Serialize;

use super::stages::{SparkStageStatus, killed_for, kinds_of, phase_of, stage_id};
use super::times::written;
use super::tried::{Counts, Tried};

listed! {
    /// Spark's words for where a job is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "UPPERCASE")]
    pub enum SparkJobStatus {
        Running = "RUNNING",
        Succeeded = "SUCCEEDED",
        Failed = "FAILED",
        Unknown = "UNKNOWN",
    }
}

read_words!(SparkJobStatus: "{:?} is no status of a job; there are running, succeeded, failed and unknown");

impl SparkJobStatus {
    /// One that was killed has failed: Spark has no other word.
    pub fn of(job: &JobSummary) -> SparkJobStatus {
        match job.phase {
            JobPhase::Active | JobPhase::Suspended | JobPhase::Stopping => SparkJobStatus::Running,
            JobPhase::Succeeded => SparkJobStatus::Succeeded,
            JobPhase::Failed | JobPhase::Killed => SparkJobStatus::Failed,
        }
    }
}

answer! {
    /// `JobData`
    #[serde(rename_all = "camelCase")]
    pub struct SparkJob {
        /// 0
        pub job_id: u32,
        pub name: String = job.summary.name.clone(),
        pub submission_time: String = written(job.summary.submitted_millis),
        #[serde(skip_serializing_if = "Option::is_none")]
        pub completion_time: Option<String> = job.summary.ended_millis.map(written),
        pub stage_ids: Vec<u32> = stages.iter().map(|(kind, _)| stage_id(*kind)).collect(),
        pub job_tags: Vec<String>,
        pub status: SparkJobStatus = SparkJobStatus::of(&job.summary),
        pub num_tasks: u64 = tasks(|_| true),
        pub num_active_tasks: usize = counts.running,
        pub num_completed_tasks: usize = counts.done,
        /// Tasks of stages that were never begun, and will not be.
        pub num_skipped_tasks: u64 = tasks(|status| status == SparkStageStatus::Skipped),
        pub num_failed_tasks: usize = counts.failed,
        pub num_killed_tasks: usize = counts.killed,
        pub num_completed_indices: u64 = done,
        pub num_active_stages: usize = in_status(SparkStageStatus::Active),
        pub num_completed_stages: usize = in_status(SparkStageStatus::Complete),
        pub num_skipped_stages: usize = in_status(SparkStageStatus::Skipped),
        pub num_failed_stages: usize = in_status(SparkStageStatus::Failed),
        pub killed_tasks_summary: BTreeMap<String, usize> = killed_for(tried),
    }

    pub fn of(job: &JobDetail, tried: &[Tried<'_>]) {
        let of_stage = |kind| (kind, SparkStageStatus::of(job, kind));
        let stages: Vec<_> = kinds_of(job).into_iter().map(of_stage).collect();
        let counts = Counts::of(tried);
        let tasks = |of: fn(SparkStageStatus) -> bool| {
            let stages = stages.iter().filter(|(_, status)| of(*status));
            stages.map(|(kind, _)| u64::from(phase_of(job, *kind).tasks)).sum()
        };
        let done = stages.iter().map(|(kind, _)| u64::from(phase_of(job, *kind).done)).sum();
        let in_status = |wanted| stages.iter().filter(|(_, status)| *status == wanted).count();
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::answers::samples::detail;
    use super::super::tried::tried_of;
    use super::*;

    #[test]
    fn each_phase_is_one_of_sparks() {
        let of = |phase| SparkJobStatus::of(&JobSummary { phase, ..detail().summary });
        assert_eq!(of(JobPhase::Suspended), SparkJobStatus::Running);
        assert_eq!(of(JobPhase::Stopping), SparkJobStatus::Running);
        assert_eq!(of(JobPhase::Succeeded), SparkJobStatus::Succeeded);
        assert_eq!(of(JobPhase::Killed), SparkJobStatus::Failed);
    }

    #[test]
    fn a_job_adds_its_stages_up() {
        let mut job = detail();
        job.summary.progress.reduce.tasks = 2;
        let told = serde_json::to_value(SparkJob::of(&job, &tried_of(&job, 0))).expect("JSON");
        for (field, value) in [
            ("stageIds", "[0,1]"),
            ("status", "\"FAILED\""),
            ("numTasks", "6"),
            ("numFailedTasks", "1"),
            ("numCompletedIndices", "3"),
            ("numFailedStages", "1"),
            ("numSkippedStages", "1"),
            ("numSkippedTasks", "2"),
            ("killedTasksSummary", "{}"),
        ] {
            assert_eq!(told[field].to_string(), value, "{field}");
        }
    }
}

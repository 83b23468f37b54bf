//! The maps and the reduces of a job, as Spark describes stages.
//!
//! Owns this object, and which stages there are. A job without reduces has one. Does not own tasks (`tasks`).

use std::collections::BTreeMap;

use napreduce_engine::{TaskKind, listed};
use napreduce_protocol::{JobDetail, JobPhase, PhaseProgress};
use schemars::JsonSchema;
use serde::Serialize;

use super::executors::SparkStageExecutor;
use super::tasks::SparkTask;
use super::times::written;
use super::tried::{Counts, Spent, Tried};
use crate::foreign::TriedState;

/// The attempt at each stage: what of it goes wrong is tried again within it.
pub const ATTEMPT: u32 = 0;

/// Tasks that stand in one answer, at most, of some 1,300 bytes each; of a stage the last that were launched.
pub const TASKS_MAX: usize = 3_000;

pub fn stage_id(kind: TaskKind) -> u32 {
    match kind {
        TaskKind::Map => 0,
        TaskKind::Reduce => 1,
    }
}

/// What there are stages of.
pub fn kinds_of(job: &JobDetail) -> Vec<TaskKind> {
    TaskKind::ALL
        .into_iter()
        .filter(|kind| *kind == TaskKind::Map || phase_of(job, *kind).tasks > 0)
        .collect()
}

pub fn phase_of(job: &JobDetail, kind: TaskKind) -> PhaseProgress {
    match kind {
        TaskKind::Map => job.summary.progress.map,
        TaskKind::Reduce => job.summary.progress.reduce,
    }
}

listed! {
    /// Spark's words for where a stage is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "UPPERCASE")]
    pub enum SparkStageStatus {
        Active = "ACTIVE",
        Complete = "COMPLETE",
        Failed = "FAILED",
        Pending = "PENDING",
        Skipped = "SKIPPED",
    }
}

read_words!(
    SparkStageStatus: "{:?} is no status of a stage; there are active, complete, failed, pending and skipped"
);

impl SparkStageStatus {
    pub fn of(job: &JobDetail, kind: TaskKind) -> SparkStageStatus {
        let has_begun = job.attempts.iter().any(|one| one.attempt.task.kind == kind);
        let is_done = job.summary.phase == JobPhase::Succeeded || phase_of(job, kind).is_done();
        match (is_done, has_begun, job.summary.ended_millis.is_some()) {
            (true, _, _) => SparkStageStatus::Complete,
            (false, true, false) => SparkStageStatus::Active,
            (false, false, false) => SparkStageStatus::Pending,
            (false, true, true) => SparkStageStatus::Failed,
            (false, false, true) => SparkStageStatus::Skipped,
        }
    }
}

/// How many were killed, by why, in a word.
pub fn killed_for<'all>(tried: impl IntoIterator<Item = &'all Tried<'all>>) -> BTreeMap<String, usize> {
    let mut why = BTreeMap::new();
    for killed in tried.into_iter().filter(|tried| tried.state == TriedState::Killed) {
        *why.entry(killed.attempt.outcome().unwrap_or("killed").to_owned()).or_default() += 1;
    }
    why
}

answer! {
    /// `StageData`
    #[serde(rename_all = "camelCase")]
    pub struct SparkStage {
        pub status: SparkStageStatus = status,
        /// 0 is the maps, 1 the reduces.
        pub stage_id: u32 = stage_id(kind),
        /// 0
        pub attempt_id: u32 = ATTEMPT,
        pub num_tasks: u32 = phase.tasks,
        pub num_active_tasks: usize = counts.running,
        pub num_complete_tasks: usize = counts.done,
        pub num_failed_tasks: usize = counts.failed,
        pub num_killed_tasks: usize = counts.killed,
        pub num_completed_indices: u32 = phase.done,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub submission_time: Option<String> = begun.map(written),
        #[serde(skip_serializing_if = "Option::is_none")]
        pub first_task_launched_time: Option<String> = first.map(written),
        #[serde(skip_serializing_if = "Option::is_none")]
        pub completion_time: Option<String> = ended.map(written),
        /// Why its job ended so, if it was not done.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub failure_reason: Option<String> =
            job.summary.reason.clone().filter(|_| status == SparkStageStatus::Failed),
        pub executor_deserialize_time: u64,
        pub executor_deserialize_cpu_time: u64,
        /// Milliseconds in which its tasks worked.
        pub executor_run_time: u64 = spent.ran(),
        /// Nanoseconds, as far as is known: of attempts that did their tasks.
        pub executor_cpu_time: u64 = spent.processor_nanos,
        pub result_size: u64,
        pub jvm_gc_time: u64,
        pub result_serialization_time: u64,
        pub memory_bytes_spilled: u64,
        pub disk_bytes_spilled: u64,
        pub peak_execution_memory: u64,
        pub input_bytes: u64 = spent.input.bytes,
        pub input_records: u64 = spent.input.records,
        pub output_bytes: u64 = spent.output.bytes,
        pub output_records: u64 = spent.output.records,
        pub shuffle_remote_blocks_fetched: u64,
        pub shuffle_local_blocks_fetched: u64,
        pub shuffle_fetch_wait_time: u64 = spent.fetch_wait,
        pub shuffle_remote_bytes_read: u64 = spent.fetched.bytes,
        pub shuffle_remote_bytes_read_to_disk: u64,
        pub shuffle_local_bytes_read: u64,
        pub shuffle_read_bytes: u64 = spent.fetched.bytes,
        pub shuffle_read_records: u64 = spent.fetched.records,
        pub shuffle_corrupt_merged_block_chunks: u64,
        pub shuffle_merged_fetch_fallback_count: u64,
        pub shuffle_merged_remote_blocks_fetched: u64,
        pub shuffle_merged_local_blocks_fetched: u64,
        pub shuffle_merged_remote_chunks_fetched: u64,
        pub shuffle_merged_local_chunks_fetched: u64,
        pub shuffle_merged_remote_bytes_read: u64,
        pub shuffle_merged_local_bytes_read: u64,
        pub shuffle_remote_reqs_duration: u64,
        pub shuffle_merged_remote_reqs_duration: u64,
        pub shuffle_write_bytes: u64 = spent.shuffled.bytes,
        pub shuffle_write_time: u64,
        pub shuffle_write_records: u64 = spent.shuffled.records,
        /// `map` or `reduce`.
        pub name: String = kind.to_string(),
        pub details: &'static str,
        /// The queue of its job.
        pub scheduling_pool: String = job.summary.queue.clone(),
        pub rdd_ids: Vec<u32>,
        pub accumulator_updates: [u64; 0],
        /// By their numbers, at most 3,000: those that were launched last. A list leaves them out.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tasks: Option<BTreeMap<u64, SparkTask>>,
        /// By worker. A list leaves them out.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub executor_summary: Option<BTreeMap<String, SparkStageExecutor>>,
        pub killed_tasks_summary: BTreeMap<String, usize> = killed_for(all()),
        pub resource_profile_id: u32,
        pub is_shuffle_push_enabled: bool,
        pub shuffle_mergers_count: u32,
        /// Milliseconds for which its tasks were suspended.
        pub naptime: u64 = spent.napped,
    }

    /// A stage of a list.
    pub fn listed(job: &JobDetail, kind: TaskKind, tried: &[Tried<'_>]) {
        let all = || tried.iter().filter(|one| one.kind() == kind);
        let (status, phase) = (SparkStageStatus::of(job, kind), phase_of(job, kind));
        let (counts, spent) = (Counts::of(all()), Spent::sum(all()));
        let first = all().map(|one| one.attempt.launched_millis).min();
        let begun = first.map(|first| if kind == TaskKind::Map { job.summary.submitted_millis } else { first });
        let last = || all().filter_map(|one| one.attempt.ended_millis).max();
        let ended = match status {
            SparkStageStatus::Complete => last(),
            SparkStageStatus::Failed => job.summary.ended_millis,
            SparkStageStatus::Active | SparkStageStatus::Pending | SparkStageStatus::Skipped => None,
        };
    }
}

impl SparkStage {
    /// A stage with its tasks and who ran them.
    pub fn whole(job: &JobDetail, kind: TaskKind, tried: &[Tried<'_>]) -> SparkStage {
        let all: Vec<&Tried<'_>> = tried.iter().filter(|one| one.kind() == kind).collect();
        let last = &all[all.len().saturating_sub(TASKS_MAX)..];
        SparkStage {
            tasks: Some(last.iter().map(|one| (one.id, SparkTask::of(one))).collect()),
            executor_summary: Some(SparkStageExecutor::by_worker(&all)),
            ..SparkStage::listed(job, kind, tried)
        }
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::AttemptId;
    use napreduce_protocol::{AttemptFigures, AttemptSummary, JobSummary};

    use super::super::super::answers::samples::detail;
    use super::super::tried::tried_of;
    use super::*;

    const BASE: u64 = 1_790_000_000_000;

    /// A job whose map 3 failed, and was then done on another worker; its reduce waits.
    fn tried_again() -> JobDetail {
        let mut job = detail();
        let first = job.attempts[0].clone();
        let figures = AttemptFigures {
            input_bytes: 64,
            output_bytes: 32,
            processor_millis: 3,
            ..AttemptFigures::default()
        };
        job.attempts.push(AttemptSummary {
            attempt: AttemptId { number: 2, ..first.attempt },
            worker: napreduce_engine::WorkerId(5),
            launched_millis: BASE + 1_300,
            ended_millis: Some(BASE + 1_400),
            end: Some("done".to_owned()),
            figures: Some(figures),
            ..first
        });
        job.summary = JobSummary { phase: JobPhase::Active, ended_millis: None, ..job.summary };
        job.summary.progress.map.done = 4;
        job.summary.progress.reduce.tasks = 2;
        job
    }

    #[test]
    fn a_stage_is_where_its_attempts_are() {
        let mut job = tried_again();
        let of = |job: &JobDetail| {
            kinds_of(job).into_iter().map(|kind| SparkStageStatus::of(job, kind)).collect::<Vec<_>>()
        };
        assert_eq!(of(&job), [SparkStageStatus::Complete, SparkStageStatus::Pending]);
        job.summary.progress.map.done = 3;
        assert_eq!(of(&job), [SparkStageStatus::Active, SparkStageStatus::Pending]);
        (job.summary.phase, job.summary.ended_millis) = (JobPhase::Killed, Some(BASE + 2_000));
        assert_eq!(of(&job), [SparkStageStatus::Failed, SparkStageStatus::Skipped]);
        job.summary.progress.reduce.tasks = 0;
        assert_eq!(of(&job), [SparkStageStatus::Failed]);
    }

    #[test]
    fn a_stage_adds_its_tasks_up_and_lists_them_by_number() {
        let job = tried_again();
        let tried = tried_of(&job, BASE + 2_000);
        let told = serde_json::to_value(SparkStage::whole(&job, TaskKind::Map, &tried)).expect("JSON");
        for (field, value) in [
            ("numTasks", "4"),
            ("numCompleteTasks", "1"),
            ("numFailedTasks", "1"),
            ("executorRunTime", "1300"),
            ("executorCpuTime", "3000000"),
            ("inputBytes", "64"),
            ("shuffleWriteBytes", "32"),
            ("outputBytes", "0"),
            ("submissionTime", "\"2026-09-21T14:13:20.000GMT\""),
            ("firstTaskLaunchedTime", "\"2026-09-21T14:13:20.100GMT\""),
            ("completionTime", "\"2026-09-21T14:13:21.400GMT\""),
        ] {
            assert_eq!(told[field].to_string(), value, "{field}");
        }
        let first = &told["tasks"]["0"];
        assert_eq!((&first["status"], &first["errorMessage"]), (&"FAILED".into(), &"failed: bad row".into()));
        let second = &told["tasks"]["1"];
        assert_eq!(
            (&second["attempt"], &second["index"], &second["duration"]),
            (&1.into(), &3.into(), &100.into())
        );
        assert_eq!(told["executorSummary"]["worker_0005"]["succeededTasks"], 1);
        let waits = serde_json::to_value(SparkStage::listed(&job, TaskKind::Reduce, &tried)).expect("JSON");
        for field in ["submissionTime", "completionTime", "tasks", "executorSummary", "failureReason"] {
            assert!(waits.get(field).is_none(), "{field} of {waits}");
        }
    }

    #[test]
    fn why_attempts_were_killed_is_counted_in_words() {
        let mut job = tried_again();
        job.attempts[0].end = Some("worker_0002 was lost".to_owned());
        job.attempts[1].end = Some("preempted: job_0009 waits".to_owned());
        let expected = [("killed".to_owned(), 1), ("lost".to_owned(), 1)];
        assert_eq!(killed_for(&tried_of(&job, 0)), BTreeMap::from(expected));
    }
}

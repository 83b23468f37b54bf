//! Workers, as Spark describes executors: what an application has run on each.
//!
//! Owns these objects. Memory is not what slots are counted in here, so bytes of it are 0.

use std::collections::BTreeMap;

use napreduce_engine::WorkerId;
use napreduce_protocol::{JobDetail, WorkerPhase, WorkerSummary};

use super::times::written;
use super::tried::{Counts, Spent, Tried};
use crate::foreign::is_there;

answer! {
    /// `ExecutorSummary`
    #[serde(rename_all = "camelCase")]
    pub struct SparkExecutor {
        pub id: String = id.to_string(),
        /// The host alone: nobody but the cluster has anything to ask there.
        pub host_port: String = host,
        pub is_active: bool = worker.is_some_and(is_there),
        pub rdd_blocks: u32,
        pub memory_used: u64,
        pub disk_used: u64,
        /// Its slots.
        pub total_cores: u32 = slots,
        pub max_tasks: u32 = slots,
        pub active_tasks: usize = counts.running,
        pub failed_tasks: usize = counts.failed,
        pub completed_tasks: usize = counts.done,
        pub total_tasks: usize = tried.len(),
        /// Milliseconds in which its tasks worked.
        pub total_duration: u64 = spent.ran(),
        #[serde(rename = "totalGCTime")]
        pub total_gc_time: u64,
        pub total_input_bytes: u64 = spent.input.bytes,
        pub total_shuffle_read: u64 = spent.fetched.bytes,
        pub total_shuffle_write: u64 = spent.shuffled.bytes,
        pub is_blacklisted: bool = is_excluded,
        pub max_memory: u64,
        /// When the application first ran something there, or else when it was submitted.
        pub add_time: String = written(since),
        #[serde(skip_serializing_if = "Option::is_none")]
        pub remove_time: Option<String> = worker.and_then(|worker| worker.gone_millis).map(written),
        #[serde(skip_serializing_if = "Option::is_none")]
        pub remove_reason: Option<String> =
            worker.filter(|worker| !is_there(worker)).and_then(|worker| worker.reason.clone()),
        pub executor_logs: BTreeMap<String, String>,
        pub memory_metrics: SparkMemory = SparkMemory::default(),
        pub blacklisted_in_stages: Vec<u32>,
        pub attributes: BTreeMap<String, String>,
        pub resources: BTreeMap<String, String>,
        pub resource_profile_id: u32,
        pub is_excluded: bool = is_excluded,
        pub excluded_in_stages: Vec<u32>,
    }

    fn of(job: &JobDetail, id: WorkerId, worker: Option<&WorkerSummary>, tried: &[&Tried<'_>]) {
        let all = || tried.iter().copied();
        let (counts, spent) = (Counts::of(all()), Spent::sum(all()));
        let slots = worker.map_or(0, |worker| worker.map_slots.0.saturating_add(worker.reduce_slots.0));
        let name = tried.first().map(|one| one.attempt.worker_name.clone());
        let host = worker.map(|worker| worker.host.clone()).or(name).unwrap_or_default();
        let since = all().map(|one| one.attempt.launched_millis).min();
        let since = since.unwrap_or(job.summary.submitted_millis);
        let is_excluded = worker.is_some_and(|worker| worker.state == WorkerPhase::Excluded);
    }
}

answer! {
    /// `MemoryMetrics`
    #[serde(rename_all = "camelCase")]
    pub struct SparkMemory {
        pub used_on_heap_storage_memory: u64,
        pub used_off_heap_storage_memory: u64,
        pub total_on_heap_storage_memory: u64,
        pub total_off_heap_storage_memory: u64,
    }
}

answer! {
    /// `ExecutorStageSummary`
    #[serde(rename_all = "camelCase")]
    pub struct SparkStageExecutor {
        /// Milliseconds, those in which tasks were suspended included.
        pub task_time: u64 = spent.took,
        pub failed_tasks: usize = counts.failed,
        pub succeeded_tasks: usize = counts.done,
        pub killed_tasks: usize = counts.killed,
        pub input_bytes: u64 = spent.input.bytes,
        pub input_records: u64 = spent.input.records,
        pub output_bytes: u64 = spent.output.bytes,
        pub output_records: u64 = spent.output.records,
        pub shuffle_read: u64 = spent.fetched.bytes,
        pub shuffle_read_records: u64 = spent.fetched.records,
        pub shuffle_write: u64 = spent.shuffled.bytes,
        pub shuffle_write_records: u64 = spent.shuffled.records,
        pub memory_bytes_spilled: u64,
        pub disk_bytes_spilled: u64,
        pub is_blacklisted_for_stage: bool,
        pub is_excluded_for_stage: bool,
    }

    fn of(tried: &[&Tried<'_>]) {
        let all = || tried.iter().copied();
        let (counts, spent) = (Counts::of(all()), Spent::sum(all()));
    }
}

impl SparkStageExecutor {
    pub fn by_worker(tried: &[&Tried<'_>]) -> BTreeMap<String, SparkStageExecutor> {
        let of = |(worker, tried): (WorkerId, Vec<_>)| (worker.to_string(), SparkStageExecutor::of(&tried));
        grouped(tried.iter().copied()).into_iter().map(of).collect()
    }
}

fn grouped<'all, 'job>(
    tried: impl Iterator<Item = &'all Tried<'job>>,
) -> BTreeMap<WorkerId, Vec<&'all Tried<'job>>> {
    let mut by_worker: BTreeMap<WorkerId, Vec<&Tried<'_>>> = BTreeMap::new();
    for one in tried {
        by_worker.entry(one.attempt.worker).or_default().push(one);
    }
    by_worker
}

/// All workers that are remembered, and those that nobody remembers but the attempts of the job.
pub fn executors_of(job: &JobDetail, tried: &[Tried<'_>], workers: &[WorkerSummary]) -> Vec<SparkExecutor> {
    let known: BTreeMap<WorkerId, &WorkerSummary> =
        workers.iter().map(|worker| (worker.worker, worker)).collect();
    let mut by_worker = grouped(tried.iter());
    for worker in known.keys() {
        by_worker.entry(*worker).or_default();
    }
    let of = |(id, tried): (WorkerId, Vec<_>)| SparkExecutor::of(job, id, known.get(&id).copied(), &tried);
    by_worker.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::answers::samples::{detail, worker};
    use super::super::tried::tried_of;
    use super::*;

    #[test]
    fn executors_are_workers_and_whoever_ran_something() {
        let job = detail();
        let workers = [worker(1, WorkerPhase::Excluded, 1), worker(3, WorkerPhase::Lost, 0)];
        let executors = executors_of(&job, &tried_of(&job, 0), &workers);
        let told: Vec<_> = executors
            .iter()
            .map(|one| (one.id.as_str(), one.is_active, one.is_excluded, one.max_tasks, one.failed_tasks))
            .collect();
        let expected = [
            ("worker_0001", true, true, 3, 0),
            ("worker_0002", false, false, 0, 1),
            ("worker_0003", false, false, 3, 0),
        ];
        assert_eq!(told, expected);
        let hosts: Vec<_> = executors.iter().map(|one| one.host_port.as_str()).collect();
        assert_eq!(hosts, ["h", "left-hand", "h"]);
        let reasons = executors.iter().map(|one| one.remove_reason.is_some()).collect::<Vec<_>>();
        assert_eq!(reasons, [false, false, true]);
    }
}

//! What is usual among the tasks of a stage that were done, as Spark draws it: quantiles of each figure.
//!
//! Owns these objects and how quantiles are drawn. As Spark does, it takes of so many tasks in order the one
//! at that share of their number, so that each value has occurred. Does not own the figures (`tried`).

use super::tried::{Spent, Tried};
use crate::foreign::TriedState;

/// Draws the quantiles of a figure.
type Drawn<'all> = &'all dyn Fn(fn(&Spent) -> u64) -> Vec<f64>;

answer! {
    /// `TaskMetricDistributions`: each list is in the order of `quantiles`.
    #[serde(rename_all = "camelCase")]
    pub struct SparkTaskSummary {
        pub quantiles: Vec<f64> = quantiles.to_vec(),
        pub duration: Vec<f64> = drawn(|spent| spent.took),
        pub executor_deserialize_time: Vec<f64> = none(),
        pub executor_deserialize_cpu_time: Vec<f64> = none(),
        pub executor_run_time: Vec<f64> = drawn(Spent::ran),
        pub executor_cpu_time: Vec<f64> = drawn(|spent| spent.processor_nanos),
        pub result_size: Vec<f64> = none(),
        pub jvm_gc_time: Vec<f64> = none(),
        pub result_serialization_time: Vec<f64> = none(),
        pub getting_result_time: Vec<f64> = none(),
        pub scheduler_delay: Vec<f64> = drawn(|spent| spent.delay),
        pub peak_execution_memory: Vec<f64> = none(),
        pub memory_bytes_spilled: Vec<f64> = none(),
        pub disk_bytes_spilled: Vec<f64> = none(),
        pub input_metrics: SparkUsualInput = SparkUsualInput::of(drawn),
        pub output_metrics: SparkUsualOutput = SparkUsualOutput::of(drawn),
        pub shuffle_read_metrics: SparkUsualRead = SparkUsualRead::of(drawn, none()),
        pub shuffle_write_metrics: SparkUsualWrite = SparkUsualWrite::of(drawn, none()),
        /// Milliseconds for which they were suspended.
        pub naptime: Vec<f64> = drawn(|spent| spent.napped),
    }

    fn drawn_by(quantiles: &[f64], drawn: Drawn<'_>) {
        let none = || vec![0.0; quantiles.len()];
    }
}

answer! {
    /// `InputMetricDistributions`
    #[serde(rename_all = "camelCase")]
    pub struct SparkUsualInput {
        pub bytes_read: Vec<f64> = drawn(|spent| spent.input.bytes),
        pub records_read: Vec<f64> = drawn(|spent| spent.input.records),
    }

    fn of(drawn: Drawn<'_>);
}

answer! {
    /// `OutputMetricDistributions`
    #[serde(rename_all = "camelCase")]
    pub struct SparkUsualOutput {
        pub bytes_written: Vec<f64> = drawn(|spent| spent.output.bytes),
        pub records_written: Vec<f64> = drawn(|spent| spent.output.records),
    }

    fn of(drawn: Drawn<'_>);
}

answer! {
    /// `ShuffleReadMetricDistributions`
    #[serde(rename_all = "camelCase")]
    pub struct SparkUsualRead {
        pub read_bytes: Vec<f64> = drawn(|spent| spent.fetched.bytes),
        pub read_records: Vec<f64> = drawn(|spent| spent.fetched.records),
        pub remote_blocks_fetched: Vec<f64> = none.clone(),
        pub local_blocks_fetched: Vec<f64> = none.clone(),
        pub fetch_wait_time: Vec<f64> = drawn(|spent| spent.fetch_wait),
        pub remote_bytes_read: Vec<f64> = drawn(|spent| spent.fetched.bytes),
        pub remote_bytes_read_to_disk: Vec<f64> = none.clone(),
        pub total_blocks_fetched: Vec<f64> = none.clone(),
        pub remote_reqs_duration: Vec<f64> = none.clone(),
        pub shuffle_push_read_metrics_dist: SparkUsualPushRead = SparkUsualPushRead::of(none),
    }

    fn of(drawn: Drawn<'_>, none: Vec<f64>);
}

answer! {
    /// `ShufflePushReadMetricDistributions`: nothing is pushed here.
    #[serde(rename_all = "camelCase")]
    pub struct SparkUsualPushRead {
        pub corrupt_merged_block_chunks: Vec<f64> = none.clone(),
        pub merged_fetch_fallback_count: Vec<f64> = none.clone(),
        pub remote_merged_blocks_fetched: Vec<f64> = none.clone(),
        pub local_merged_blocks_fetched: Vec<f64> = none.clone(),
        pub remote_merged_chunks_fetched: Vec<f64> = none.clone(),
        pub local_merged_chunks_fetched: Vec<f64> = none.clone(),
        pub remote_merged_bytes_read: Vec<f64> = none.clone(),
        pub local_merged_bytes_read: Vec<f64> = none.clone(),
        pub remote_merged_reqs_duration: Vec<f64> = none,
    }

    fn of(none: Vec<f64>);
}

answer! {
    /// `ShuffleWriteMetricDistributions`
    #[serde(rename_all = "camelCase")]
    pub struct SparkUsualWrite {
        pub write_bytes: Vec<f64> = drawn(|spent| spent.shuffled.bytes),
        pub write_records: Vec<f64> = drawn(|spent| spent.shuffled.records),
        pub write_time: Vec<f64> = none,
    }

    fn of(drawn: Drawn<'_>, none: Vec<f64>);
}

impl SparkTaskSummary {
    /// Nothing before one was done. Quantiles are from 0 to 1.
    pub fn of(tried: &[&Tried<'_>], quantiles: &[f64]) -> Option<SparkTaskSummary> {
        let done = tried.iter().filter(|one| one.state == TriedState::Succeeded);
        let done: Vec<&Spent> = done.map(|one| &one.spent).collect();
        let last = done.len().checked_sub(1)?;
        let drawn = |figure: fn(&Spent) -> u64| {
            let mut values: Vec<u64> = done.iter().map(|spent| figure(spent)).collect();
            values.sort_unstable();
            let at = |share: &f64| values[((share * values.len() as f64) as usize).min(last)] as f64;
            quantiles.iter().map(at).collect()
        };
        Some(SparkTaskSummary::drawn_by(quantiles, &drawn))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::answers::samples::detail;
    use super::super::tried::tried_of;
    use super::*;

    #[test]
    fn quantiles_are_values_of_tasks_that_were_done() {
        let mut job = detail();
        let one = job.attempts.remove(0);
        for took in [40, 10, 30, 20] {
            let mut done = one.clone();
            (done.end, done.ended_millis) = (Some("done".to_owned()), Some(one.launched_millis + took));
            job.attempts.push(done);
        }
        job.attempts.push(one);
        let tried = tried_of(&job, 0);
        let drawn = |tried: &[&Tried<'_>]| {
            SparkTaskSummary::of(tried, &[0.0, 0.25, 0.5, 1.0]).map(|summary| summary.duration)
        };
        assert_eq!(drawn(&tried.iter().collect::<Vec<_>>()), Some(vec![10.0, 20.0, 30.0, 40.0]));
        assert_eq!(drawn(&[&tried[4]]), None);
    }
}

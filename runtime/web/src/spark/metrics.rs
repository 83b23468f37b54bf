//! What a task took and moved, as Spark tells it of one.
//!
//! Owns these objects. How much a fetch brought from which machine is not told apart: all of it is remote.

use super::tried::Spent;

answer! {
    /// `TaskMetrics`
    #[serde(rename_all = "camelCase")]
    pub struct SparkTaskMetrics {
        pub executor_deserialize_time: u64,
        pub executor_deserialize_cpu_time: u64,
        /// Milliseconds in which it worked: not until its process did, nor while it was suspended.
        pub executor_run_time: u64 = spent.ran(),
        /// Nanoseconds.
        pub executor_cpu_time: u64 = spent.processor_nanos,
        pub result_size: u64,
        pub jvm_gc_time: u64,
        pub result_serialization_time: u64,
        pub memory_bytes_spilled: u64,
        pub disk_bytes_spilled: u64,
        pub peak_execution_memory: u64,
        pub input_metrics: SparkInput = SparkInput::of(spent),
        pub output_metrics: SparkOutput = SparkOutput::of(spent),
        pub shuffle_read_metrics: SparkShuffleRead = SparkShuffleRead::of(spent),
        pub shuffle_write_metrics: SparkShuffleWrite = SparkShuffleWrite::of(spent),
    }

    pub fn of(spent: &Spent);
}

answer! {
    /// `InputMetrics`
    #[serde(rename_all = "camelCase")]
    pub struct SparkInput {
        pub bytes_read: u64 = spent.input.bytes,
        pub records_read: u64 = spent.input.records,
    }

    fn of(spent: &Spent);
}

answer! {
    /// `OutputMetrics`
    #[serde(rename_all = "camelCase")]
    pub struct SparkOutput {
        pub bytes_written: u64 = spent.output.bytes,
        pub records_written: u64 = spent.output.records,
    }

    fn of(spent: &Spent);
}

answer! {
    /// `ShuffleReadMetrics`
    #[serde(rename_all = "camelCase")]
    pub struct SparkShuffleRead {
        pub remote_blocks_fetched: u64,
        pub local_blocks_fetched: u64,
        /// Milliseconds in which it waited for outputs of maps.
        pub fetch_wait_time: u64 = spent.fetch_wait,
        pub remote_bytes_read: u64 = spent.fetched.bytes,
        pub remote_bytes_read_to_disk: u64,
        pub local_bytes_read: u64,
        pub records_read: u64 = spent.fetched.records,
        pub remote_reqs_duration: u64,
        pub shuffle_push_read_metrics: SparkPushRead = SparkPushRead::default(),
    }

    fn of(spent: &Spent);
}

answer! {
    /// `ShufflePushReadMetrics`: nothing is pushed here.
    #[serde(rename_all = "camelCase")]
    pub struct SparkPushRead {
        pub corrupt_merged_block_chunks: u64,
        pub merged_fetch_fallback_count: u64,
        pub remote_merged_blocks_fetched: u64,
        pub local_merged_blocks_fetched: u64,
        pub remote_merged_chunks_fetched: u64,
        pub local_merged_chunks_fetched: u64,
        pub remote_merged_bytes_read: u64,
        pub local_merged_bytes_read: u64,
        pub remote_merged_reqs_duration: u64,
    }
}

answer! {
    /// `ShuffleWriteMetrics`
    #[serde(rename_all = "camelCase")]
    pub struct SparkShuffleWrite {
        pub bytes_written: u64 = spent.shuffled.bytes,
        pub write_time: u64,
        pub records_written: u64 = spent.shuffled.records,
    }

    fn of(spent: &Spent);
}

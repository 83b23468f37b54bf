//! The counters every job has, under Hadoop's names where it has them.
//!
//! Owns their names, how two values of one add up, and the cells one attempt counts in. Does not own the
//! user's own.

use std::sync::atomic::{AtomicU64, Ordering};

use napreduce_engine::listed;

use super::values::CounterValues;

listed! {
    /// A counter every job has, in the order people see them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Counter {
        /// Map attempts started.
        LaunchedMaps = "TOTAL_LAUNCHED_MAPS",
        /// Reduce attempts started.
        LaunchedReduces = "TOTAL_LAUNCHED_REDUCES",
        /// Map attempts that failed.
        FailedMaps = "NUM_FAILED_MAPS",
        /// Reduce attempts that failed.
        FailedReduces = "NUM_FAILED_REDUCES",
        /// Map attempts that were killed on request.
        KilledMaps = "NUM_KILLED_MAPS",
        /// Reduce attempts that were killed on request.
        KilledReduces = "NUM_KILLED_REDUCES",
        /// Wall time of map attempts, in milliseconds.
        MapMillis = "MILLIS_MAPS",
        /// Wall time of reduce attempts, in milliseconds.
        ReduceMillis = "MILLIS_REDUCES",
        /// Bytes of input consumed by maps.
        InputBytes = "BYTES_READ",
        /// Requests to stores for the bytes of input, those that failed included.
        StorageReadRequests = "STORAGE_READ_REQUESTS",
        /// Bytes of input that came from stores.
        StorageReadBytes = "STORAGE_READ_BYTES",
        /// Requests to stores that were made again, or went on where an answer had broken off.
        StorageReadRetries = "STORAGE_READ_RETRIES",
        /// Requests to stores that wrote parts of the output, those that failed included.
        StorageWriteRequests = "STORAGE_WRITE_REQUESTS",
        /// Bytes of the output that stores have taken.
        StorageWriteBytes = "STORAGE_WRITE_BYTES",
        /// Requests to stores that wrote, and were made again.
        StorageWriteRetries = "STORAGE_WRITE_RETRIES",
        /// Records handed to the map function.
        MapInputRecords = "MAP_INPUT_RECORDS",
        /// Records emitted by the map function.
        MapOutputRecords = "MAP_OUTPUT_RECORDS",
        /// Bytes of keys and values emitted by the map function.
        MapOutputBytes = "MAP_OUTPUT_BYTES",
        /// Bytes of sealed map output.
        MapOutputMaterializedBytes = "MAP_OUTPUT_MATERIALIZED_BYTES",
        /// Of these, bytes that were in memory instead of on a disk.
        MapOutputMemoryBytes = "MAP_OUTPUT_MEMORY_BYTES",
        /// Records that went into a combiner.
        CombineInputRecords = "COMBINE_INPUT_RECORDS",
        /// Records that came out of a combiner.
        CombineOutputRecords = "COMBINE_OUTPUT_RECORDS",
        /// Records written to disk by sorting and merging, in maps and reduces.
        SpilledRecords = "SPILLED_RECORDS",
        /// Intermediate merges of reduces, which had more map outputs than one merge takes.
        MergePasses = "MERGE_PASSES",
        /// Bytes of map output read by reduces.
        ReduceShuffleBytes = "REDUCE_SHUFFLE_BYTES",
        /// Map outputs read by reduces.
        ShuffledMaps = "SHUFFLED_MAPS",
        /// Bytes of map output that reduces fetched from workers' data servers, as stored there.
        ShuffleNetworkBytes = "SHUFFLE_NETWORK_BYTES",
        /// Times a fetch was begun anew after it broke.
        ShuffleRetries = "SHUFFLE_RETRIES",
        /// Wall time reduces spent waiting for map output to arrive, in milliseconds.
        ShuffleFetchMillis = "SHUFFLE_FETCH_MILLIS",
        /// Groups handed to the reduce function.
        ReduceInputGroups = "REDUCE_INPUT_GROUPS",
        /// Records handed to the reduce function.
        ReduceInputRecords = "REDUCE_INPUT_RECORDS",
        /// Records emitted by the reduce function.
        ReduceOutputRecords = "REDUCE_OUTPUT_RECORDS",
        /// Bytes of part files.
        OutputBytes = "BYTES_WRITTEN",
        /// Bytes read from files of any kind.
        FileBytesRead = "FILE_BYTES_READ",
        /// Bytes written to files of any kind.
        FileBytesWritten = "FILE_BYTES_WRITTEN",
        /// Processor time of attempts, in milliseconds.
        CpuMillis = "CPU_MILLISECONDS",
        /// Processor time of commands that attempts ran, and of what those ran and waited for, in
        /// milliseconds; not in `CPU_MILLISECONDS`.
        CommandCpuMillis = "COMMAND_CPU_MILLISECONDS",
        /// The most resident memory that any one process among them was seen to have had, in bytes. They are
        /// looked at each second, and when their input ends.
        PeakCommandBytes = "PEAK_COMMAND_BYTES",
        /// Times an attempt was suspended.
        Suspends = "SUSPENDS",
        /// Times a suspended attempt went on.
        Resumes = "RESUMES",
        /// Time that attempts were suspended for, in milliseconds.
        SuspendedMillis = "SUSPENDED_MILLIS",
        /// Memory of suspended attempts that went out to swap, in bytes.
        SwappedOutBytes = "SWAPPED_OUT_BYTES",
        /// Memory of suspended attempts that came back from swap, read in advance or when it was
        /// touched, in bytes.
        SwappedInBytes = "SWAPPED_IN_BYTES",
        /// Times an attempt saved its work and ended.
        Checkpoints = "CHECKPOINTS",
        /// Bytes of checkpoints.
        CheckpointBytes = "CHECKPOINT_BYTES",
        /// Time that attempts took to save their work, in milliseconds.
        CheckpointMillis = "CHECKPOINT_MILLIS",
        /// Attempts that went on from a checkpoint.
        CheckpointRestores = "CHECKPOINT_RESTORES",
        /// Work that preemption made to be done again, in milliseconds.
        WorkLostMillis = "WORK_LOST_MILLIS",
        /// Work that a kill would have lost each time an attempt was suspended or checkpointed, in
        /// milliseconds.
        WorkSavedMillis = "WORK_SAVED_MILLIS",
        /// The largest anonymous memory of any one attempt, in bytes; mapped files are not in it.
        PeakAnonBytes = "PEAK_ANON_BYTES",
    }
}

impl Counter {
    const fn is_peak(self) -> bool {
        matches!(self, Counter::PeakAnonBytes | Counter::PeakCommandBytes)
    }

    /// The value for two attempts together: the larger of two peaks, the sum of anything else.
    pub fn join(self, one: u64, other: u64) -> u64 {
        match self {
            _ if self.is_peak() => one.max(other),
            _ => one.saturating_add(other),
        }
    }
}

/// The built-in counters of one attempt, shared by its threads.
///
/// Adding is one relaxed atomic operation: meant for once per batch or per task, not for once per record.
#[derive(Debug)]
pub struct Counters {
    cells: [AtomicU64; Counter::ALL.len()],
}

impl Default for Counters {
    fn default() -> Counters {
        Counters { cells: [const { AtomicU64::new(0) }; Counter::ALL.len()] }
    }
}

impl Counters {
    /// Adds to a counter; for a peak, keeps the larger value.
    #[inline]
    pub fn add(&self, counter: Counter, amount: u64) {
        let cell = &self.cells[counter as usize];
        if counter.is_peak() {
            cell.fetch_max(amount, Ordering::Relaxed)
        } else {
            cell.fetch_add(amount, Ordering::Relaxed)
        };
    }

    /// What a counter stands at.
    pub fn get(&self, counter: Counter) -> u64 {
        self.cells[counter as usize].load(Ordering::Relaxed)
    }

    /// Adds the built-in ones of what was saved.
    pub fn add_all(&self, saved: &CounterValues) {
        for (name, amount) in saved.iter() {
            if let Some(counter) = Counter::of_word(name) {
                self.add(counter, amount);
            }
        }
    }

    /// All counters that are not zero.
    pub fn values(&self) -> CounterValues {
        let mut values = CounterValues::default();
        for counter in Counter::ALL {
            values.add_to(counter, self.get(counter));
        }
        values
    }
}

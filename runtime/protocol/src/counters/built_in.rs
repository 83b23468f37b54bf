//! The built-in counters of every job, under Hadoop's names where it has them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use napreduce_engine::listed;

use crate::lock::lock;

use super::values::CounterValues;

listed! {
    /// A built-in counter, in display order.
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
        /// Read requests to object stores, including failed ones.
        StorageReadRequests = "STORAGE_READ_REQUESTS",
        /// Bytes of input from object stores.
        StorageReadBytes = "STORAGE_READ_BYTES",
        /// Read requests to object stores that were repeated or resumed.
        StorageReadRetries = "STORAGE_READ_RETRIES",
        /// Write requests to object stores, including failed ones.
        StorageWriteRequests = "STORAGE_WRITE_REQUESTS",
        /// Bytes of output stored in object stores.
        StorageWriteBytes = "STORAGE_WRITE_BYTES",
        /// Write requests to object stores that were repeated.
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
        /// Intermediate merges of reduces with more map outputs than the fan-in.
        MergePasses = "MERGE_PASSES",
        /// Bytes of map output read by reduces.
        ReduceShuffleBytes = "REDUCE_SHUFFLE_BYTES",
        /// Map outputs read by reduces.
        ShuffledMaps = "SHUFFLED_MAPS",
        /// Bytes of map output that reduces fetched from workers' data servers, as stored there.
        ShuffleNetworkBytes = "SHUFFLE_NETWORK_BYTES",
        /// Fetches restarted after an error.
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
        /// Processor time of commands run by attempts, including their descendants that were waited for, in
        /// milliseconds; not included in `CPU_MILLISECONDS`.
        CommandCpuMillis = "COMMAND_CPU_MILLISECONDS",
        /// The largest resident memory seen in any one of these processes, in bytes. Sampled each second, and
        /// at the end of their input.
        PeakCommandBytes = "PEAK_COMMAND_BYTES",
        /// Times an attempt was suspended.
        Suspends = "SUSPENDS",
        /// Times a suspended attempt was resumed.
        Resumes = "RESUMES",
        /// Time attempts spent suspended, in milliseconds.
        SuspendedMillis = "SUSPENDED_MILLIS",
        /// Memory of suspended attempts written to swap, in bytes.
        SwappedOutBytes = "SWAPPED_OUT_BYTES",
        /// Memory of suspended attempts read back from swap, by read-ahead or on access, in bytes.
        SwappedInBytes = "SWAPPED_IN_BYTES",
        /// Times an attempt was checkpointed.
        Checkpoints = "CHECKPOINTS",
        /// Bytes of checkpoints.
        CheckpointBytes = "CHECKPOINT_BYTES",
        /// Time spent writing checkpoints, in milliseconds.
        CheckpointMillis = "CHECKPOINT_MILLIS",
        /// Attempts restored from a checkpoint.
        CheckpointRestores = "CHECKPOINT_RESTORES",
        /// Work lost to preemption, in milliseconds.
        WorkLostMillis = "WORK_LOST_MILLIS",
        /// Work saved by suspending or checkpointing instead of killing, in milliseconds.
        WorkSavedMillis = "WORK_SAVED_MILLIS",
        /// The largest anonymous memory of one attempt, in bytes; excludes mapped files.
        PeakAnonBytes = "PEAK_ANON_BYTES",
    }
}

impl Counter {
    const fn is_peak(self) -> bool {
        matches!(self, Counter::PeakAnonBytes | Counter::PeakCommandBytes)
    }

    /// Combines the values of two attempts: the maximum for a peak, else the sum.
    pub fn join(self, one: u64, other: u64) -> u64 {
        match self {
            _ if self.is_peak() => one.max(other),
            _ => one.saturating_add(other),
        }
    }
}

/// The built-in counters of one attempt, shared by its threads.
///
/// Adding is one relaxed atomic operation: use it once per batch or task, not per record.
#[derive(Debug)]
pub struct Counters {
    cells: [AtomicU64; Counter::ALL.len()],
    hot_keys: Mutex<CounterValues>,
}

impl Default for Counters {
    fn default() -> Counters {
        let cells = [const { AtomicU64::new(0) }; Counter::ALL.len()];
        Counters {
            cells,
            hot_keys: Mutex::default(),
        }
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

    /// Returns a counter's value.
    pub fn get(&self, counter: Counter) -> u64 {
        self.cells[counter as usize].load(Ordering::Relaxed)
    }

    /// Adds records of hot keys, of which those with fewer records are then dropped.
    pub fn add_hot_keys(&self, keys: impl IntoIterator<Item = (String, u64)>, records_min: u64) {
        let mut known = self.hot_keys();
        keys.into_iter()
            .for_each(|(key, records)| known.add_hot_key(&key, records));
        known.keep_hot_keys(records_min);
    }

    /// A panic can at worst leave a key out.
    fn hot_keys(&self) -> MutexGuard<'_, CounterValues> {
        lock(&self.hot_keys)
    }

    /// Adds saved built-in counters and hot keys.
    pub fn add_all(&self, saved: &CounterValues) {
        let keys = saved
            .hot_keys()
            .into_iter()
            .map(|(key, records)| (key.to_owned(), records));
        self.add_hot_keys(keys, 0);
        for (name, amount) in saved.iter() {
            if let Some(counter) = Counter::of_word(name) {
                self.add(counter, amount);
            }
        }
    }

    /// Returns all counters that are not zero, and the hot keys.
    pub fn values(&self) -> CounterValues {
        let mut values = self.hot_keys().clone();
        for counter in Counter::ALL {
            values.add_to(counter, self.get(counter));
        }
        values
    }
}

//! The memory budget of one task: its limit, what is granted, and the peak. A minimum grant always succeeds
//! (`take`), so that a task makes progress with any amount of memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::segment::BLOCK_BYTES;

/// The least memory that a task is assumed to have.
const MEMORY_MIN: usize = 1 << 20;
const WRITE_BUFFER_MAX: usize = 1 << 20;
/// Sort entries count arena bytes in 32 bits.
const ARENA_MAX: usize = 64 << 30;

/// A task's memory budget; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limit: usize,
    used: AtomicUsize,
    peak: AtomicUsize,
}

/// Memory granted to one holder, returned on drop.
#[derive(Debug)]
pub(crate) struct Grant {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(memory: usize) -> Budget {
        let limit = memory.max(MEMORY_MIN);
        Budget {
            shared: Arc::new(Shared {
                limit,
                used: AtomicUsize::new(0),
                peak: AtomicUsize::new(0),
            }),
        }
    }

    /// Grants `bytes` unconditionally: for the minimum without which a task makes no progress.
    pub(crate) fn take(&self, bytes: usize) -> Grant {
        self.add(bytes);
        Grant {
            budget: self.clone(),
            bytes,
        }
    }

    /// Returns the most bytes that were granted at once.
    pub(crate) fn peak(&self) -> usize {
        self.shared.peak.load(Ordering::Relaxed)
    }

    /// Returns the size limit of one sort arena. Two arenas exist while one is spilled; with a combine table
    /// they get half as much.
    pub(crate) fn arena_max(&self, with_table: bool) -> usize {
        let share = self.shared.limit / 5;
        if with_table {
            share.min(ARENA_MAX)
        } else {
            (2 * share).min(ARENA_MAX)
        }
    }

    /// Returns the size limit of the combine table.
    pub(crate) fn table_max(&self) -> usize {
        2 * (self.shared.limit / 5)
    }

    /// Returns the size of a file's write buffer.
    pub(crate) fn write_buffer(&self) -> usize {
        (self.shared.limit / 16).clamp(BLOCK_BYTES, WRITE_BUFFER_MAX)
    }

    /// Returns the memory limit for small merge inputs that are read instead of mapped.
    pub(crate) fn read_max(&self) -> usize {
        self.shared.limit / 4
    }

    /// Returns the fan-in limit of a merge whose sources each need a decompression buffer.
    pub(crate) fn fan_in_compressed(&self) -> usize {
        (self.shared.limit / 2 / BLOCK_BYTES).max(2)
    }

    fn add(&self, bytes: usize) {
        let used = self.shared.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.shared.peak.fetch_max(used, Ordering::Relaxed);
    }
}

impl Grant {
    /// Changes the grant to exactly `bytes`, unconditionally.
    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.budget.add(bytes - self.bytes);
        } else {
            self.budget
                .shared
                .used
                .fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.set(0);
    }
}

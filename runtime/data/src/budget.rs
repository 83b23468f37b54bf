//! The memory of one task: what may be held, what is held, and the most that was held.
//!
//! Owns grants and how a task's memory is divided among arenas, combine table and buffers. Does not own the
//! memory. A minimum grant always exists (`take`), so that a task progresses however small its memory is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::segment::BLOCK_BYTES;

/// The least memory a task is divided for.
const MEMORY_MIN: usize = 1 << 20;
const WRITE_BUFFER_MAX: usize = 1 << 20;
/// No arena is larger: its entries are counted in 32 bits.
const ARENA_MAX: usize = 64 << 30;

/// The memory of one task; clones share it.
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

/// Memory granted to one holder; returned when dropped.
#[derive(Debug)]
pub(crate) struct Grant {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(memory: usize) -> Budget {
        let limit = memory.max(MEMORY_MIN);
        Budget { shared: Arc::new(Shared { limit, used: AtomicUsize::new(0), peak: AtomicUsize::new(0) }) }
    }

    /// A grant that is never refused: for the minimum without which nothing moves.
    pub(crate) fn take(&self, bytes: usize) -> Grant {
        self.add(bytes);
        Grant { budget: self.clone(), bytes }
    }

    /// The most that was granted at once, in bytes.
    pub(crate) fn peak(&self) -> usize {
        self.shared.peak.load(Ordering::Relaxed)
    }

    /// The most one sort arena may hold; two of them exist while one is being spilled. The combine table,
    /// while there is one, takes half of their memory.
    pub(crate) fn arena_max(&self, beside_table: bool) -> usize {
        let share = self.shared.limit / 5;
        if beside_table { share.min(ARENA_MAX) } else { (2 * share).min(ARENA_MAX) }
    }

    /// The most the combine table may hold.
    pub(crate) fn table_max(&self) -> usize {
        2 * (self.shared.limit / 5)
    }

    /// How much is written to a file at once.
    pub(crate) fn write_buffer(&self) -> usize {
        (self.shared.limit / 16).clamp(BLOCK_BYTES, WRITE_BUFFER_MAX)
    }

    /// The most that small inputs of a merge may hold that are read into memory.
    pub(crate) fn read_max(&self) -> usize {
        self.shared.limit / 4
    }

    /// The most sources that are merged at once, when each needs a buffer for its decompressed block.
    pub(crate) fn fan_in_compressed(&self) -> usize {
        (self.shared.limit / 2 / BLOCK_BYTES).max(2)
    }

    fn add(&self, bytes: usize) {
        let used = self.shared.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.shared.peak.fetch_max(used, Ordering::Relaxed);
    }
}

impl Grant {
    /// Makes the grant exactly `bytes`, without asking.
    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.budget.add(bytes - self.bytes);
        } else {
            self.budget.shared.used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
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

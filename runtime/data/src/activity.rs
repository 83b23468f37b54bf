//! A progress counter of the data plane, from which a watchdog sees that a long spill or merge is not hung.

use std::sync::atomic::{AtomicU64, Ordering};

static BLOCKS: AtomicU64 = AtomicU64::new(0);

/// Returns how many blocks this process has written and started to read.
pub fn blocks_moved() -> u64 {
    BLOCKS.load(Ordering::Relaxed)
}

/// Counts one block. A block is 128 KiB, so the atomic add costs nothing measurable.
pub(crate) fn block_moved() {
    BLOCKS.fetch_add(1, Ordering::Relaxed);
}

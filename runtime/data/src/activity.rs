//! A count that grows while the data plane works, for whoever watches from beside it.
//!
//! Owns the count: spilling and merging go on for long without handing out a record. Does not own how much
//! work there is, nor who looks.

use std::sync::atomic::{AtomicU64, Ordering};

static BLOCKS: AtomicU64 = AtomicU64::new(0);

/// How many blocks of segments this process has written, and begun to read.
pub fn blocks_moved() -> u64 {
    BLOCKS.load(Ordering::Relaxed)
}

/// Counts a block: once for 128 KiB, so it costs nothing that can be measured.
pub(crate) fn block_moved() {
    BLOCKS.fetch_add(1, Ordering::Relaxed);
}

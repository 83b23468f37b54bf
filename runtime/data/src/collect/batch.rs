//! A few hundred emitted values on their way to the combine table.
//!
//! Owns their layout. A batch is what lets `Collector` not know its combiner: one virtual call takes a whole batch, and
//! the table can fetch all slots of a batch before it needs the first.

use crate::key;

/// Values per batch: enough to hide the call and the cache misses, few enough to stay in the first-level cache.
pub(crate) const BATCH: usize = 256;
/// The longest key that is kept in a batch and in a slot as it is.
pub(crate) const INLINE_MAX: usize = 16;
/// The longest key that enters the table at all.
pub(crate) const LONG_MAX: usize = 4 << 10;
/// Bytes of long keys that make a batch full.
const LONG_BYTES: usize = 64 << 10;

/// One emitted value and its key.
pub(crate) struct Emitted<V> {
    /// The key padded with zeros, when it is inline; otherwise where it lies in `Batch::long`.
    pub head: u128,
    /// Length of the key.
    pub len: u32,
    pub value: V,
}

pub(crate) struct Batch<V> {
    pub emitted: Vec<Emitted<V>>,
    pub long: Vec<u8>,
}

impl<V> Batch<V> {
    pub(crate) fn new() -> Batch<V> {
        Batch { emitted: Vec::with_capacity(BATCH), long: Vec::new() }
    }

    /// Adds a value whose key is at most `LONG_MAX` long; `true` when the batch is full.
    #[inline(always)]
    pub(crate) fn push(&mut self, key: &[u8], value: V) -> bool {
        let len = key.len() as u32;
        if key.len() <= INLINE_MAX {
            self.emitted.push(Emitted { head: key::head(key), len, value });
            self.emitted.len() == BATCH
        } else {
            self.emitted.push(Emitted { head: self.long.len() as u128, len, value });
            self.long.extend_from_slice(key);
            self.emitted.len() == BATCH || self.long.len() >= LONG_BYTES
        }
    }
}

//! Batches of emitted values on their way to the combine table. One virtual call takes a whole batch, so
//! `Collector` need not name the combiner's type; and each slot is prefetched on emit, so that it has arrived
//! when the batch is full.

use crate::collect::packed::Probe;
use crate::collect::slots::SlotWindow;

/// Values per batch: enough to amortize the call and hide cache misses, few enough for the L1 cache.
pub(crate) const BATCH: usize = 256;
/// Longer keys bypass the table.
pub(crate) const LONG_MAX: usize = 4 << 10;
/// A batch with this many bytes of long keys and of heap memory of values is full.
const BYTES_MAX: usize = 64 << 10;

/// One emitted value and its key.
pub(crate) struct Emitted<V> {
    pub probe: Probe,
    pub value: V,
}

pub(crate) struct Batch<V> {
    pub emitted: Vec<Emitted<V>>,
    /// The long keys, concatenated; a long key's probe has the end of its bytes.
    pub long: Vec<u8>,
    /// Heap memory of the values.
    pub heap: usize,
    pub window: SlotWindow,
}

impl<V> Batch<V> {
    pub(crate) fn new(window: SlotWindow) -> Batch<V> {
        Batch {
            emitted: Vec::with_capacity(BATCH),
            long: Vec::new(),
            heap: 0,
            window,
        }
    }

    /// Adds a value with a key of at most `PACKED_MAX` bytes; returns whether the batch is full.
    #[inline(always)]
    pub(crate) fn push(&mut self, key: &[u8], value: V, heap_bytes: usize) -> bool {
        self.add(Probe::packed(key), value, heap_bytes);
        self.emitted.len() == BATCH || self.heap >= BYTES_MAX
    }

    /// Adds a value with a key of at most `LONG_MAX` bytes; returns whether the batch is full.
    pub(crate) fn push_long(&mut self, key: &[u8], value: V, heap_bytes: usize) -> bool {
        self.long.extend_from_slice(key);
        self.add(Probe::long(key, self.long.len()), value, heap_bytes);
        self.emitted.len() == BATCH || self.long.len() + self.heap >= BYTES_MAX
    }

    #[inline(always)]
    fn add(&mut self, probe: Probe, value: V, heap_bytes: usize) {
        self.heap += heap_bytes;
        self.window.prefetch(probe.home);
        self.emitted.push(Emitted { probe, value });
    }
}

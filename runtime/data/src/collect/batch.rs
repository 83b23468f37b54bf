//! A few hundred emitted values on their way to the combine table.
//!
//! Owns their layout and their hashes. A batch is what lets `Collector` not know its combiner: one virtual
//! call takes a whole batch. A value's slot is prefetched when the value is emitted, so that it has arrived
//! when the batch is full.

use xxhash_rust::xxh3::xxh3_64;

use crate::collect::packed::{PACKED_MAX, Packed, pack};
use crate::collect::slots::SlotWindow;

/// Values per batch: enough to hide the call and the cache misses, few enough to stay in the first-level
/// cache.
pub(crate) const BATCH: usize = 256;
/// The longest key that enters the table at all.
pub(crate) const LONG_MAX: usize = 4 << 10;
/// Bytes of long keys that make a batch full.
const LONG_BYTES: usize = 64 << 10;
/// The length code of a key that is not packed; packed ones have their length plus 1.
pub(crate) const LONG: u32 = PACKED_MAX as u32 + 2;

/// One emitted value and its key.
pub(crate) struct Emitted<V> {
    /// The packed key, or the long key's hash and its place in `Batch::long`.
    pub head: Packed,
    /// Upper half of the hash, which chooses the slot.
    pub home: u32,
    /// 24 bits of the lower half, and the length code.
    pub tag: u32,
    pub value: V,
}

pub(crate) struct Batch<V> {
    pub emitted: Vec<Emitted<V>>,
    /// The long keys, one after the other; those of `emitted` end at `Emitted::head.1`.
    pub long: Vec<u8>,
    pub window: SlotWindow,
}

impl<V> Batch<V> {
    pub(crate) fn new(window: SlotWindow) -> Batch<V> {
        Batch { emitted: Vec::with_capacity(BATCH), long: Vec::new(), window }
    }

    /// Adds a value whose key is at most `PACKED_MAX` long; `true` when the batch is full.
    #[inline(always)]
    pub(crate) fn push(&mut self, key: &[u8], value: V) -> bool {
        let head = pack(key);
        let code = key.len() as u32 + 1;
        self.add(hash_packed(head, code), head, code, value);
        self.emitted.len() == BATCH
    }

    /// Adds a value whose key is at most `LONG_MAX` long; `true` when the batch is full.
    pub(crate) fn push_long(&mut self, key: &[u8], value: V) -> bool {
        let hash = xxh3_64(key);
        self.long.extend_from_slice(key);
        self.add(hash, (hash, self.long.len() as u64), LONG, value);
        self.emitted.len() == BATCH || self.long.len() >= LONG_BYTES
    }

    #[inline(always)]
    fn add(&mut self, hash: u64, head: Packed, code: u32, value: V) {
        let home = home(hash);
        self.window.prefetch(home);
        self.emitted.push(Emitted { head, home, tag: (hash as u32) << 8 | code, value });
    }
}

#[inline(always)]
pub(crate) fn home(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// Folded multiplication: one instruction mixes all bytes of a packed key well enough for probing.
#[inline(always)]
pub(crate) fn hash_packed(head: Packed, code: u32) -> u64 {
    let left = head.0 ^ 0x9e37_79b9_7f4a_7c15;
    let right = head.1 ^ 0xd1b5_4a32_d192_ed03 ^ u64::from(code);
    let product = u128::from(left) * u128::from(right);
    (product >> 64) as u64 ^ product as u64
}

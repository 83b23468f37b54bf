//! The combine table: hash aggregation in front of the sort.
//!
//! Owns the slots, the long keys, growth within the table's share of memory, flushing, and the decision to give up where
//! combining does not shrink the data. Does not own what becomes of the records that leave it (`buffer`).
//!
//! Open addressing with linear probing. A slot holds a key of up to 16 bytes itself, so that a hit touches one cache
//! line; the accumulator lies in the slot and is folded in place by a call that the compiler sees through.
#![allow(unsafe_code)] // keeps accumulators in mapped memory

use std::mem::MaybeUninit;
use std::ptr;

use xxhash_rust::xxh3::xxh3_64;

use crate::budget::Grant;
use crate::collect::batch::{BATCH, Batch, Emitted, INLINE_MAX};
use crate::collect::buffer::SortBuffer;
use crate::collect::keys::LongKeys;
use crate::combine::{Combiner, Fold, FoldError, Folding};
use crate::merge::Merge;
use crate::region::Region;
use crate::segment::SegmentWriter;
use crate::sort::SortedPartition;

/// Emits after which it is judged whether combining pays.
const WINDOW: u64 = 1 << 17;
/// The table is given up when a window shrinks by less than 5/4.
const SHRINK_MIN: (u64, u64) = (5, 4);
const CAPACITY_MIN: usize = 1 << 10;

/// What the collector does with a full batch, and with the table at the end.
pub(crate) trait Absorb<V>: Fold {
    /// Folds a batch in, and empties it.
    fn absorb(&mut self, batch: &mut Batch<V>, sink: &mut SortBuffer);
    /// Takes a value whose key is too long for the table past it.
    fn pass(&mut self, key: &[u8], value: V, sink: &mut SortBuffer);
    /// Moves all there is to the sort buffer and gives the memory back.
    fn finish(&mut self, sink: &mut SortBuffer);
    fn counts(&self) -> CombineCounts;
}

/// What the table did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CombineCounts {
    pub taken: u64,
    pub given: u64,
    pub flushes: u64,
    pub bypassed: bool,
}

/// 32 bytes for a `u64` accumulator. All zeros is an empty slot.
#[repr(C)]
struct Slot<V> {
    /// The inline key padded with zeros, or the long key's hash and place.
    head: [u64; 2],
    /// 24 bits of the hash and the length code; 0 when the slot is empty.
    tag: u32,
    value: MaybeUninit<V>,
}

/// The length code of a long key; inline keys have their length plus 1.
const LONG: u32 = INLINE_MAX as u32 + 2;

pub(crate) struct Table<C: Combiner> {
    combiner: C,
    slots: Region,
    /// Number of slots, a power of two; 0 after the table was given up or finished.
    capacity: usize,
    count: usize,
    long: LongKeys,
    /// Bytes that accumulators own outside their slots.
    heap: usize,
    memory_max: usize,
    grant: Grant,
    window_taken: u64,
    window_new: u64,
    counts: CombineCounts,
    encoded: Vec<u8>,
}

impl<C: Combiner> Table<C> {
    pub(crate) fn new(combiner: C, memory_max: usize, grant: Grant) -> Table<C> {
        let mut table = Table {
            combiner,
            slots: Region::reserve(0),
            capacity: 0,
            count: 0,
            long: LongKeys::new(memory_max),
            heap: 0,
            memory_max,
            grant,
            window_taken: 0,
            window_new: 0,
            counts: CombineCounts::default(),
            encoded: Vec::new(),
        };
        table.allocate(CAPACITY_MIN);
        table
    }

    fn allocate(&mut self, capacity: usize) {
        self.slots = Region::reserve(capacity * size_of::<Slot<C::Value>>());
        self.slots.prefer_huge_pages(0..self.slots.len());
        self.capacity = capacity;
        self.count = 0;
        self.account();
    }

    fn memory(&self) -> usize {
        self.capacity * size_of::<Slot<C::Value>>() + self.long.len() + self.heap
    }

    fn account(&mut self) {
        self.grant.set(self.memory());
    }

    /// Slots that may be in use: probes stay short, and a batch always fits.
    fn count_max(&self) -> usize {
        self.capacity / 2
    }

    /// Makes sure that a batch of new keys fits: by doubling, or where the memory ends by flushing.
    fn make_room(&mut self, long_bytes: usize, sink: &mut SortBuffer) {
        let slots = self.capacity * size_of::<Slot<C::Value>>();
        let full = self.memory() + long_bytes > self.memory_max;
        let crowded = self.count + BATCH > self.count_max();
        // While the slots move, old and new ones exist.
        if full || (crowded && self.memory() + 2 * slots > self.memory_max) {
            self.flush(sink);
        } else if crowded {
            self.double();
        }
        self.account();
    }

    fn double(&mut self) {
        let old_capacity = self.capacity;
        let old = std::mem::replace(&mut self.slots, Region::reserve(0));
        let count = self.count;
        self.grant.set(self.memory() + 2 * old_capacity * size_of::<Slot<C::Value>>());
        self.allocate(2 * old_capacity);
        self.count = count;
        for index in 0..old_capacity {
            // SAFETY: `old` holds `old_capacity` slots, each empty (zeros) or written by `insert`. A full one is moved
            // bit by bit to an empty slot of the new region, and the old region is unmapped without dropping values.
            unsafe {
                let slot = old.base().as_ptr().cast::<Slot<C::Value>>().add(index);
                if (*slot).tag != 0 {
                    let hash = self.slot_hash(&*slot);
                    let mut at = self.home(hash);
                    while (*self.slot(at)).tag != 0 {
                        at = (at + 1) & (self.capacity - 1);
                    }
                    ptr::copy_nonoverlapping(slot, self.slot(at), 1);
                }
            }
        }
    }

    fn slot_hash(&self, slot: &Slot<C::Value>) -> u64 {
        match slot.tag & 0xff {
            LONG => slot.head[0],
            code => hash_inline(slot.head, code - 1),
        }
    }

    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        // The capacity is at least 2, so the shift is below 64.
        (hash >> (64 - self.capacity.trailing_zeros())) as usize
    }

    #[inline(always)]
    fn slot(&self, at: usize) -> *mut Slot<C::Value> {
        debug_assert!(at < self.capacity);
        self.slots.base().as_ptr().cast::<Slot<C::Value>>().wrapping_add(at)
    }

    #[inline(always)]
    fn take(&mut self, hash: u64, tag: u32, head: [u64; 2], key: Option<&[u8]>, value: C::Value) {
        let mut at = self.home(hash);
        loop {
            // SAFETY: `home` and the mask keep `at` below the capacity; the region is zeroed and only written here and
            // in `double`, so a slot with a tag holds an initialised value.
            let slot = unsafe { &mut *self.slot(at) };
            if slot.tag == tag {
                let same = match key {
                    None => slot.head == head,
                    Some(key) => slot.head[0] == head[0] && self.long.get(slot.head[1]) == key,
                };
                if same {
                    // SAFETY: the slot has a tag, see above.
                    let into = unsafe { slot.value.assume_init_mut() };
                    let before = self.combiner.heap_bytes(into);
                    self.combiner.fold(into, value);
                    self.heap = (self.heap + self.combiner.heap_bytes(into)).saturating_sub(before);
                    return;
                }
            }
            if slot.tag == 0 {
                self.heap += self.combiner.heap_bytes(&value);
                slot.head = [head[0], key.map_or(head[1], |key| self.long.push(key))];
                slot.value.write(value);
                slot.tag = tag;
                self.count += 1;
                self.window_new += 1;
                return;
            }
            at = (at + 1) & (self.capacity - 1);
        }
    }

    /// Moves all slots to the sort buffer.
    fn flush(&mut self, sink: &mut SortBuffer) {
        self.counts.flushes += u64::from(self.count > 0);
        for at in 0..self.capacity {
            // SAFETY: as in `take`. The tag is cleared before the value is moved out, so that nothing sees it twice,
            // not even when the combiner panics.
            let slot = unsafe { &mut *self.slot(at) };
            let tag = std::mem::replace(&mut slot.tag, 0);
            if tag == 0 {
                continue;
            }
            // SAFETY: the slot had a tag.
            let value = unsafe { slot.value.assume_init_read() };
            self.encoded.clear();
            self.combiner.encode(&value, &mut self.encoded);
            match tag & 0xff {
                LONG => sink.add(self.long.get(slot.head[1]), &self.encoded),
                code => {
                    let head = u128::from(slot.head[0]) << 64 | u128::from(slot.head[1]);
                    sink.add(&head.to_be_bytes()[..code as usize - 1], &self.encoded);
                }
            }
            self.counts.given += 1;
        }
        self.count = 0;
        self.heap = 0;
        self.long.clear();
    }

    /// Gives the table up, or its memory at the end.
    fn close(&mut self, sink: &mut SortBuffer) {
        self.flush(sink);
        self.slots = Region::reserve(0);
        self.capacity = 0;
        self.long = LongKeys::new(0);
        self.grant.set(0);
        sink.take_table_share();
    }

    fn judge(&mut self, sink: &mut SortBuffer) {
        if self.window_taken * SHRINK_MIN.1 < self.window_new * SHRINK_MIN.0 {
            self.counts.bypassed = true;
            self.close(sink);
        }
        self.window_taken = 0;
        self.window_new = 0;
    }

    fn absorb_long(&mut self, emitted: Emitted<C::Value>, long: &[u8]) {
        let start = emitted.head as usize;
        let key = &long[start..start + emitted.len as usize];
        let hash = xxh3_64(key);
        self.take(hash, tag(hash, LONG), [hash, 0], Some(key), emitted.value);
    }
}

impl<C: Combiner> Absorb<C::Value> for Table<C> {
    fn absorb(&mut self, batch: &mut Batch<C::Value>, sink: &mut SortBuffer) {
        let long = std::mem::take(&mut batch.long);
        self.counts.taken += batch.emitted.len() as u64;
        if self.capacity == 0 {
            for emitted in batch.emitted.drain(..) {
                let inline = emitted.head.to_be_bytes();
                let key = match emitted.len as usize {
                    len if len <= INLINE_MAX => &inline[..len],
                    len => &long[emitted.head as usize..][..len],
                };
                self.encoded.clear();
                self.combiner.encode(&emitted.value, &mut self.encoded);
                sink.add(key, &self.encoded);
                self.counts.given += 1;
            }
        } else {
            self.make_room(long.len(), sink);
            self.window_taken += batch.emitted.len() as u64;
            let mut hashes = [0u64; BATCH];
            for (hash, emitted) in hashes.iter_mut().zip(&batch.emitted) {
                *hash = hash_inline(halves(emitted.head), emitted.len);
                self.prefetch(*hash);
            }
            for (hash, emitted) in hashes.into_iter().zip(batch.emitted.drain(..)) {
                if emitted.len as usize <= INLINE_MAX {
                    let (head, code) = (halves(emitted.head), emitted.len + 1);
                    self.take(hash, tag(hash, code), head, None, emitted.value);
                } else {
                    self.absorb_long(emitted, &long);
                }
            }
            if self.window_taken >= WINDOW {
                self.judge(sink);
            }
        }
        batch.long = long;
        batch.long.clear();
    }

    fn pass(&mut self, key: &[u8], value: C::Value, sink: &mut SortBuffer) {
        self.encoded.clear();
        self.combiner.encode(&value, &mut self.encoded);
        sink.add(key, &self.encoded);
        self.counts.taken += 1;
        self.counts.given += 1;
    }

    fn finish(&mut self, sink: &mut SortBuffer) {
        self.close(sink);
    }

    fn counts(&self) -> CombineCounts {
        self.counts
    }
}

impl<C: Combiner> Table<C> {
    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        self.slots.prefetch(self.home(hash) * size_of::<Slot<C::Value>>());
    }
}

impl<C: Combiner> Fold for Table<C> {
    fn merge(&self, source: &mut Merge, writer: &mut SegmentWriter) -> Result<(), FoldError> {
        Folding(&self.combiner).merge(source, writer)
    }

    fn arena(&self, source: &mut SortedPartition<'_>, writer: &mut SegmentWriter) -> Result<(), FoldError> {
        Folding(&self.combiner).arena(source, writer)
    }
}

impl<C: Combiner> Drop for Table<C> {
    fn drop(&mut self) {
        if !std::mem::needs_drop::<C::Value>() {
            return;
        }
        for at in 0..self.capacity {
            // SAFETY: as in `take`: a slot with a tag holds a value, which nothing uses after this.
            unsafe {
                let slot = &mut *self.slot(at);
                if std::mem::replace(&mut slot.tag, 0) != 0 {
                    slot.value.assume_init_drop();
                }
            }
        }
    }
}

#[inline(always)]
fn halves(head: u128) -> [u64; 2] {
    [(head >> 64) as u64, head as u64]
}

#[inline(always)]
fn tag(hash: u64, code: u32) -> u32 {
    (hash as u32) << 8 | code
}

/// Folded multiplication: one instruction mixes all bytes of a short key well enough for probing. Of a long key's place
/// it makes nothing of use, and its result is not used.
#[inline(always)]
fn hash_inline(head: [u64; 2], len: u32) -> u64 {
    let left = head[0] ^ 0x9e37_79b9_7f4a_7c15;
    let right = head[1] ^ 0xd1b5_4a32_d192_ed03 ^ u64::from(len);
    let product = u128::from(left) * u128::from(right);
    (product >> 64) as u64 ^ product as u64
}

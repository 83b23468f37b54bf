//! The slots of the combine table: open addressing with linear probing in mapped memory.
//!
//! A slot holds a key of up to 16 bytes inline, and the accumulator, which an inlined call folds in place. A
//! key's home is a pair of slots: one cache line if accumulators are small. Which of the two holds the key is
//! unpredictable, so the code does not branch on it.
#![allow(unsafe_code)] // stores accumulators in mapped memory

use std::marker::PhantomData;
use std::mem::{MaybeUninit, needs_drop, replace};
use std::ptr;

use crate::collect::packed::{PackedKey, Probe, Tag, home_of_slot};
use crate::region::{Region, prefetch_address};

/// One slot: 32 bytes for a `u64` accumulator. All zeros is an empty slot.
#[repr(C)]
struct Slot<V> {
    /// The packed key, or the long key's hash and its position in `LongKeys`.
    key: PackedKey,
    tag: Tag,
    value: MaybeUninit<V>,
}

/// The address range of the slots, for prefetching alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotWindow {
    base: *const u8,
    /// Right shift that turns a home into the index of its pair.
    shift: u32,
    pair_bytes: usize,
}

impl SlotWindow {
    #[inline(always)]
    pub(crate) fn prefetch(self, home: u32) {
        prefetch_address(
            self.base
                .wrapping_add((home >> self.shift) as usize * self.pair_bytes),
        );
    }
}

/// Size of the length before each key.
const LEN_BYTES: usize = 4;

/// The arena of long keys, each after its length, kept from one flush to the next.
#[derive(Debug)]
pub(crate) struct LongKeys {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl LongKeys {
    /// `bytes_max` limits how far the arena grows in advance; the caller limits what is pushed.
    pub(crate) fn new(bytes_max: usize) -> LongKeys {
        LongKeys {
            bytes: Vec::new(),
            bytes_max,
        }
    }

    /// Adds a key and returns its position.
    pub(crate) fn push(&mut self, key: &[u8]) -> u64 {
        let place = self.bytes.len();
        let needed = place + LEN_BYTES + key.len();
        if needed > self.bytes.capacity() {
            // Grow by half, not by two: the vector and its copy both count against the table's memory.
            let wanted = (needed + needed / 2).min(self.bytes_max.max(needed));
            self.bytes.reserve_exact(wanted - place);
        }
        self.bytes
            .extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(key);
        place as u64
    }

    /// Returns the key at a position that `push` returned.
    #[inline]
    pub(crate) fn get(&self, place: u64) -> &[u8] {
        let (head, rest) = self.bytes[place as usize..].split_at(LEN_BYTES);
        let len = u32::from_le_bytes(*head.first_chunk().expect("a length has 4 bytes"));
        &rest[..len as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Removes all keys; frees the memory unless it is little.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > self.bytes_max / 8 {
            self.bytes = Vec::new();
        }
    }
}

/// A long key of a batch.
pub(crate) struct LongKey<'a> {
    pub probe: Probe,
    pub bytes: &'a [u8],
}

pub(crate) struct Slots<V> {
    region: Region,
    /// One less than the number of slots, which is a power of two.
    mask: usize,
    shift: u32,
    count: usize,
    values: PhantomData<V>,
}

impl<V> Slots<V> {
    /// Creates empty slots; `capacity` must be a power of two, at least 4.
    pub(crate) fn new(capacity: usize) -> Slots<V> {
        debug_assert!(capacity.is_power_of_two() && capacity >= 4);
        let region = Region::reserve(capacity * size_of::<Slot<V>>());
        region.prefer_huge_pages(0..region.len());
        let shift = 33 - capacity.trailing_zeros().min(33);
        Slots {
            region,
            mask: capacity - 1,
            shift,
            count: 0,
            values: PhantomData,
        }
    }

    pub(crate) fn window(&self) -> SlotWindow {
        SlotWindow {
            base: self.region.base().as_ptr(),
            shift: self.shift,
            pair_bytes: 2 * size_of::<Slot<V>>(),
        }
    }

    /// Returns the bytes of `capacity` slots.
    pub(crate) fn bytes_of(capacity: usize) -> usize {
        capacity * size_of::<Slot<V>>()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.mask + 1
    }

    /// Slots in use.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    #[inline(always)]
    fn slot(&self, at: usize) -> *mut Slot<V> {
        debug_assert!(at <= self.mask);
        // SAFETY: every index is a home shifted below the capacity, or masked, or counted up to the mask; the
        // region holds that many slots.
        unsafe { self.region.base().as_ptr().cast::<Slot<V>>().add(at) }
    }

    /// The first slot of a home's pair.
    #[inline(always)]
    fn first(&self, home: u32) -> usize {
        2 * (home >> self.shift) as usize
    }

    /// Folds `value` into the slot of a packed key if the key is in its home pair. Otherwise returns it for
    /// `fold_probing` and prefetches the next pair, which takes as long to arrive as the rest of a batch.
    #[inline(always)]
    pub(crate) fn fold_home(
        &mut self,
        probe: Probe,
        value: V,
        fold: impl FnOnce(&mut V, V),
    ) -> Result<(), V> {
        let Probe { home, tag, key } = probe;
        let at = self.first(home);
        // SAFETY: see `slot`; tags and keys are always initialised, at least by zeros.
        let not_left = unsafe { (*self.slot(at)).tag != tag };
        // SAFETY: as above. The index is computed because a branch would be unpredictable. If the left tag
        // belongs to another key, which is one case in millions, `fold_probing` finds the right slot.
        let slot = unsafe { &mut *self.slot(at + usize::from(not_left)) };
        let differing =
            slot.tag.difference(tag) | (slot.key.low ^ key.low) | (slot.key.high ^ key.high);
        if differing == 0 {
            // SAFETY: a slot with a key's tag, which is not 0, holds an initialised value: the region is
            // zeroed and only written by this type's functions.
            fold(unsafe { slot.value.assume_init_mut() }, value);
            return Ok(());
        }
        prefetch_address(
            self.region
                .base()
                .as_ptr()
                .wrapping_add((at + 2) * size_of::<Slot<V>>()),
        );
        Err(value)
    }

    /// Folds or inserts a packed key that is not in its home pair: it is new, or its home was full.
    #[inline(never)]
    pub(crate) fn fold_probing(&mut self, probe: Probe, value: V, fold: impl FnOnce(&mut V, V)) {
        let Probe { home, tag, key } = probe;
        let mut at = self.first(home);
        loop {
            // SAFETY: as in `fold_home`.
            let slot = unsafe { &mut *self.slot(at) };
            if slot.tag == tag && slot.key == key {
                // SAFETY: as in `fold_home`.
                return fold(unsafe { slot.value.assume_init_mut() }, value);
            }
            if slot.tag == Tag::EMPTY {
                *slot = Slot {
                    key,
                    tag,
                    value: MaybeUninit::new(value),
                };
                self.count += 1;
                return;
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Folds or inserts a long key; a new key is added to `keys`.
    pub(crate) fn fold_long(
        &mut self,
        long: LongKey<'_>,
        keys: &mut LongKeys,
        value: V,
        fold: impl FnOnce(&mut V, V),
    ) {
        let tag = long.probe.tag;
        let hash = long.probe.key.low;
        let mut at = self.first(long.probe.home);
        loop {
            // SAFETY: as in `fold_home`.
            let slot = unsafe { &mut *self.slot(at) };
            if slot.tag == tag && slot.key.low == hash && keys.get(slot.key.high) == long.bytes {
                // SAFETY: as in `fold_home`.
                return fold(unsafe { slot.value.assume_init_mut() }, value);
            }
            if slot.tag == Tag::EMPTY {
                let key = PackedKey {
                    low: hash,
                    high: keys.push(long.bytes),
                };
                *slot = Slot {
                    key,
                    tag,
                    value: MaybeUninit::new(value),
                };
                self.count += 1;
                return;
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Moves all entries to twice as many slots.
    pub(crate) fn double(&mut self) {
        let mut larger = Slots::<V>::new(2 * self.capacity());
        for at in 0..=self.mask {
            // SAFETY: a full slot is moved bitwise to an empty slot of the other region and its tag cleared, so
            // that its value exists once. More than half of the other slots stay free, so the probe ends.
            unsafe {
                let from = self.slot(at);
                if (*from).tag == Tag::EMPTY {
                    continue;
                }
                let mut to = larger.first(home_of_slot((*from).key, (*from).tag));
                while (*larger.slot(to)).tag != Tag::EMPTY {
                    to = (to + 1) & larger.mask;
                }
                ptr::copy_nonoverlapping(from, larger.slot(to), 1);
                (*from).tag = Tag::EMPTY;
            }
        }
        larger.count = replace(&mut self.count, 0);
        *self = larger;
    }

    /// Passes each value to `each`.
    pub(crate) fn for_each_value(&self, mut each: impl FnMut(&V)) {
        for at in 0..=self.mask {
            // SAFETY: as in `fold_home`.
            let slot = unsafe { &*self.slot(at) };
            if slot.tag != Tag::EMPTY {
                // SAFETY: the slot has a tag.
                each(unsafe { slot.value.assume_init_ref() });
            }
        }
    }

    /// Empties all slots and passes the tag, key and value of each to `each`.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(Tag, PackedKey, V)) {
        self.count = 0;
        for at in 0..=self.mask {
            // SAFETY: as in `fold_home`. The tag is cleared before the value is moved out, so that the value is
            // not read twice even if `each` panics.
            let slot = unsafe { &mut *self.slot(at) };
            let tag = replace(&mut slot.tag, Tag::EMPTY);
            if tag != Tag::EMPTY {
                // SAFETY: the slot had a tag.
                each(tag, slot.key, unsafe { slot.value.assume_init_read() });
            }
        }
    }
}

impl<V> Drop for Slots<V> {
    fn drop(&mut self) {
        if needs_drop::<V>() {
            self.drain(|_, _, value| drop(value));
        }
    }
}

//! The slots of the combine table: open addressing with linear probing in mapped memory.
//!
//! Owns probing, growing and draining. Does not own the bytes of long keys (`keys`) nor when the table grows
//! or is given up (`table`).
//!
//! A slot holds a key of up to 16 bytes itself, and the accumulator, which is folded in place by a call that
//! the compiler sees through. A key's home is a pair of slots, one cache line where accumulators are small.
//! Which of the two holds it cannot be foreseen, so there is no branch on that.
#![allow(unsafe_code)] // keeps accumulators in mapped memory

use std::marker::PhantomData;
use std::mem::{MaybeUninit, needs_drop, replace};
use std::ptr;

use crate::collect::batch::{LONG, hash_packed, home};
use crate::collect::keys::LongKeys;
use crate::collect::packed::Packed;
use crate::region::{Region, prefetch_address};

/// One slot: 32 bytes for a `u64` accumulator. All zeros is an empty one.
#[repr(C)]
struct Slot<V> {
    /// The packed key, or the long key's hash and place.
    head: Packed,
    /// 24 bits of the hash and the length code; 0 when the slot is empty.
    tag: u32,
    value: MaybeUninit<V>,
}

/// Where the slots lie, for prefetching without knowing what is in them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotWindow {
    base: *const u8,
    /// How far a home is shifted down to a pair's index.
    shift: u32,
    pair_bytes: usize,
}

impl SlotWindow {
    #[inline(always)]
    pub(crate) fn prefetch(self, home: u32) {
        prefetch_address(self.base.wrapping_add((home >> self.shift) as usize * self.pair_bytes));
    }
}

pub(crate) struct Slots<V> {
    region: Region,
    /// One less than the number of slots, which is a power of two from 4 on.
    mask: usize,
    shift: u32,
    count: usize,
    values: PhantomData<V>,
}

impl<V> Slots<V> {
    /// Empty slots; `capacity` is a power of two from 4 on.
    pub(crate) fn new(capacity: usize) -> Slots<V> {
        debug_assert!(capacity.is_power_of_two() && capacity >= 4);
        let region = Region::reserve(capacity * size_of::<Slot<V>>());
        region.prefer_huge_pages(0..region.len());
        let shift = 33 - capacity.trailing_zeros().min(33);
        Slots { region, mask: capacity - 1, shift, count: 0, values: PhantomData }
    }

    pub(crate) fn window(&self) -> SlotWindow {
        SlotWindow {
            base: self.region.base().as_ptr(),
            shift: self.shift,
            pair_bytes: 2 * size_of::<Slot<V>>(),
        }
    }

    /// Bytes that `capacity` slots take.
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

    /// Folds `value` into the slot of a packed key when the home of the key has it; otherwise gives
    /// it back for `take_beyond`, and starts loading where that looks next: far memory takes as long
    /// as the rest of a batch.
    #[inline(always)]
    pub(crate) fn take(
        &mut self,
        (home, tag, head): (u32, u32, Packed),
        value: V,
        fold: impl FnOnce(&mut V, V),
    ) -> Result<(), V> {
        let at = self.first(home);
        // SAFETY: see `slot`; tags and keys are always initialised, by zeros when by nothing else.
        let not_left = unsafe { (*self.slot(at)).tag != tag };
        // SAFETY: as above. Which of the two it is cannot be foreseen, so it is computed. Should the left tag
        // be another key's, which is one in millions, `take_beyond` finds out.
        let slot = unsafe { &mut *self.slot(at + usize::from(not_left)) };
        let differing = u64::from(slot.tag ^ tag) | (slot.head.0 ^ head.0) | (slot.head.1 ^ head.1);
        if differing == 0 {
            // SAFETY: a slot with a key's tag, which is not 0, holds an initialised value: the region is
            // zeroed and only written by this type's functions.
            fold(unsafe { slot.value.assume_init_mut() }, value);
            return Ok(());
        }
        prefetch_address(self.region.base().as_ptr().wrapping_add((at + 2) * size_of::<Slot<V>>()));
        Err(value)
    }

    /// `take` where neither slot of the home pair may hold the key: it is new, or its home was full.
    #[inline(never)]
    pub(crate) fn take_beyond(
        &mut self,
        (home, tag, head): (u32, u32, Packed),
        value: V,
        fold: impl FnOnce(&mut V, V),
    ) {
        let mut at = self.first(home);
        loop {
            // SAFETY: as in `take`.
            let slot = unsafe { &mut *self.slot(at) };
            if slot.tag == tag && slot.head == head {
                // SAFETY: as in `take`.
                return fold(unsafe { slot.value.assume_init_mut() }, value);
            }
            if slot.tag == 0 {
                *slot = Slot { head, tag, value: MaybeUninit::new(value) };
                self.count += 1;
                return;
            }
            at = (at + 1) & self.mask;
        }
    }

    /// As `take` for a long key with this hash; a new one is added to `keys`.
    pub(crate) fn take_long(
        &mut self,
        (home, tag, hash): (u32, u32, u64),
        (key, keys): (&[u8], &mut LongKeys),
        value: V,
        fold: impl FnOnce(&mut V, V),
    ) {
        let mut at = self.first(home);
        loop {
            // SAFETY: as in `take`.
            let slot = unsafe { &mut *self.slot(at) };
            if slot.tag == tag && slot.head.0 == hash && keys.get(slot.head.1) == key {
                // SAFETY: as in `take`.
                return fold(unsafe { slot.value.assume_init_mut() }, value);
            }
            if slot.tag == 0 {
                *slot = Slot { head: (hash, keys.push(key)), tag, value: MaybeUninit::new(value) };
                self.count += 1;
                return;
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Moves everything to twice as many slots.
    pub(crate) fn double(&mut self) {
        let mut larger = Slots::<V>::new(2 * self.capacity());
        for at in 0..=self.mask {
            // SAFETY: a full slot is moved bit by bit to an empty one of the other region, and its tag
            // cleared, so that its value exists once. More than half of the other slots stay free, so the
            // probe ends.
            unsafe {
                let from = self.slot(at);
                if (*from).tag == 0 {
                    continue;
                }
                let mut to = larger.first(home_of(&(*from).head, (*from).tag));
                while (*larger.slot(to)).tag != 0 {
                    to = (to + 1) & larger.mask;
                }
                ptr::copy_nonoverlapping(from, larger.slot(to), 1);
                (*from).tag = 0;
            }
        }
        larger.count = replace(&mut self.count, 0);
        *self = larger;
    }

    /// Empties all slots, one after the other: tag, head and value of each.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(u32, Packed, V)) {
        self.count = 0;
        for at in 0..=self.mask {
            // SAFETY: as in `take`. The tag is cleared before the value is moved out, so that nothing sees it
            // twice, not even when `each` panics.
            let slot = unsafe { &mut *self.slot(at) };
            let tag = replace(&mut slot.tag, 0);
            if tag != 0 {
                // SAFETY: the slot had a tag.
                each(tag, slot.head, unsafe { slot.value.assume_init_read() });
            }
        }
    }
}

/// The home of a key, from what its slot holds.
fn home_of(head: &Packed, tag: u32) -> u32 {
    match tag & 0xff {
        LONG => home(head.0),
        code => home(hash_packed(*head, code)),
    }
}

impl<V> Drop for Slots<V> {
    fn drop(&mut self) {
        if needs_drop::<V>() {
            self.drain(|_, _, value| drop(value));
        }
    }
}

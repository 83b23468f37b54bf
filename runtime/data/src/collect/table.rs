//! The combine table: hash aggregation in front of the sort. It grows within its share of memory, flushes
//! when full, and is dropped if combining does not shrink the data.

use crate::budget::Grant;
use crate::collect::batch::{BATCH, Batch, Emitted};
use crate::collect::buffer::SortBuffer;
use crate::collect::slots::{LongKey, LongKeys, SlotWindow, Slots};
use crate::combine::{Combiner, Fold, FoldError, Folding};
use crate::merge::Merge;
use crate::segment::SegmentWriter;
use crate::sort::SortedPartition;

/// Emits between two checks of whether combining pays.
const WINDOW: u64 = 1 << 17;
/// The table is dropped if it shrinks a window by less than 5/4.
const SHRINK_MIN: (u64, u64) = (5, 4);
const CAPACITY_MIN: usize = 1 << 10;
/// The table is kept if it turns out to take less than this share of its memory when it seems to be full.
const KEPT_MAX: (usize, usize) = (3, 4);
/// A larger buffer of one encoded accumulator is not kept.
const ENCODED_KEPT: usize = 64 << 10;

/// The combine table behind one virtual call per batch.
pub(crate) trait Absorb<V>: Fold {
    /// Folds all values of a batch into the table and empties the batch.
    fn absorb(&mut self, batch: &mut Batch<V>, sink: &mut SortBuffer);
    /// Passes a value whose key is too long for the table to the sort buffer.
    fn pass(&mut self, key: &[u8], value: V, sink: &mut SortBuffer);
    /// Flushes the table to the sort buffer and frees its memory.
    fn finish(&mut self, sink: &mut SortBuffer);
    fn window(&self) -> SlotWindow;
    fn counts(&self) -> CombineCounts;
}

/// Counts of the combine table.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CombineCounts {
    pub records_in: u64,
    pub records_out: u64,
    pub flushes: u64,
    /// Values whose keys were too long for the table.
    pub oversized: u64,
    pub bypassed: bool,
}

pub(crate) struct Table<C: Combiner, P> {
    combiner: C,
    /// Makes the accumulator of an emitted value.
    prepare: P,
    slots: Slots<C::Value>,
    long: LongKeys,
    /// Values of the current batch that were not found in their home slots.
    missed: Vec<Emitted<C::Value>>,
    /// At least the heap bytes of all accumulators.
    heap: usize,
    memory_max: usize,
    grant: Grant,
    window_taken: u64,
    window_new: u64,
    counts: CombineCounts,
    encoded: Vec<u8>,
}

impl<C: Combiner, P> Table<C, P> {
    pub(crate) fn new(combiner: C, prepare: P, memory_max: usize, grant: Grant) -> Table<C, P> {
        Table {
            combiner,
            prepare,
            slots: Slots::new(CAPACITY_MIN),
            long: LongKeys::new(memory_max),
            missed: Vec::new(),
            heap: 0,
            memory_max,
            grant,
            window_taken: 0,
            window_new: 0,
            counts: CombineCounts::default(),
            encoded: Vec::new(),
        }
    }

    fn memory(&self) -> usize {
        Slots::<C::Value>::bytes_of(self.slots.capacity()) + self.long.len() + self.heap
    }

    /// Makes room for a batch of new keys: doubles the slots, or flushes at the memory limit.
    fn make_room(&mut self, long_bytes: usize, sink: &mut SortBuffer) {
        if self.heap > 0 && self.memory() + long_bytes > self.memory_max {
            self.measure_heap();
            if self.memory() + long_bytes > self.memory_max / KEPT_MAX.1 * KEPT_MAX.0 {
                self.flush(sink);
            }
        }
        let memory = self.memory();
        // Probes stay short while a third of the slots is free.
        let crowded = self.slots.count() + BATCH > self.slots.capacity() / 3 * 2;
        // Doubling needs the old and the new slots at once.
        let doubled = memory + Slots::<C::Value>::bytes_of(2 * self.slots.capacity());
        if memory + long_bytes > self.memory_max || (crowded && doubled > self.memory_max) {
            self.flush(sink);
        } else if crowded {
            self.grant.set(doubled);
            self.slots.double();
        }
        self.grant.set(self.memory());
    }

    /// Measures what the accumulators take. Between two measurements each value that is folded in counts in full,
    /// although folding may discard it, as `min` does; so a measurement is due only after as much as it saves.
    fn measure_heap(&mut self) {
        let combiner = &self.combiner;
        let mut heap = 0;
        self.slots
            .for_each_value(|value| heap += combiner.heap_bytes(value));
        self.heap = heap;
    }

    /// Moves all entries to the sort buffer.
    fn flush(&mut self, sink: &mut SortBuffer) {
        let Table {
            combiner,
            slots,
            long,
            encoded,
            counts,
            ..
        } = self;
        counts.flushes += u64::from(slots.count() > 0);
        counts.records_out += slots.count() as u64;
        slots.drain(|tag, key, value| {
            encoded.clear();
            combiner.encode(&value, encoded);
            match tag.packed_len() {
                None => sink.add(long.get(key.high), encoded),
                Some(len) => sink.add(&key.bytes()[..len], encoded),
            }
        });
        self.heap = 0;
        self.long.clear();
        if self.encoded.capacity() > ENCODED_KEPT {
            self.encoded = Vec::new();
        }
    }

    /// Flushes the table and frees its memory.
    fn release(&mut self, sink: &mut SortBuffer) {
        self.flush(sink);
        self.slots = Slots::new(CAPACITY_MIN);
        self.long = LongKeys::new(0);
        self.grant.set(0);
        sink.take_table_share();
    }

    /// Drops the table if it did not shrink the last window enough.
    fn check_window(&mut self, sink: &mut SortBuffer) {
        if self.window_taken * SHRINK_MIN.1 < self.window_new * SHRINK_MIN.0 {
            self.counts.bypassed = true;
            self.release(sink);
        }
        self.window_taken = 0;
        self.window_new = 0;
    }

    fn fold_batch<V>(&mut self, batch: &mut Batch<V>)
    where
        P: Fn(V) -> C::Value,
    {
        let before = self.slots.count();
        let Table {
            combiner,
            prepare,
            slots,
            long,
            missed,
            ..
        } = self;
        let mut heap = self.heap;
        let fold = |into: &mut C::Value, more: C::Value| combiner.fold(into, more);
        let mut long_start = 0;
        for Emitted { probe, value } in batch.emitted.drain(..) {
            let value = prepare(value);
            // Lists grow in advance.
            heap += 2 * combiner.heap_bytes(&value);
            if probe.tag.packed_len().is_none() {
                let end = probe.key.high as usize;
                let bytes = &batch.long[std::mem::replace(&mut long_start, end)..end];
                slots.fold_long(LongKey { probe, bytes }, long, value, fold);
            } else if let Err(value) = slots.fold_home(probe, value, fold) {
                missed.push(Emitted { probe, value });
            }
        }
        for Emitted { probe, value } in missed.drain(..) {
            slots.fold_probing(probe, value, fold);
        }
        self.heap = heap;
        self.window_new += (self.slots.count() - before) as u64;
    }

    /// Passes a batch to the sort buffer after the table was dropped.
    fn pass_batch<V>(&mut self, batch: &mut Batch<V>, sink: &mut SortBuffer)
    where
        P: Fn(V) -> C::Value,
    {
        self.counts.records_out += batch.emitted.len() as u64;
        let mut long_start = 0;
        for Emitted { probe, value } in batch.emitted.drain(..) {
            self.encoded.clear();
            self.combiner
                .encode(&(self.prepare)(value), &mut self.encoded);
            if let Some(len) = probe.tag.packed_len() {
                sink.add(&probe.key.bytes()[..len], &self.encoded);
            } else {
                let end = probe.key.high as usize;
                let key = &batch.long[std::mem::replace(&mut long_start, end)..end];
                sink.add(key, &self.encoded);
            }
        }
    }
}

impl<V, C: Combiner, P: Fn(V) -> C::Value> Absorb<V> for Table<C, P> {
    fn absorb(&mut self, batch: &mut Batch<V>, sink: &mut SortBuffer) {
        self.counts.records_in += batch.emitted.len() as u64;
        if self.counts.bypassed {
            self.pass_batch(batch, sink);
        } else {
            self.make_room(batch.long.len(), sink);
            self.window_taken += batch.emitted.len() as u64;
            self.fold_batch(batch);
            if self.window_taken >= WINDOW {
                self.check_window(sink);
            }
            batch.window = self.slots.window();
        }
        batch.long.clear();
        batch.heap = 0;
    }

    fn pass(&mut self, key: &[u8], value: V, sink: &mut SortBuffer) {
        self.encoded.clear();
        self.combiner
            .encode(&(self.prepare)(value), &mut self.encoded);
        sink.add(key, &self.encoded);
        self.counts.oversized += 1;
        self.counts.records_in += 1;
        self.counts.records_out += 1;
    }

    fn finish(&mut self, sink: &mut SortBuffer) {
        self.release(sink);
    }

    fn window(&self) -> SlotWindow {
        self.slots.window()
    }

    fn counts(&self) -> CombineCounts {
        self.counts
    }
}

impl<C: Combiner, P> Fold for Table<C, P> {
    fn merge(&self, source: &mut Merge, writer: &mut SegmentWriter) -> Result<(), FoldError> {
        Folding(&self.combiner).merge(source, writer)
    }

    fn arena(
        &self,
        source: &mut SortedPartition<'_>,
        writer: &mut SegmentWriter,
    ) -> Result<(), FoldError> {
        Folding(&self.combiner).arena(source, writer)
    }
}

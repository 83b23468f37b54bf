//! The combine table: hash aggregation in front of the sort.
//!
//! Owns growth within the table's share of memory, flushing, and the decision to give up where combining does
//! not shrink the data. Does not own probing (`slots`) nor what becomes of the records that leave it
//! (`buffer`).

use crate::budget::Grant;
use crate::collect::batch::{BATCH, Batch, Emitted, LONG};
use crate::collect::buffer::SortBuffer;
use crate::collect::keys::LongKeys;
use crate::collect::packed::unpack;
use crate::collect::slots::{SlotWindow, Slots};
use crate::combine::{Combiner, Fold, FoldError, Folding};
use crate::merge::Merge;
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
    /// Where slots are prefetched.
    fn window(&self) -> SlotWindow;
    fn counts(&self) -> CombineCounts;
}

/// What the table did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CombineCounts {
    pub taken: u64,
    pub given: u64,
    pub flushes: u64,
    /// Values whose keys were too long for the table.
    pub passed: u64,
    pub bypassed: bool,
}

pub(crate) struct Table<C: Combiner> {
    combiner: C,
    slots: Slots<C::Value>,
    long: LongKeys,
    /// Values of a batch whose keys are not in their homes.
    beyond: Vec<Emitted<C::Value>>,
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
        Table {
            combiner,
            slots: Slots::new(CAPACITY_MIN),
            long: LongKeys::new(memory_max),
            beyond: Vec::new(),
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

    /// Makes sure that a batch of new keys fits: by doubling, or where the memory ends by flushing.
    fn make_room(&mut self, long_bytes: usize, sink: &mut SortBuffer) {
        let memory = self.memory();
        // Probes stay short as long as a third of the slots is free.
        let crowded = self.slots.count() + BATCH > self.slots.capacity() / 3 * 2;
        // While the slots move, old and new ones exist.
        let doubled = memory + Slots::<C::Value>::bytes_of(2 * self.slots.capacity());
        if memory + long_bytes > self.memory_max || (crowded && doubled > self.memory_max) {
            self.flush(sink);
        } else if crowded {
            self.grant.set(doubled);
            self.slots.double();
        }
        self.grant.set(self.memory());
    }

    /// Moves all slots to the sort buffer.
    fn flush(&mut self, sink: &mut SortBuffer) {
        let Table { combiner, slots, long, encoded, counts, .. } = self;
        counts.flushes += u64::from(slots.count() > 0);
        counts.given += slots.count() as u64;
        slots.drain(|tag, head, value| {
            encoded.clear();
            combiner.encode(&value, encoded);
            match tag & 0xff {
                LONG => sink.add(long.get(head.1), encoded),
                code => {
                    let len = code as usize - 1;
                    sink.add(&unpack(head)[..len], encoded);
                }
            }
        });
        self.heap = 0;
        self.long.clear();
    }

    fn judge(&mut self, sink: &mut SortBuffer) {
        if self.window_taken * SHRINK_MIN.1 < self.window_new * SHRINK_MIN.0 {
            self.counts.bypassed = true;
            self.finish(sink);
        }
        self.window_taken = 0;
        self.window_new = 0;
    }

    fn fold_batch(&mut self, batch: &mut Batch<C::Value>) {
        let before = self.slots.count();
        let Table { combiner, slots, long, beyond, heap, .. } = self;
        *heap += batch.emitted.iter().map(|emitted| combiner.heap_bytes(&emitted.value)).sum::<usize>();
        let mut fold = |into: &mut C::Value, more: C::Value| {
            let apart = combiner.heap_bytes(into) + combiner.heap_bytes(&more);
            combiner.fold(into, more);
            *heap = (*heap + combiner.heap_bytes(into)).saturating_sub(apart);
        };
        let mut long_start = 0;
        for emitted in batch.emitted.drain(..) {
            let Emitted { head, home, tag, value } = emitted;
            if tag & 0xff == LONG {
                let key = &batch.long[std::mem::replace(&mut long_start, head.1 as usize)..head.1 as usize];
                slots.take_long((home, tag, head.0), (key, long), value, &mut fold);
            } else if let Err(value) = slots.take((home, tag, head), value, &mut fold) {
                beyond.push(Emitted { head, home, tag, value });
            }
        }
        for Emitted { head, home, tag, value } in beyond.drain(..) {
            slots.take_beyond((home, tag, head), value, &mut fold);
        }
        self.window_new += (self.slots.count() - before) as u64;
    }

    /// What is left of a batch once the table was given up: its values go straight on.
    fn pass_batch(&mut self, batch: &mut Batch<C::Value>, sink: &mut SortBuffer) {
        self.counts.given += batch.emitted.len() as u64;
        let mut long_start = 0;
        for Emitted { head, tag, value, .. } in batch.emitted.drain(..) {
            self.encoded.clear();
            self.combiner.encode(&value, &mut self.encoded);
            if tag & 0xff == LONG {
                let key = &batch.long[std::mem::replace(&mut long_start, head.1 as usize)..head.1 as usize];
                sink.add(key, &self.encoded);
            } else {
                let len = (tag & 0xff) as usize - 1;
                sink.add(&unpack(head)[..len], &self.encoded);
            }
        }
    }
}

impl<C: Combiner> Absorb<C::Value> for Table<C> {
    fn absorb(&mut self, batch: &mut Batch<C::Value>, sink: &mut SortBuffer) {
        self.counts.taken += batch.emitted.len() as u64;
        if self.counts.bypassed {
            self.pass_batch(batch, sink);
        } else {
            self.make_room(batch.long.len(), sink);
            self.window_taken += batch.emitted.len() as u64;
            self.fold_batch(batch);
            if self.window_taken >= WINDOW {
                self.judge(sink);
            }
            batch.window = self.slots.window();
        }
        batch.long.clear();
    }

    fn pass(&mut self, key: &[u8], value: C::Value, sink: &mut SortBuffer) {
        self.encoded.clear();
        self.combiner.encode(&value, &mut self.encoded);
        sink.add(key, &self.encoded);
        self.counts.passed += 1;
        self.counts.taken += 1;
        self.counts.given += 1;
    }

    fn finish(&mut self, sink: &mut SortBuffer) {
        self.flush(sink);
        self.slots = Slots::new(CAPACITY_MIN);
        self.long = LongKeys::new(0);
        self.grant.set(0);
        sink.take_table_share();
    }

    fn window(&self) -> SlotWindow {
        self.slots.window()
    }

    fn counts(&self) -> CombineCounts {
        self.counts
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

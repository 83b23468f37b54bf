//! The collector of a map task.
//!
//! Owns the two modes, plain and combining, the batch between the caller and the combine table, and the
//! statistics. Does not own the steps themselves: `table`, `buffer`, `seal`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::collect::batch::{Batch, LONG_MAX};
use crate::collect::buffer::SortBuffer;
use crate::collect::packed::PACKED_MAX;
use crate::collect::save::{self, SavedCollection};
use crate::collect::seal::{Destination, seal};
use crate::collect::spill::RunShape;
use crate::collect::table::{Absorb, CombineCounts, Table};
use crate::collect::{CollectError, CollectorSettings};
use crate::combine::{Combiner, Fold, Keep};
use crate::partition::Partitioner;
use crate::record::RecordEncoding;
use crate::saved::SavePlace;
use crate::segment::{Seal, SealedSegment, SegmentShape, check_label};

/// What a collector did; one that was resumed goes on from what was saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CollectStatistics {
    /// Records emitted.
    pub records_in: u64,
    /// Bytes of the keys emitted, and in plain mode of the values.
    pub bytes_in: u64,
    /// Records in the sealed segment.
    pub records_out: u64,
    /// Records that entered the combiner before the sort.
    pub combine_records_in: u64,
    /// Records that left it.
    pub combine_records_out: u64,
    /// Whether combining before the sort was given up because it did not shrink the data.
    pub combine_bypassed: bool,
    /// Sorted runs written before the segment.
    pub spills: u64,
    /// Records written to these runs and by intermediate merges.
    pub spilled_records: u64,
    /// The most memory granted at once, in bytes.
    pub memory_peak: usize,
}

/// Takes the records that a map task emits and seals them, sorted by partition and key, into one segment.
///
/// Its type does not name the combiner, so that a closure over it can be written before the combiner is
/// known.
pub struct Collector<V> {
    buffer: SortBuffer,
    combining: Option<Combining<V>>,
    bytes_in: u64,
    /// What was done by the attempts before.
    before: CollectStatistics,
    output: PathBuf,
    memory_file: Option<(PathBuf, u64)>,
    seal: Seal,
    fan_in: usize,
}

struct Combining<V> {
    batch: Batch<V>,
    table: Box<dyn Absorb<V>>,
}

impl<V> Collector<V> {
    /// A collector that keeps every record emitted.
    ///
    /// # Errors
    /// Settings that cannot be used.
    pub fn plain(settings: CollectorSettings) -> Result<Self, CollectError> {
        Collector::new(settings, |_| None)
    }

    /// A collector that folds the values of equal keys.
    ///
    /// # Errors
    /// Settings that cannot be used.
    pub fn combining<C: Combiner<Value = V> + 'static>(
        settings: CollectorSettings,
        combiner: C,
    ) -> Result<Self, CollectError>
    where
        V: 'static,
    {
        Collector::new(settings, |budget| {
            let table = Table::new(combiner, budget.table_max(), budget.take(0));
            Some(Combining { batch: Batch::new(table.window()), table: Box::new(table) })
        })
    }

    fn new(
        settings: CollectorSettings,
        combining: impl FnOnce(&Budget) -> Option<Combining<V>>,
    ) -> Result<Self, CollectError> {
        check_label(&settings.label).map_err(CollectError::Settings)?;
        if settings.encoding == (RecordEncoding::Fixed { key: 0, value: 0 }) {
            return Err(CollectError::Settings(
                "fixed records of no bytes; use RecordEncoding::Variable".into(),
            ));
        }
        let partitioner = Partitioner::new(settings.partitioning)?;
        let segment = SegmentShape {
            encoding: settings.encoding,
            compression: settings.compression,
            partitions: partitioner.partitions(),
            only: None,
            label: settings.label,
        };
        let budget = Budget::new(settings.memory);
        let combining = combining(&budget);
        let shape = RunShape { segment, scratch: settings.scratch, budget };
        let mut before = CollectStatistics::default();
        let mut resumed = None;
        if let Some((saved, base)) = &settings.resume {
            before = *saved.statistics();
            resumed = Some((saved.open(base, &shape)?, saved.runs_begun as usize));
        }
        let mut buffer = SortBuffer::new(shape, partitioner, combining.is_some());
        if let Some((runs, runs_begun)) = resumed {
            buffer.resume(runs, runs_begun);
        }
        Ok(Collector {
            buffer,
            combining,
            bytes_in: 0,
            before,
            output: settings.output,
            memory_file: settings.memory_file,
            seal: Seal { durable: settings.durable },
            fan_in: settings.fan_in,
        })
    }

    /// Adds a record, in plain mode. Keys and values may be of any length; a record that the task's memory
    /// cannot hold is written to disk from where it lies.
    #[inline]
    pub fn emit_bytes(&mut self, key: &[u8], value: &[u8]) {
        if self.combining.is_some() {
            return self.wrong_mode("emit_bytes", "Collector::combining");
        }
        self.bytes_in += (key.len() + value.len()) as u64;
        self.buffer.add(key, value);
    }

    /// Adds a value to fold, in combining mode.
    #[inline(always)]
    pub fn emit_value(&mut self, key: &[u8], value: V) {
        let Some(combining) = &mut self.combining else {
            return self.wrong_mode("emit_value", "Collector::plain");
        };
        self.bytes_in += key.len() as u64;
        if key.len() <= PACKED_MAX {
            if combining.batch.push(key, value) {
                self.absorb();
            }
        } else {
            self.emit_long(key, value);
        }
    }

    #[inline(never)]
    fn emit_long(&mut self, key: &[u8], value: V) {
        let Some(combining) = &mut self.combining else { return };
        if key.len() > LONG_MAX {
            combining.table.pass(key, value, &mut self.buffer);
        } else if combining.batch.push_long(key, value) {
            self.absorb();
        }
    }

    #[cold]
    #[inline(never)]
    fn absorb(&mut self) {
        if let Some(combining) = &mut self.combining {
            combining.table.absorb(&mut combining.batch, &mut self.buffer);
        }
    }

    #[cold]
    #[inline(never)]
    fn wrong_mode(&mut self, called: &'static str, made: &'static str) {
        self.buffer.fail(CollectError::WrongMode { called, made });
    }

    /// Whether it folds values: which of the two emit functions may be called.
    #[inline]
    pub fn combines(&self) -> bool {
        self.combining.is_some()
    }

    /// The first error, once; nothing is collected after it.
    ///
    /// # Errors
    /// That error.
    pub fn check(&mut self) -> Result<(), CollectError> {
        self.buffer.check()
    }

    /// Sorts, merges and seals what was emitted.
    ///
    /// # Errors
    /// The first error of any emit, or of writing; `Saved` when a run that was resumed is damaged.
    pub fn finish(mut self) -> Result<(SealedSegment, CollectStatistics), CollectError> {
        let (combining, counts) = self.end_combining();
        let statistics = self.statistics(counts.as_ref());
        let budget = self.buffer.shape.budget.clone();
        let parts = self.buffer.into_parts()?;
        let destination = Destination {
            output: &self.output,
            memory: self.memory_file.as_ref(),
            seal: self.seal,
            fan_in: self.fan_in,
            fold: fold_of(combining.as_ref()),
            fold_arena: folds_arena(counts),
        };
        let (sealed, sealing) = seal(parts, &destination)?;
        let statistics = CollectStatistics {
            records_out: sealed.records,
            spills: sealing.runs,
            spilled_records: sealing.records,
            memory_peak: statistics.memory_peak.max(budget.peak()),
            ..statistics
        };
        Ok((sealed, statistics))
    }

    /// Writes everything so far as sorted runs to where checkpoints are kept, and moves there those written
    /// before: what `CollectorSettings::resume` goes on from. Runs that are there already are named again,
    /// not written again.
    ///
    /// # Errors
    /// The first error of any emit, or of writing.
    pub fn save(mut self, place: &SavePlace) -> Result<SavedCollection, CollectError> {
        let (combining, counts) = self.end_combining();
        let statistics = self.statistics(counts.as_ref());
        let budget = self.buffer.shape.budget.clone();
        let fold = if folds_arena(counts) { fold_of(combining.as_ref()) } else { &Keep };
        let (runs, runs_begun) = save::save_runs(self.buffer.into_parts()?, place, fold)?;
        let memory_peak = statistics.memory_peak.max(budget.peak());
        Ok(SavedCollection::new(runs, runs_begun, CollectStatistics { memory_peak, ..statistics }))
    }

    /// Moves what waits to be folded to the sort buffer. What the table did, if there is one.
    fn end_combining(&mut self) -> (Option<Combining<V>>, Option<CombineCounts>) {
        self.absorb();
        let mut combining = self.combining.take();
        let counts = combining.as_mut().map(|combining| {
            combining.table.finish(&mut self.buffer);
            combining.table.counts()
        });
        (combining, counts)
    }

    /// What was taken in, here and in the attempts before; what is written is not known yet.
    fn statistics(&self, counts: Option<&CombineCounts>) -> CollectStatistics {
        let before = &self.before;
        let table = counts.copied().unwrap_or_default();
        CollectStatistics {
            records_in: before.records_in + counts.map_or(self.buffer.records, |counts| counts.taken),
            bytes_in: before.bytes_in + self.bytes_in,
            combine_records_in: before.combine_records_in + table.taken,
            combine_records_out: before.combine_records_out + table.given,
            combine_bypassed: before.combine_bypassed || table.bypassed,
            ..*before
        }
    }
}

fn fold_of<V>(combining: Option<&Combining<V>>) -> &dyn Fold {
    match combining {
        Some(combining) => &*combining.table,
        None => &Keep,
    }
}

/// Whether equal keys of the last arena are worth folding: where there may be some, and not just here and
/// there. Then a segment has one record of each key, wherever the task was interrupted.
fn folds_arena(counts: Option<CombineCounts>) -> bool {
    counts.is_some_and(|counts| (counts.flushes > 1 || counts.passed > 0) && !counts.bypassed)
}

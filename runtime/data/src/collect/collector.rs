//! The collector of a map task: takes emitted records, plain or combining, and seals them into a segment.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::collect::CollectError;
use crate::collect::batch::{Batch, LONG_MAX};
use crate::collect::buffer::SortBuffer;
use crate::collect::packed::PACKED_MAX;
use crate::collect::save::{self, SavedCollection};
use crate::collect::seal::{Destination, seal};
use crate::collect::spill::RunShape;
use crate::collect::table::{Absorb, CombineCounts, Table};
use crate::combine::{Combiner, Fold, NoFold};
use crate::partition::{Partitioner, Partitioning};
use crate::record::RecordEncoding;
use crate::saved::SavePlace;
use crate::segment::{BlockCompression, Seal, SealedSegment, SegmentShape, check_label};

/// Settings of one map task's collector.
pub struct CollectorSettings {
    /// Memory limit of the collector in bytes, at least 1 MiB. Little memory is slow, but works.
    pub memory: usize,
    /// This task's existing directory for sorted runs, best on the file system of `output`. Runs are removed
    /// from it at the end.
    pub scratch: PathBuf,
    /// The sealed segment; its directory must exist. Written under a temporary name, then renamed.
    pub output: PathBuf,
    /// A file in memory for the segment, and its size limit; `output` becomes a link to it. A segment that does
    /// not fit or must be durable is written to disk.
    pub memory_file: Option<(PathBuf, u64)>,
    /// The attempt's id, for the segment's header and for errors; at most 4096 bytes.
    pub label: String,
    pub encoding: RecordEncoding,
    /// Compression of runs and of the segment.
    pub compression: BlockCompression,
    pub partitioning: Partitioning,
    /// The most runs merged at once; at least 2.
    pub fan_in: usize,
    /// Whether `finish` syncs the segment to disk.
    pub durable: bool,
    /// The collection of an earlier attempt, and the directory that its file names are relative to. These
    /// files are read in place and not removed.
    pub resume: Option<(SavedCollection, PathBuf)>,
}

impl CollectorSettings {
    /// Returns the defaults: variable records, no compression, one partition, fan-in 64, on disk, not durable,
    /// nothing to resume.
    pub fn new(
        memory: usize,
        scratch: impl Into<PathBuf>,
        output: impl Into<PathBuf>,
        label: impl Into<String>,
    ) -> CollectorSettings {
        CollectorSettings {
            memory,
            scratch: scratch.into(),
            output: output.into(),
            memory_file: None,
            label: label.into(),
            encoding: RecordEncoding::Variable,
            compression: BlockCompression::None,
            partitioning: Partitioning::Single,
            fan_in: 64,
            durable: false,
            resume: None,
        }
    }
}

/// Counts of a collector. A resumed collector continues the saved counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CollectStatistics {
    pub records_in: u64,
    /// Bytes of emitted keys and, in plain mode, values.
    pub bytes_in: u64,
    pub records_out: u64,
    /// Records that entered the combine table.
    pub combine_records_in: u64,
    /// Records that left the combine table.
    pub combine_records_out: u64,
    /// Whether combining stopped because it did not shrink the data.
    pub combine_bypassed: bool,
    /// Runs written before the segment.
    pub spills: u64,
    /// Records written to runs and intermediate merges.
    pub spilled_records: u64,
    /// Peak of granted memory, in bytes.
    pub memory_peak: usize,
}

/// Collects the records that a map task emits and seals them, sorted by partition and key, into one segment.
///
/// The type does not name the combiner: a closure over a collector can be written before the combiner is
/// known.
pub struct Collector<V> {
    buffer: SortBuffer,
    combining: Option<Combining<V>>,
    bytes_in: u64,
    /// Counts of earlier attempts.
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
    /// Creates a collector that keeps every record.
    ///
    /// # Errors
    /// Fails if the settings are invalid.
    pub fn plain(settings: CollectorSettings) -> Result<Self, CollectError> {
        Collector::new(settings, |_| None)
    }

    /// Creates a collector that folds the values of equal keys.
    ///
    /// # Errors
    /// Fails if the settings are invalid.
    pub fn combining<C: Combiner<Value = V> + 'static>(
        settings: CollectorSettings,
        combiner: C,
    ) -> Result<Self, CollectError>
    where
        V: 'static,
    {
        Collector::preparing(settings, combiner, |value| value)
    }

    /// Creates a collector that makes an accumulator of each value and folds those of equal keys.
    ///
    /// # Errors
    /// Fails if the settings are invalid.
    pub fn preparing<C, P>(
        settings: CollectorSettings,
        combiner: C,
        prepare: P,
    ) -> Result<Self, CollectError>
    where
        C: Combiner + 'static,
        P: Fn(V) -> C::Value + 'static,
        V: 'static,
    {
        Collector::new(settings, |budget| {
            let table = Table::new(combiner, prepare, budget.table_max(), budget.take(0));
            let table: Box<dyn Absorb<V>> = Box::new(table);
            Some(Combining {
                batch: Batch::new(table.window()),
                table,
            })
        })
    }

    fn new(
        settings: CollectorSettings,
        combining: impl FnOnce(&Budget) -> Option<Combining<V>>,
    ) -> Result<Self, CollectError> {
        check_label(&settings.label).map_err(CollectError::Settings)?;
        if settings.encoding == (RecordEncoding::Fixed { key: 0, value: 0 }) {
            return Err(CollectError::Settings(
                "fixed records have 0 bytes; use RecordEncoding::Variable".into(),
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
        let shape = RunShape {
            segment,
            scratch: settings.scratch,
            budget,
        };
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
            seal: Seal {
                durable: settings.durable,
            },
            fan_in: settings.fan_in,
        })
    }

    /// Adds a record, in plain mode. Keys and values may have any length: a record that exceeds the task's
    /// memory is written to disk directly.
    #[inline]
    pub fn emit_bytes(&mut self, key: &[u8], value: &[u8]) {
        if self.combining.is_some() {
            return self.wrong_mode("emit_bytes", "Collector::combining");
        }
        self.bytes_in += (key.len() + value.len()) as u64;
        self.buffer.add(key, value);
    }

    /// Adds a value to fold, in combining mode, which takes `heap_bytes` of heap memory.
    #[inline(always)]
    pub fn emit_value(&mut self, key: &[u8], value: V, heap_bytes: usize) {
        let Some(combining) = &mut self.combining else {
            return self.wrong_mode("emit_value", "Collector::plain");
        };
        self.bytes_in += key.len() as u64;
        if key.len() <= PACKED_MAX {
            if combining.batch.push(key, value, heap_bytes) {
                self.absorb();
            }
        } else {
            self.emit_long(key, value, heap_bytes);
        }
    }

    #[inline(never)]
    fn emit_long(&mut self, key: &[u8], value: V, heap_bytes: usize) {
        let Some(combining) = &mut self.combining else {
            return;
        };
        if key.len() > LONG_MAX {
            combining.table.pass(key, value, &mut self.buffer);
        } else if combining.batch.push_long(key, value, heap_bytes) {
            self.absorb();
        }
    }

    #[cold]
    #[inline(never)]
    fn absorb(&mut self) {
        if let Some(combining) = &mut self.combining {
            combining
                .table
                .absorb(&mut combining.batch, &mut self.buffer);
        }
    }

    #[cold]
    #[inline(never)]
    fn wrong_mode(&mut self, called: &'static str, made: &'static str) {
        self.buffer.fail(CollectError::WrongMode { called, made });
    }

    /// Whether the collector folds values: then call `emit_value`, otherwise `emit_bytes`.
    #[inline]
    pub fn combines(&self) -> bool {
        self.combining.is_some()
    }

    /// Returns the first error, once. Records emitted after an error are dropped.
    ///
    /// # Errors
    /// The first error of an emit.
    pub fn check(&mut self) -> Result<(), CollectError> {
        self.buffer.check()
    }

    /// Sorts, merges and seals all records.
    ///
    /// # Errors
    /// The first error of an emit, or of writing; `Saved` if a resumed run is damaged.
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
            may_repeat_keys: may_repeat_keys(counts),
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

    /// Writes all records so far to the checkpoint directory as sorted runs, for `CollectorSettings::resume`,
    /// and moves earlier runs there. Runs that were saved before are not written again.
    ///
    /// # Errors
    /// The first error of an emit, or of writing.
    pub fn save(mut self, place: &SavePlace) -> Result<SavedCollection, CollectError> {
        let (combining, counts) = self.end_combining();
        let statistics = self.statistics(counts.as_ref());
        let budget = self.buffer.shape.budget.clone();
        let fold = if may_repeat_keys(counts) {
            fold_of(combining.as_ref())
        } else {
            &NoFold
        };
        let (runs, runs_begun) = save::save_runs(self.buffer.into_parts()?, place, fold)?;
        let memory_peak = statistics.memory_peak.max(budget.peak());
        Ok(SavedCollection::new(
            runs,
            runs_begun,
            CollectStatistics {
                memory_peak,
                ..statistics
            },
        ))
    }

    /// Flushes the combine table to the sort buffer; returns its counts if there is one.
    fn end_combining(&mut self) -> (Option<Combining<V>>, Option<CombineCounts>) {
        self.absorb();
        let mut combining = self.combining.take();
        let counts = combining.as_mut().map(|combining| {
            combining.table.finish(&mut self.buffer);
            combining.table.counts()
        });
        (combining, counts)
    }

    /// Counts of this and earlier attempts; output is not counted yet.
    fn statistics(&self, counts: Option<&CombineCounts>) -> CollectStatistics {
        let before = &self.before;
        let table = counts.copied().unwrap_or_default();
        CollectStatistics {
            records_in: before.records_in
                + counts.map_or(self.buffer.records, |counts| counts.records_in),
            bytes_in: before.bytes_in + self.bytes_in,
            combine_records_in: before.combine_records_in + table.records_in,
            combine_records_out: before.combine_records_out + table.records_out,
            combine_bypassed: before.combine_bypassed || table.bypassed,
            ..*before
        }
    }
}

fn fold_of<V>(combining: Option<&Combining<V>>) -> &dyn Fold {
    match combining {
        Some(combining) => &*combining.table,
        None => &NoFold,
    }
}

/// Whether an arena may hold several records of one key although values are combined: the table was flushed more
/// than once, passed by or dropped.
fn may_repeat_keys(counts: Option<CombineCounts>) -> bool {
    counts.is_some_and(|counts| counts.flushes > 1 || counts.oversized > 0 || counts.bypassed)
}

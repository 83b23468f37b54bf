//! The segments of a reduce task, and how many become few enough to merge at once.
//!
//! Owns opening them, intermediate merges, and telling an input's damage from that of a merged file. Does not own groups
//! (`input`).

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::budget::{Budget, Grant};
use crate::combine::{Fold, FoldError};
use crate::merge::{self, Merge, MergeError};
use crate::reduce::{ReduceError, ReduceStatistics};
use crate::segment::{BLOCK_BYTES, Seal, Segment, SegmentError, SegmentShape, SegmentWriter, check_label};
use crate::settings::{Compression, ReduceSettings};

/// A segment and where it comes from.
struct Source {
    segment: Arc<Segment>,
    /// Its place among the inputs; none for a merged file.
    input: Option<usize>,
    /// Stored bytes of the partition.
    size: u64,
}

pub(super) struct Sources {
    partition: u32,
    scratch: PathBuf,
    label: String,
    budget: Budget,
    fan_in: usize,
    /// In the order of the map tasks; those without a record of the partition left out.
    sources: Vec<Source>,
    /// For the blocks that the final merge decompresses.
    buffers: Grant,
    statistics: ReduceStatistics,
}

impl Sources {
    pub(super) fn open(settings: ReduceSettings) -> Result<Sources, ReduceError> {
        check_label(&settings.label).map_err(ReduceError::Settings)?;
        let budget = Budget::new(settings.memory);
        let mut statistics = ReduceStatistics::default();
        let mut sources = Vec::new();
        let mut first: Option<Arc<Segment>> = None;
        let mut compression = Compression::None;
        for (index, path) in settings.segments.iter().enumerate() {
            let input = |error| ReduceError::Input { index, error };
            let segment = Segment::open(path).map_err(input)?;
            let entry = segment.partition(settings.partition).map_err(input)?;
            let like = first.get_or_insert_with(|| segment.clone());
            if (segment.encoding(), segment.partitions()) != (like.encoding(), like.partitions()) {
                return Err(ReduceError::Mixed { index });
            }
            if segment.compression() == Compression::Lz4 {
                compression = Compression::Lz4;
            }
            statistics.records_total += entry.records;
            statistics.bytes_total += entry.raw_len;
            if entry.records > 0 {
                sources.push(Source { segment, input: Some(index), size: entry.stored_len });
            }
        }
        Ok(Sources {
            partition: settings.partition,
            scratch: settings.scratch,
            label: settings.label,
            fan_in: merge::fan_in(settings.fan_in, compression, &budget),
            buffers: budget.take(0),
            budget,
            sources,
            statistics,
        })
    }

    /// Merges neighbours until the rest fits one merge.
    pub(super) fn merge_down(&mut self, fold: &dyn Fold) -> Result<(), ReduceError> {
        loop {
            let sizes: Vec<u64> = self.sources.iter().map(|source| source.size).collect();
            let Some(range) = merge::next_merge(&sizes, self.fan_in) else { return Ok(()) };
            let merged = self.merge_range(range.clone(), fold)?;
            self.sources.splice(range, [merged]);
        }
    }

    fn merge_range(&mut self, range: Range<usize>, fold: &dyn Fold) -> Result<Source, ReduceError> {
        let like = &self.sources[range.start].segment;
        let shape = SegmentShape {
            encoding: like.encoding(),
            // A merged file is read by this task alone, from the local disk.
            compression: Compression::None,
            partitions: like.partitions(),
            label: self.label.clone(),
        };
        let path = self.scratch.join(format!("merge-{:05}", self.statistics.intermediate_merges));
        let buffer = self.budget.write_buffer();
        let _grant = self.budget.take(buffer + BLOCK_BYTES + self.decompressing(range.clone()));
        let mut writer = SegmentWriter::create(&path, shape, buffer)?;
        for _ in 0..self.partition {
            writer.next_partition()?;
        }
        let mut source = self.merge_of(range.clone())?;
        fold.merge(&mut source, &mut writer).map_err(|error| match error {
            FoldError::Source(error) => self.blame_in(range, error),
            FoldError::Write(error) => ReduceError::Write(error),
            FoldError::Combine(key, message) => ReduceError::Combine { key, message },
        })?;
        let sealed = writer.finish(Seal { durable: false })?;
        let segment = Segment::open(&path).map_err(ReduceError::Intermediate)?;
        // Mapped, it needs no name any more, and leaves nothing behind however this task ends.
        fs::remove_file(&path).map_err(|source| ReduceError::Scratch { path: path.clone(), source })?;
        self.statistics.intermediate_merges += 1;
        self.statistics.merged_records += sealed.records;
        Ok(Source { segment, input: None, size: sealed.raw_len })
    }

    /// The final merge.
    pub(super) fn merge(&mut self) -> Result<Merge, ReduceError> {
        self.buffers.set(self.decompressing(0..self.sources.len()));
        self.merge_of(0..self.sources.len())
    }

    fn merge_of(&self, range: Range<usize>) -> Result<Merge, ReduceError> {
        let mut cursors = Vec::with_capacity(range.len());
        for source in &self.sources[range] {
            let cursor = source.segment.cursor(self.partition).map_err(|error| source.lost(error))?;
            cursors.push(cursor);
        }
        Ok(Merge::new(cursors))
    }

    /// Memory for the blocks that a merge of these sources decompresses.
    fn decompressing(&self, range: Range<usize>) -> usize {
        let compressed = |source: &&Source| source.segment.compression() == Compression::Lz4;
        self.sources[range].iter().filter(compressed).count() * BLOCK_BYTES
    }

    /// Says which input an error of the final merge means.
    #[cold]
    pub(super) fn blame(&self, error: MergeError) -> ReduceError {
        self.blame_in(0..self.sources.len(), error)
    }

    fn blame_in(&self, range: Range<usize>, error: MergeError) -> ReduceError {
        self.sources[range][error.input].lost(error.error)
    }

    pub(super) fn statistics(&self) -> ReduceStatistics {
        ReduceStatistics { memory_peak: self.budget.peak(), ..self.statistics }
    }
}

impl Source {
    fn lost(&self, error: SegmentError) -> ReduceError {
        match self.input {
            Some(index) => ReduceError::Input { index, error },
            None => ReduceError::Intermediate(error),
        }
    }
}

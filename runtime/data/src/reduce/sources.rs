//! The sources of a reduce task's merge: segments, and the intermediate merges that make them few enough.
//!
//! Owns intermediate merges, and which input an error means. Does not own how sources are opened (`opening`)
//! nor groups (`input`).

use std::ops::Range;

use crate::budget::{Budget, Grant};
use crate::combine::{Fold, FoldError};
use crate::merge::{self, Merge, MergeError};
use crate::record::RecordEncoding;
use crate::reduce::source::{Origin, Source};
use crate::reduce::{ReduceError, ReduceSettings, ReduceStatistics, SavedReduceInput, SavedSource};
use crate::saved::{SavePlace, TaskFile};
use crate::segment::{BLOCK_BYTES, BlockCompression, Seal, SegmentPosition, SegmentShape, SegmentWriter};

pub(super) struct Sources {
    pub(super) settings: ReduceSettings,
    /// What all segments have in common.
    pub(super) encoding: RecordEncoding,
    pub(super) partitions: u32,
    pub(super) budget: Budget,
    pub(super) fan_in: usize,
    /// In the order of the map tasks; those without a record of the partition left out.
    pub(super) sources: Vec<Source>,
    /// For the blocks that the final merge decompresses.
    pub(super) buffers: Grant,
    /// For the sources that were read into memory.
    pub(super) read: Grant,
    /// What was done without, for people.
    pub(super) remarks: Vec<String>,
    /// Stored bytes of the blocks that intermediate merges read.
    pub(super) bytes_merged: u64,
    pub(super) statistics: ReduceStatistics,
}

impl Sources {
    /// Merges neighbours until the rest fits one merge.
    pub(super) fn merge_down(&mut self, fold: &dyn Fold) -> Result<(), ReduceError> {
        loop {
            let sizes: Vec<u64> = self.sources.iter().map(|source| source.size).collect();
            let Some(range) = merge::next_merge(&sizes, self.fan_in) else { return Ok(()) };
            let merged = self.merge_range(range.clone(), fold)?;
            let before: usize = self.sources[range.clone()].iter().map(Source::held_bytes).sum();
            self.sources.splice(range, [merged]);
            self.read.set(self.read.bytes() - before);
        }
    }

    fn merge_range(&mut self, range: Range<usize>, fold: &dyn Fold) -> Result<Source, ReduceError> {
        let shape = SegmentShape {
            encoding: self.encoding,
            // A merged file is read by this task alone, from the local disk.
            compression: BlockCompression::None,
            partitions: self.partitions,
            only: Some(self.settings.partition),
            label: self.settings.label.clone(),
        };
        let name = format!("merge-{:05}", self.statistics.intermediate_merges);
        let path = self.settings.scratch.join(name);
        let buffer = self.budget.write_buffer();
        let _grant = self.budget.take(buffer + BLOCK_BYTES + self.decompressing(range.clone()));
        let mut writer = SegmentWriter::create(&path, None, shape, buffer)?;
        let mut source = self.merge_of(range.clone())?;
        fold.merge(&mut source, &mut writer).map_err(|error| match error {
            FoldError::Source(error) => self.blame_in(range, error),
            FoldError::Write(error) => ReduceError::Write(error),
            FoldError::Combine(key, message) => ReduceError::Combine { key, message },
        })?;
        self.bytes_merged += source.bytes_read();
        let file = TaskFile::new(writer.finish(Seal { durable: false })?);
        self.statistics.intermediate_merges += 1;
        self.statistics.merged_records += file.sealed.records;
        let size = file.sealed.raw_len;
        Ok(Source { segment: None, origin: Origin::Merged(file), start: None, size, decompressed: 0 })
    }

    /// The last merge, of all that is left, which stays open.
    pub(super) fn merge(&mut self) -> Result<Merge, ReduceError> {
        self.buffers.set(self.decompressing(0..self.sources.len()));
        for source in &mut self.sources {
            source.segment = Some(source.open(&self.settings.segments)?);
        }
        self.merge_of(0..self.sources.len())
    }

    fn merge_of(&self, range: Range<usize>) -> Result<Merge, ReduceError> {
        let mut cursors = Vec::with_capacity(range.len());
        for source in &self.sources[range] {
            cursors.push(source.cursor(&self.settings.segments, self.settings.partition)?);
        }
        Ok(Merge::new(cursors))
    }

    /// Memory for the blocks that a merge of these sources decompresses.
    fn decompressing(&self, range: Range<usize>) -> usize {
        self.sources[range].iter().map(|source| source.decompressed).sum()
    }

    /// Says which input an error of the final merge means.
    #[cold]
    pub(super) fn blame(&self, error: MergeError) -> ReduceError {
        self.blame_in(0..self.sources.len(), error)
    }

    fn blame_in(&self, range: Range<usize>, error: MergeError) -> ReduceError {
        self.sources[range][error.input].origin.lost(error.error)
    }

    /// What is left of each source, whose next record and end are given in their order.
    pub(super) fn save(
        &mut self,
        places: impl Iterator<Item = (SegmentPosition, u64)>,
        place: &SavePlace,
    ) -> Result<SavedReduceInput, ReduceError> {
        let mut sources = Vec::with_capacity(self.sources.len());
        for (source, (SegmentPosition { block, ordinal }, records)) in self.sources.iter_mut().zip(places) {
            if ordinal == records {
                continue;
            }
            sources.push(match &mut source.origin {
                Origin::Input(index) => SavedSource::Input {
                    index: as_u32(*index),
                    label: source.segment.as_ref().map_or("", |segment| segment.label()).to_owned(),
                    block,
                    ordinal,
                    records,
                },
                Origin::Merged(file) => SavedSource::Merged { file: file.save(place)?, block, ordinal },
            });
        }
        let (partition, inputs) = (self.settings.partition, as_u32(self.settings.segments.len()));
        Ok(SavedReduceInput { partition, inputs, sources, statistics: self.statistics, group: None })
    }

    pub(super) fn statistics(&self) -> ReduceStatistics {
        let memory_peak = self.statistics.memory_peak.max(self.budget.peak());
        ReduceStatistics { memory_peak, ..self.statistics }
    }
}

/// There are no more inputs than map tasks, whose numbers have 32 bits.
fn as_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

//! The sources of a reduce task's merge, and the intermediate merges that reduce them to the fan-in.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::budget::{Budget, Grant};
use crate::combine::{Fold, FoldError};
use crate::merge::{self, Merge, MergeError};
use crate::record::RecordEncoding;
use crate::reduce::{ReduceError, ReduceSettings, ReduceStatistics, SavedReduceInput, SavedSource};
use crate::saved::{SavePlace, SavedFileError, TaskFile};
use crate::segment::{
    BLOCK_BYTES, BlockCompression, Cursor, Seal, Segment, SegmentError, SegmentPosition,
    SegmentShape, SegmentWriter,
};

/// Approximate memory of an in-memory source besides its bytes.
pub(super) const SOURCE_BYTES: usize = 512;

pub(super) struct Source {
    /// `None` while it is closed.
    pub(super) segment: Option<Arc<Segment>>,
    pub(super) origin: Origin,
    /// The first record to read, unless it is the first of the segment.
    pub(super) start: Option<u64>,
    /// Stored bytes of the partition.
    pub(super) size: u64,
    /// Buffer size for its decompressed block.
    pub(super) decompressed: usize,
}

pub(super) enum Origin {
    /// A map task's segment, by its index.
    Input(usize),
    /// An intermediate merge.
    Merged(TaskFile),
}

impl Source {
    /// Whether the segment was read into memory.
    pub(super) fn is_read(&self) -> bool {
        self.segment
            .as_ref()
            .is_some_and(|segment| !segment.is_mapped())
    }

    /// Returns the memory of a segment that was read.
    pub(super) fn held_bytes(&self) -> usize {
        let held = self.segment.as_ref().filter(|segment| !segment.is_mapped());
        held.map_or(0, |segment| segment.heap_bytes() + SOURCE_BYTES)
    }

    pub(super) fn open(&self, inputs: &[PathBuf]) -> Result<Arc<Segment>, ReduceError> {
        if let Some(segment) = &self.segment {
            return Ok(segment.clone());
        }
        let path = match &self.origin {
            Origin::Input(index) => &inputs[*index],
            Origin::Merged(file) => file.path(),
        };
        Segment::open(path).map_err(|error| self.origin.error(error))
    }

    /// Returns a cursor before the first record to read.
    pub(super) fn cursor(&self, inputs: &[PathBuf], partition: u32) -> Result<Cursor, ReduceError> {
        let segment = self.open(inputs)?;
        let cursor = match self.start {
            None => segment.cursor(partition),
            Some(ordinal) => segment.cursor_at(partition, ordinal),
        };
        cursor.map_err(|error| self.origin.error(error))
    }
}

impl Origin {
    /// Converts an error of this source: it decides which task is rerun.
    pub(super) fn error(&self, error: SegmentError) -> ReduceError {
        match self {
            Origin::Input(index) => ReduceError::Input {
                index: *index,
                error,
            },
            Origin::Merged(file) if file.is_saved() => {
                ReduceError::Saved(SavedFileError::new(error))
            }
            Origin::Merged(_) => ReduceError::Intermediate(error),
        }
    }
}

pub(super) struct Sources {
    pub(super) settings: ReduceSettings,
    pub(super) encoding: RecordEncoding,
    pub(super) partitions: u32,
    pub(super) budget: Budget,
    pub(super) fan_in: usize,
    /// In the order of the map tasks, without those that have no record of the partition.
    pub(super) sources: Vec<Source>,
    /// Grant for the blocks that the final merge decompresses.
    pub(super) buffers: Grant,
    /// Grant for the sources that were read into memory.
    pub(super) read: Grant,
    /// Warnings about unusable consolidated files.
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
            let Some(range) = merge::next_merge(&sizes, self.fan_in) else {
                return Ok(());
            };
            let merged = self.merge_range(range.clone(), fold)?;
            let before: usize = self.sources[range.clone()]
                .iter()
                .map(Source::held_bytes)
                .sum();
            self.sources.splice(range, [merged]);
            self.read.set(self.read.bytes() - before);
        }
    }

    fn merge_range(&mut self, range: Range<usize>, fold: &dyn Fold) -> Result<Source, ReduceError> {
        let shape = SegmentShape {
            encoding: self.encoding,
            // Only this task reads the file, from the local disk.
            compression: BlockCompression::None,
            partitions: self.partitions,
            only: Some(self.settings.partition),
            label: self.settings.label.clone(),
        };
        let name = format!("merge-{:05}", self.statistics.intermediate_merges);
        let path = self.settings.scratch.join(name);
        let buffer = self.budget.write_buffer();
        let _grant = self
            .budget
            .take(buffer + BLOCK_BYTES + self.decompressing(range.clone()));
        let mut writer = SegmentWriter::create(&path, None, shape, buffer)?;
        let mut source = self.merge_of(range.clone())?;
        fold.merge(&mut source, &mut writer)
            .map_err(|error| match error {
                FoldError::Source(error) => self.blame_in(range, error),
                FoldError::Write(error) => ReduceError::Write(error),
                FoldError::Combine(key, message) => ReduceError::Combine { key, message },
            })?;
        self.bytes_merged += source.bytes_read();
        let file = TaskFile::new(writer.finish(Seal { durable: false })?);
        self.statistics.intermediate_merges += 1;
        self.statistics.merged_records += file.sealed.records;
        let size = file.sealed.raw_len;
        Ok(Source {
            segment: None,
            origin: Origin::Merged(file),
            start: None,
            size,
            decompressed: 0,
        })
    }

    /// Returns the final merge of all remaining sources, which stay open.
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

    /// Returns the buffer size for the blocks that a merge of these sources decompresses.
    fn decompressing(&self, range: Range<usize>) -> usize {
        self.sources[range]
            .iter()
            .map(|source| source.decompressed)
            .sum()
    }

    /// Attributes an error of the final merge to its source.
    #[cold]
    pub(super) fn blame(&self, error: MergeError) -> ReduceError {
        self.blame_in(0..self.sources.len(), error)
    }

    fn blame_in(&self, range: Range<usize>, error: MergeError) -> ReduceError {
        self.sources[range][error.input].origin.error(error.error)
    }

    /// Saves the rest of each source, given its next record and its end.
    pub(super) fn save(
        &mut self,
        places: impl Iterator<Item = (SegmentPosition, u64)>,
        place: &SavePlace,
    ) -> Result<SavedReduceInput, ReduceError> {
        let mut sources = Vec::with_capacity(self.sources.len());
        for (source, (SegmentPosition { block, ordinal }, records)) in
            self.sources.iter_mut().zip(places)
        {
            if ordinal == records {
                continue;
            }
            sources.push(match &mut source.origin {
                Origin::Input(index) => SavedSource::Input {
                    index: as_u32(*index),
                    label: source
                        .segment
                        .as_ref()
                        .map_or("", |segment| segment.label())
                        .to_owned(),
                    block,
                    ordinal,
                    records,
                },
                Origin::Merged(file) => SavedSource::Merged {
                    file: file.save(place)?,
                    block,
                    ordinal,
                },
            });
        }
        let partition = self.settings.partition;
        let inputs = as_u32(self.settings.segments.len());
        Ok(SavedReduceInput {
            partition,
            inputs,
            sources,
            statistics: self.statistics,
            group: None,
        })
    }

    pub(super) fn statistics(&self) -> ReduceStatistics {
        let memory_peak = self.statistics.memory_peak.max(self.budget.peak());
        ReduceStatistics {
            memory_peak,
            ..self.statistics
        }
    }
}

/// There are no more inputs than map tasks, which have 32-bit numbers.
fn as_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

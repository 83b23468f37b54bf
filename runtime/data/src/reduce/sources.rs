//! The sources of a reduce task's merge: segments, and the intermediate merges that make them few enough.
//!
//! Owns opening them, afresh or where they were saved, intermediate merges, and telling an input's damage
//! from that of a merged file. Does not own groups (`input`).

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::budget::{Budget, Grant};
use crate::combine::{Fold, FoldError};
use crate::merge::{self, Merge, MergeError};
use crate::reduce::{ReduceError, ReduceSettings, ReduceStatistics, SavedReduceInput, SavedSource};
use crate::saved::{SavePlace, SavedFileError, TaskFile};
use crate::segment::{
    BLOCK_BYTES, BlockCompression, Cursor, Seal, Segment, SegmentError, SegmentPosition, SegmentShape,
    SegmentWriter, check_label,
};

/// A segment and where it comes from.
struct Source {
    segment: Arc<Segment>,
    origin: Origin,
    /// The first record that is read, if it is not the first one there is.
    start: Option<u64>,
    /// Stored bytes of the partition.
    size: u64,
}

enum Origin {
    /// The segment of a map task: its place among the inputs.
    Input(usize),
    /// An intermediate merge.
    Merged(TaskFile),
}

pub(super) struct Sources {
    partition: u32,
    inputs: usize,
    scratch: PathBuf,
    label: String,
    budget: Budget,
    fan_in: usize,
    /// In the order of the map tasks; those without a record of the partition left out.
    sources: Vec<Source>,
    /// For the blocks that the final merge decompresses.
    buffers: Grant,
    /// Stored bytes of the blocks that intermediate merges read.
    bytes_merged: u64,
    statistics: ReduceStatistics,
}

/// Sources while they are opened, one after another.
struct Opening {
    settings: ReduceSettings,
    first: Option<Arc<Segment>>,
    compression: BlockCompression,
    sources: Vec<Source>,
    /// The first input that was not named yet: they are named in order.
    next_input: usize,
    statistics: ReduceStatistics,
}

impl Opening {
    fn new(settings: ReduceSettings, statistics: ReduceStatistics) -> Result<Opening, ReduceError> {
        check_label(&settings.label).map_err(ReduceError::Settings)?;
        let (first, compression) = (None, BlockCompression::None);
        Ok(Opening { settings, first, compression, sources: Vec::new(), next_input: 0, statistics })
    }

    /// The segment of a map task.
    fn input(&mut self, index: usize) -> Result<Arc<Segment>, ReduceError> {
        let input = |error| ReduceError::Input { index, error };
        let segment = Segment::open(&self.settings.segments[index]).map_err(input)?;
        if self.is_unlike(&segment) {
            return Err(ReduceError::Mixed { index });
        }
        Ok(segment)
    }

    fn saved(&mut self, saved: &SavedSource, base: &Path) -> Result<Source, ReduceError> {
        let partition = self.settings.partition;
        let (segment, origin, block, start) = match saved {
            SavedSource::Input { index, label, block, ordinal, records } => {
                let at = *index as usize;
                if at < self.next_input || at >= self.settings.segments.len() {
                    return Err(ReduceError::Unfit(format!("it names input {at} where there is none")));
                }
                self.next_input = at + 1;
                let segment = self.input(at)?;
                check_is_same(&segment, partition, at, (label, *records))?;
                (segment, Origin::Input(at), *block, *ordinal)
            }
            SavedSource::Merged { file, block, ordinal } => {
                let segment = file.open(base)?;
                if self.is_unlike(&segment) {
                    let what = "was written by a job with other settings".into();
                    return Err(SavedFileError { path: segment.path().to_owned(), what }.into());
                }
                let file = file.resume(&segment);
                (segment, Origin::Merged(file), *block, *ordinal)
            }
        };
        let size = segment.partition(partition).map_or(0, |entry| entry.stored_len);
        let source = Source { segment, origin, start: Some(start), size };
        let found = source.position(partition)?;
        if found != Some(SegmentPosition { block, ordinal: start }) {
            let path = source.segment.path().display();
            let there =
                found.map_or("is not there".to_owned(), |found| format!("lies in block {}", found.block));
            return Err(ReduceError::Unfit(format!("record {start} of block {block} of {path} {there}")));
        }
        Ok(source)
    }

    /// Whether a segment does not go with those before it.
    fn is_unlike(&mut self, segment: &Arc<Segment>) -> bool {
        if segment.compression() == BlockCompression::Lz4 {
            self.compression = BlockCompression::Lz4;
        }
        let like = self.first.get_or_insert_with(|| segment.clone());
        (segment.encoding(), segment.partitions()) != (like.encoding(), like.partitions())
    }

    fn done(self) -> Sources {
        let Opening { settings, compression, sources, statistics, .. } = self;
        let budget = Budget::new(settings.memory);
        Sources {
            partition: settings.partition,
            inputs: settings.segments.len(),
            scratch: settings.scratch,
            label: settings.label,
            fan_in: merge::fan_in(settings.fan_in, compression, &budget),
            buffers: budget.take(0),
            budget,
            sources,
            bytes_merged: 0,
            statistics,
        }
    }
}

impl Sources {
    pub(super) fn open(settings: ReduceSettings) -> Result<Sources, ReduceError> {
        let mut opening = Opening::new(settings, ReduceStatistics::default())?;
        for index in 0..opening.settings.segments.len() {
            let segment = opening.input(index)?;
            let entry = segment
                .partition(opening.settings.partition)
                .map_err(|error| ReduceError::Input { index, error })?;
            if segment.first_ordinal() > 0 {
                return Err(ReduceError::Settings(format!(
                    "input {index} starts with record {} of its partition; fetch it from block 0 on",
                    segment.first_ordinal()
                )));
            }
            opening.statistics.records_total += entry.records;
            opening.statistics.bytes_total += entry.raw_len;
            if entry.records > 0 {
                let size = entry.stored_len;
                opening.sources.push(Source { segment, origin: Origin::Input(index), start: None, size });
            }
        }
        Ok(opening.done())
    }

    /// Opens what is left to be read; `base` is the directory of checkpoints.
    pub(super) fn open_at(
        settings: ReduceSettings,
        saved: &SavedReduceInput,
        base: &Path,
    ) -> Result<Sources, ReduceError> {
        if (saved.partition, saved.inputs as usize) != (settings.partition, settings.segments.len()) {
            return Err(ReduceError::Unfit(format!(
                "it is of partition {} of {} inputs, the task reads partition {} of {}",
                saved.partition,
                saved.inputs,
                settings.partition,
                settings.segments.len()
            )));
        }
        let mut opening = Opening::new(settings, saved.statistics)?;
        for source in &saved.sources {
            let source = opening.saved(source, base)?;
            opening.sources.push(source);
        }
        Ok(opening.done())
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
            compression: BlockCompression::None,
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
        self.bytes_merged += source.bytes_read();
        let file = TaskFile::new(writer.finish(Seal { durable: false })?);
        let segment = Segment::open(&path).map_err(ReduceError::Intermediate)?;
        self.statistics.intermediate_merges += 1;
        self.statistics.merged_records += file.sealed().records;
        let size = file.sealed().raw_len;
        Ok(Source { segment, origin: Origin::Merged(file), start: None, size })
    }

    pub(super) fn merge(&mut self) -> Result<Merge, ReduceError> {
        self.buffers.set(self.decompressing(0..self.sources.len()));
        self.merge_of(0..self.sources.len())
    }

    fn merge_of(&self, range: Range<usize>) -> Result<Merge, ReduceError> {
        let mut cursors = Vec::with_capacity(range.len());
        for source in &self.sources[range] {
            cursors.push(source.cursor(self.partition)?);
        }
        Ok(Merge::new(cursors))
    }

    /// Memory for the blocks that a merge of these sources decompresses.
    fn decompressing(&self, range: Range<usize>) -> usize {
        let compressed = |source: &&Source| source.segment.compression() == BlockCompression::Lz4;
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
                    label: source.segment.label().to_owned(),
                    block,
                    ordinal,
                    records,
                },
                Origin::Merged(file) => SavedSource::Merged { file: file.save(place)?, block, ordinal },
            });
        }
        let (partition, inputs) = (self.partition, as_u32(self.inputs));
        Ok(SavedReduceInput { partition, inputs, sources, statistics: self.statistics, group: None })
    }

    pub(super) fn bytes_merged(&self) -> u64 {
        self.bytes_merged
    }

    pub(super) fn statistics(&self) -> ReduceStatistics {
        let memory_peak = self.statistics.memory_peak.max(self.budget.peak());
        ReduceStatistics { memory_peak, ..self.statistics }
    }
}

impl Source {
    /// Before the first record that is read.
    fn cursor(&self, partition: u32) -> Result<Cursor, ReduceError> {
        let cursor = match self.start {
            None => self.segment.cursor(partition),
            Some(ordinal) => self.segment.cursor_at(partition, ordinal),
        };
        cursor.map_err(|error| self.lost(error))
    }

    /// Where the first record that is read lies; none when it is not here.
    fn position(&self, partition: u32) -> Result<Option<SegmentPosition>, ReduceError> {
        let Some(ordinal) = self.start else { return Ok(None) };
        self.segment.find(partition, ordinal).map_err(|error| self.lost(error))
    }

    fn lost(&self, error: SegmentError) -> ReduceError {
        match &self.origin {
            Origin::Input(index) => ReduceError::Input { index: *index, error },
            Origin::Merged(file) if file.is_saved() => ReduceError::Saved(SavedFileError::of(error)),
            Origin::Merged(_) => ReduceError::Intermediate(error),
        }
    }
}

/// Refuses the segment of another attempt than the one that was read before.
fn check_is_same(
    segment: &Segment,
    partition: u32,
    index: usize,
    (label, records): (&str, u64),
) -> Result<(), ReduceError> {
    let input = |error| ReduceError::Input { index, error };
    let found = segment.first_ordinal() + segment.partition(partition).map_err(input)?.records;
    if (segment.label(), found) == (label, records) {
        return Ok(());
    }
    Err(ReduceError::Unfit(format!(
        "{records} records of {label} were input {index}, which now is {found} records of {}",
        segment.label()
    )))
}

/// There are no more inputs than map tasks, whose numbers have 32 bits.
fn as_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

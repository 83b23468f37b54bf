//! Opens the sources of a reduce task's merge, at the start or at a saved position. Neither open files nor
//! mappings limit the number of inputs: small ones are read into memory, a limited number of the others stay
//! mapped, and the rest are reopened when they are merged.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::budget::{Budget, Grant};
use crate::merge;
use crate::record::RecordEncoding;
use crate::reduce::sources::{Origin, SOURCE_BYTES, Source, Sources};
use crate::reduce::{ReduceError, ReduceSettings, ReduceStatistics, SavedReduceInput, SavedSource};
use crate::saved::SavedFileError;
use crate::segment::{
    BLOCK_BYTES, BlockCompression, PartitionEntry, Segment, SegmentPosition, check_label,
    read_consolidated,
};

/// Inputs that stay mapped.
const MAPPED_MAX: usize = 1024;
/// Fan-in if all sources are in memory, where a wide merge costs only comparisons.
const READ_FAN_IN: usize = 4096;

/// The sources opened so far.
struct Opening {
    settings: ReduceSettings,
    budget: Budget,
    read: Grant,
    mapped: usize,
    /// Encoding and number of partitions of the first segment.
    expected: Option<(RecordEncoding, u32)>,
    compression: BlockCompression,
    sources: Vec<Source>,
    /// Segments that were read from consolidated files and are not opened yet.
    preloaded: HashMap<PathBuf, Arc<Segment>>,
    /// Warnings about unusable consolidated files.
    remarks: Vec<String>,
    /// The next input that a saved source may refer to: sources are saved in order.
    next_input: usize,
    statistics: ReduceStatistics,
}

impl Opening {
    fn new(settings: ReduceSettings, statistics: ReduceStatistics) -> Result<Opening, ReduceError> {
        check_label(&settings.label).map_err(ReduceError::Settings)?;
        let budget = Budget::new(settings.memory);
        let (preloaded, remarks) = preload(&settings, budget.read_max());
        Ok(Opening {
            preloaded,
            remarks,
            read: budget.take(0),
            budget,
            settings,
            mapped: 0,
            expected: None,
            compression: BlockCompression::None,
            sources: Vec::new(),
            next_input: 0,
            statistics,
        })
    }

    /// Opens the segment of a map task.
    fn input(&mut self, index: usize) -> Result<Arc<Segment>, ReduceError> {
        let input = |error| ReduceError::Input { index, error };
        let room = self
            .budget
            .read_max()
            .saturating_sub(self.read.bytes() + SOURCE_BYTES);
        let path = &self.settings.segments[index];
        let bytes_max = self.settings.read_max.min(room as u64);
        let preloaded = self
            .preloaded
            .remove(path)
            .filter(|segment| segment.heap_bytes() as u64 <= bytes_max);
        let segment = match preloaded {
            Some(segment) => segment,
            None => {
                Segment::open_partition(path, self.settings.partition, bytes_max).map_err(input)?
            }
        };
        if self.mismatches(&segment) {
            return Err(ReduceError::Mixed { index });
        }
        Ok(segment)
    }

    /// Adds a source and keeps it open if the budget allows.
    fn add(
        &mut self,
        segment: Arc<Segment>,
        origin: Origin,
        start: Option<u64>,
        entry: &PartitionEntry,
    ) {
        let decompressed = match segment.compression() {
            BlockCompression::None => 0,
            BlockCompression::Lz4 => entry.raw_len.min(BLOCK_BYTES as u64) as usize,
        };
        let stays_open = if segment.is_mapped() {
            self.mapped += 1;
            self.mapped <= MAPPED_MAX
        } else {
            self.read
                .set(self.read.bytes() + segment.heap_bytes() + SOURCE_BYTES);
            true
        };
        let segment = stays_open.then_some(segment);
        self.sources.push(Source {
            segment,
            origin,
            start,
            size: entry.stored_len,
            decompressed,
        });
    }

    fn add_saved(&mut self, saved: &SavedSource, base: &Path) -> Result<(), ReduceError> {
        let partition = self.settings.partition;
        let (segment, origin, block, start) = match saved {
            SavedSource::Input {
                index,
                block,
                ordinal,
                ..
            } => {
                let at = *index as usize;
                if at < self.next_input || at >= self.settings.segments.len() {
                    return Err(ReduceError::Unfit(format!(
                        "it refers to input {at}, which does not exist"
                    )));
                }
                self.next_input = at + 1;
                let segment = self.input(at)?;
                check_unchanged(&segment, partition, saved)?;
                (segment, Origin::Input(at), *block, *ordinal)
            }
            SavedSource::Merged {
                file,
                block,
                ordinal,
            } => {
                let segment = file.open(base)?;
                if self.mismatches(&segment) {
                    let what = "was written by a job with other settings".into();
                    return Err(SavedFileError {
                        path: segment.path().to_owned(),
                        what,
                    }
                    .into());
                }
                let file = file.resume(&segment);
                (segment, Origin::Merged(file), *block, *ordinal)
            }
        };
        let entry = segment
            .partition(partition)
            .map_err(|error| origin.error(error))?;
        let found = segment
            .find(partition, start)
            .map_err(|error| origin.error(error))?;
        if found
            != Some(SegmentPosition {
                block,
                ordinal: start,
            })
        {
            let path = segment.path().display();
            let place = found.map_or("missing".to_owned(), |found| {
                format!("in block {}", found.block)
            });
            return Err(ReduceError::Unfit(format!(
                "record {start} of block {block} of {path} is {place}"
            )));
        }
        self.add(segment, origin, Some(start), &entry);
        Ok(())
    }

    /// Whether a segment differs from the first one in encoding or partitions.
    fn mismatches(&mut self, segment: &Arc<Segment>) -> bool {
        if segment.compression() == BlockCompression::Lz4 {
            self.compression = BlockCompression::Lz4;
        }
        let shape = (segment.encoding(), segment.partitions());
        *self.expected.get_or_insert(shape) != shape
    }

    fn finish(self) -> Sources {
        let Opening {
            settings,
            budget,
            read,
            expected,
            compression,
            sources,
            statistics,
            remarks,
            ..
        } = self;
        let (encoding, partitions) = expected.unwrap_or((RecordEncoding::Variable, 0));
        let mut fan_in = merge::fan_in(settings.fan_in, compression, &budget);
        let decompressed: usize = sources.iter().map(|source| source.decompressed).sum();
        if sources.iter().all(Source::is_read) && decompressed <= budget.read_max() {
            fan_in = fan_in.max(READ_FAN_IN);
        }
        Sources {
            settings,
            encoding,
            partitions,
            fan_in,
            buffers: budget.take(0),
            read,
            budget,
            sources,
            remarks,
            bytes_merged: 0,
            statistics,
        }
    }
}

/// Reads small segments from consolidated files within `bytes_max`; returns them and warnings.
fn preload(
    settings: &ReduceSettings,
    bytes_max: usize,
) -> (HashMap<PathBuf, Arc<Segment>>, Vec<String>) {
    let mut found = HashMap::new();
    let mut remarks = Vec::new();
    let mut room = bytes_max;
    let wanted = settings
        .consolidated
        .iter()
        .filter(|_| settings.read_max > 0);
    for path in wanted {
        match read_consolidated(path, settings.partition, room as u64) {
            Ok(segments) => {
                let held = segments
                    .iter()
                    .map(|segment| segment.heap_bytes() + SOURCE_BYTES)
                    .sum();
                room = room.saturating_sub(held);
                found.extend(
                    segments
                        .into_iter()
                        .map(|segment| (segment.path().to_owned(), segment)),
                );
            }
            Err(what) => remarks.push(format!(
                "{}: unusable consolidated file, reading its segments one by one: {what}",
                path.display()
            )),
        }
    }
    (found, remarks)
}

/// Opens every input at the start of the partition.
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
            opening.add(segment, Origin::Input(index), None, &entry);
        }
    }
    Ok(opening.finish())
}

/// Opens the unread rest; `base` is the checkpoint directory.
pub(super) fn open_at(
    settings: ReduceSettings,
    saved: &SavedReduceInput,
    base: &Path,
) -> Result<Sources, ReduceError> {
    if (saved.partition, saved.inputs as usize) != (settings.partition, settings.segments.len()) {
        return Err(ReduceError::Unfit(format!(
            "it has partition {} of {} inputs; the task reads partition {} of {} inputs",
            saved.partition,
            saved.inputs,
            settings.partition,
            settings.segments.len()
        )));
    }
    let mut opening = Opening::new(settings, saved.statistics)?;
    for source in &saved.sources {
        opening.add_saved(source, base)?;
    }
    Ok(opening.finish())
}

/// Fails if the segment is not the one that was read before, but that of another attempt.
fn check_unchanged(
    segment: &Segment,
    partition: u32,
    saved: &SavedSource,
) -> Result<(), ReduceError> {
    let SavedSource::Input {
        index,
        label,
        records,
        ..
    } = saved
    else {
        return Ok(());
    };
    let input = |error| ReduceError::Input {
        index: *index as usize,
        error,
    };
    let found = segment.first_ordinal() + segment.partition(partition).map_err(input)?.records;
    if (segment.label(), found) == (label, *records) {
        return Ok(());
    }
    Err(ReduceError::Unfit(format!(
        "input {index} has {found} records of {}; {records} records of {label} were saved",
        segment.label()
    )))
}

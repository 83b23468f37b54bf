//! Groups of equal keys over merged segments, in constant memory.
//!
//! Owns the boundaries of groups and the lending of values. Does not own the order within a group, which is
//! the merge's, nor how many segments become few enough (`sources`).

use serde::{Deserialize, Serialize};

use crate::combine::{Combiner, Fold, Folding, Keep};
use crate::merge::{KeyCode, Merge};
use crate::partition::{Grouping, prefix};
use crate::reduce::sources::Sources;
use crate::reduce::{ReduceError, ReduceSettings, SavedReduceInput, opening};
use crate::saved::SavePlace;

/// A full key and a value, borrowed from where they are stored.
pub type KeyValue<'a> = (&'a [u8], &'a [u8]);

/// What a reduce task has read so far; one that goes on from a checkpoint counts on from what was saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReduceStatistics {
    /// Groups begun.
    pub groups: u64,
    /// Records read, those that the reducer skipped included.
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
    /// Stored bytes of the blocks that this attempt entered, for intermediate merges, too: not counted on
    /// from what was saved.
    pub bytes_read: u64,
    /// The most memory granted at once, in bytes.
    pub memory_peak: usize,
}

/// One partition of several segments as a sequence of groups.
///
/// Keys and values lie in the mapped segments: a group may be of any size.
pub struct ReduceInput {
    merge: Merge,
    sources: Sources,
    grouping: Option<Grouping>,
    group_key: Vec<u8>,
    group_code: KeyCode,
    state: RecordState,
    groups: u64,
    records: u64,
    bytes: u64,
    /// After an error the merge stands nowhere.
    failed: bool,
}

/// Where the merge stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordState {
    /// Before its first record.
    Fresh,
    /// On a record of the current group that was not handed out.
    Offered,
    /// On a record of the current group that was handed out.
    Taken,
    /// On the first record of the next group.
    Beyond,
    /// After its last record.
    Ended,
}

impl ReduceInput {
    /// Opens the segments, merges some of them first when there are more than the fan-in allows, and stands
    /// before the first group, or where an input was saved (`resume` of the settings).
    ///
    /// # Errors
    /// `Input` for a segment that is missing or damaged, `Write` when an intermediate merge finds no room.
    /// When it goes on, `Saved` when a file that was saved is missing or damaged, `Unfit` when a segment is
    /// not the one that was read.
    pub fn open(settings: ReduceSettings) -> Result<ReduceInput, ReduceError> {
        ReduceInput::open_folding(settings, &Keep)
    }

    /// As `open`, and folds the values of equal keys in intermediate merges.
    ///
    /// # Errors
    /// As `open`, and `Combine` when the combiner cannot decode a value.
    pub fn open_combining<C: Combiner>(
        settings: ReduceSettings,
        combiner: &C,
    ) -> Result<ReduceInput, ReduceError> {
        ReduceInput::open_folding(settings, &Folding(combiner))
    }

    fn open_folding(mut settings: ReduceSettings, fold: &dyn Fold) -> Result<ReduceInput, ReduceError> {
        let (grouping, resume) = (settings.grouping, settings.resume.take());
        let mut sources = match &resume {
            None => opening::open(settings)?,
            Some((saved, base)) => opening::open_at(settings, saved, base)?,
        };
        sources.merge_down(fold)?;
        let merge = sources.merge()?;
        let mut input = ReduceInput {
            group_code: merge.key_code(),
            merge,
            sources,
            grouping,
            group_key: Vec::new(),
            state: RecordState::Fresh,
            groups: 0,
            records: 0,
            bytes: 0,
            failed: false,
        };
        if let Some((saved, _)) = resume {
            input.count_on(saved);
        }
        Ok(input)
    }

    fn count_on(&mut self, saved: SavedReduceInput) {
        let ReduceStatistics { groups, records, bytes, .. } = saved.statistics;
        (self.groups, self.records, self.bytes) = (groups, records, bytes);
        if let Some(group) = saved.group {
            // What is left of the group comes with the next step, as if the record before it had been handed
            // out here.
            self.state = RecordState::Taken;
            // Of a prefix, the code of the key that it is the prefix of is not known.
            self.group_code = if self.grouping.is_none() { KeyCode::of(&group) } else { KeyCode::unknown() };
            self.group_key = group;
        }
    }

    /// Where the input stands, between two groups or two values: what `resume` goes on from. Intermediate
    /// merges move to where checkpoints are kept, unless they are there already; of the segments only
    /// positions are kept. The input can be used on.
    ///
    /// # Errors
    /// `Write` when a merge cannot be moved; `Settings` after an error of this input.
    pub fn save(&mut self, place: &SavePlace) -> Result<SavedReduceInput, ReduceError> {
        if self.failed {
            return Err(ReduceError::Settings("an input that failed cannot be saved".into()));
        }
        // A record that was handed out is behind, the current one of any other source is not.
        let positions = match self.state {
            RecordState::Taken => self.merge.positions_after_current(),
            _ => self.merge.positions(),
        };
        let ends = self.merge.cursors.iter().map(|cursor| cursor.ordinals.end);
        let sources = self.sources.save(positions.into_iter().zip(ends), place)?;
        let group = (self.groups > 0).then(|| self.group_key.clone());
        let statistics = ReduceStatistics { bytes_read: 0, ..self.statistics() };
        Ok(SavedReduceInput { group, statistics, ..sources })
    }

    /// Moves to the next group, past the values of the current one that were not read; `false` after the last
    /// group.
    ///
    /// # Errors
    /// `Input` when a segment proves damaged, `Intermediate` when a merged one does.
    pub fn next_group(&mut self) -> Result<bool, ReduceError> {
        match self.state {
            RecordState::Fresh => self.step(|_| RecordState::Beyond)?,
            RecordState::Offered | RecordState::Taken => while self.next_value()?.is_some() {},
            RecordState::Beyond | RecordState::Ended => {}
        }
        if self.state == RecordState::Ended {
            return Ok(false);
        }
        let key = prefix(self.merge.key(), self.grouping);
        self.group_key.clear();
        self.group_key.extend_from_slice(key);
        self.group_code = self.merge.key_code();
        self.state = RecordState::Offered;
        self.groups += 1;
        Ok(true)
    }

    /// The prefix that the keys of the current group share; the whole key without a grouping.
    pub fn group_key(&self) -> &[u8] {
        &self.group_key
    }

    /// The full key and the value of the group's next record; `None` after the last one. The slices lie in
    /// the mapped segment and stay valid until the next call.
    ///
    /// # Errors
    /// As `next_group`.
    #[inline]
    pub fn next_value(&mut self) -> Result<Option<KeyValue<'_>>, ReduceError> {
        if self.state == RecordState::Taken {
            self.step(|input| if input.belongs() { RecordState::Offered } else { RecordState::Beyond })?;
        }
        if self.state != RecordState::Offered {
            return Ok(None);
        }
        self.state = RecordState::Taken;
        let (key, value) = (self.merge.key(), self.merge.value());
        self.records += 1;
        self.bytes += (key.len() + value.len()) as u64;
        Ok(Some((key, value)))
    }

    /// What was done without, for people: a line for each consolidated file that is of no use.
    pub fn remarks(&self) -> &[String] {
        &self.sources.remarks
    }

    /// What was read so far.
    pub fn statistics(&self) -> ReduceStatistics {
        ReduceStatistics {
            groups: self.groups,
            records: self.records,
            bytes: self.bytes,
            bytes_read: self.sources.bytes_merged + self.merge.bytes_read(),
            ..self.sources.statistics()
        }
    }

    /// Whether the merge's current record belongs to the current group.
    #[inline]
    fn belongs(&self) -> bool {
        let code = self.merge.key_code();
        if code == self.group_code && code.is_whole() {
            return true;
        }
        if self.grouping.is_none() && code != self.group_code {
            return false;
        }
        prefix(self.merge.key(), self.grouping) == self.group_key
    }

    #[inline]
    fn step(&mut self, state: impl FnOnce(&Self) -> RecordState) -> Result<(), ReduceError> {
        match self.merge.advance() {
            Ok(true) => self.state = state(self),
            Ok(false) => self.state = RecordState::Ended,
            Err(error) => {
                self.failed = true;
                return Err(self.sources.blame(error));
            }
        }
        Ok(())
    }
}

//! Groups of equal keys over merged segments, in constant memory: values are borrowed from the segments.

use crate::combine::{Combiner, Fold, Folding, NoFold};
use crate::merge::{KeyCode, Merge};
use crate::partition::{Grouping, prefix};
use crate::reduce::largest::LargestGroups;
use crate::reduce::sources::Sources;
use crate::reduce::{ReduceError, ReduceSettings, ReduceStatistics, SavedReduceInput, opening};
use crate::saved::SavePlace;

/// A full key and a value, borrowed from a segment.
pub type KeyValue<'a> = (&'a [u8], &'a [u8]);

/// One partition of several segments as a sequence of groups. Keys and values stay in the segments, so a group
/// may have any size.
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
    /// Records before the current group, or before this attempt if that continued it.
    records_before: u64,
    largest: LargestGroups,
    /// Set by an error, after which the position is undefined.
    failed: bool,
}

/// The position of the merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordState {
    /// Before the first record.
    Fresh,
    /// On a record of the current group that was not returned yet.
    Offered,
    /// On a record of the current group that was returned.
    Taken,
    /// On the first record of the next group.
    Beyond,
    /// After the last record.
    Ended,
}

impl ReduceInput {
    /// Opens the segments, merges some of them if there are more than the fan-in, and stops before the first
    /// group or at the saved position (`ReduceSettings::resume`).
    ///
    /// # Errors
    /// `Input` if a segment is missing or damaged, `Write` if an intermediate merge cannot be written. On
    /// resume, `Saved` if a saved file is missing or damaged, `Unfit` if a segment is not the one that was read.
    pub fn open(settings: ReduceSettings) -> Result<ReduceInput, ReduceError> {
        ReduceInput::open_folding(settings, &NoFold)
    }

    /// Like `open`, but folds the values of equal keys in intermediate merges.
    ///
    /// # Errors
    /// As `open`, and `Combine` if the combiner cannot decode a value.
    pub fn open_combining<C: Combiner>(
        settings: ReduceSettings,
        combiner: &C,
    ) -> Result<ReduceInput, ReduceError> {
        ReduceInput::open_folding(settings, &Folding(combiner))
    }

    fn open_folding(
        mut settings: ReduceSettings,
        fold: &dyn Fold,
    ) -> Result<ReduceInput, ReduceError> {
        let grouping = settings.grouping;
        let resume = settings.resume.take();
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
            records_before: 0,
            largest: LargestGroups::default(),
            failed: false,
        };
        if let Some((saved, _)) = resume {
            input.restore(saved);
        }
        Ok(input)
    }

    fn restore(&mut self, saved: SavedReduceInput) {
        let ReduceStatistics {
            groups,
            records,
            bytes,
            ..
        } = saved.statistics;
        (self.groups, self.records, self.bytes) = (groups, records, bytes);
        self.records_before = records;
        if let Some(group) = saved.group {
            // The next step continues the group as if this attempt had returned the record before.
            self.state = RecordState::Taken;
            // With a grouping the key was a prefix, whose code is not that of a record.
            self.group_code = if self.grouping.is_none() {
                KeyCode::new(&group)
            } else {
                KeyCode::unknown()
            };
            self.group_key = group;
        }
    }

    /// Saves the position between two groups or two values, for `ReduceSettings::resume`. Intermediate merges
    /// move to the checkpoint directory; of segments only positions are saved. The input stays usable.
    ///
    /// # Errors
    /// `Write` if a merge cannot be moved; `Settings` after an earlier error of this input.
    pub fn save(&mut self, place: &SavePlace) -> Result<SavedReduceInput, ReduceError> {
        if self.failed {
            return Err(ReduceError::Settings(
                "cannot save a reduce input that failed".into(),
            ));
        }
        // A record that was returned is done; the current records of other sources are not.
        let positions = match self.state {
            RecordState::Taken => self.merge.positions_after_current(),
            _ => self.merge.positions(),
        };
        let ends = self.merge.cursors.iter().map(|cursor| cursor.ordinals.end);
        let sources = self.sources.save(positions.into_iter().zip(ends), place)?;
        let group = (self.groups > 0).then(|| self.group_key.clone());
        let statistics = ReduceStatistics {
            bytes_read: 0,
            ..self.statistics()
        };
        Ok(SavedReduceInput {
            group,
            statistics,
            ..sources
        })
    }

    /// Moves to the next group and skips unread values of the current one; returns `false` after the last
    /// group.
    ///
    /// # Errors
    /// `Input` if a segment is damaged, `Intermediate` if an intermediate merge is.
    pub fn next_group(&mut self) -> Result<bool, ReduceError> {
        match self.state {
            RecordState::Fresh => self.step(|_| RecordState::Beyond)?,
            RecordState::Offered | RecordState::Taken => while self.next_value()?.is_some() {},
            RecordState::Beyond | RecordState::Ended => {}
        }
        self.end_group();
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

    #[inline]
    fn end_group(&mut self) {
        self.largest
            .add(&self.group_key, self.records - self.records_before);
        self.records_before = self.records;
    }

    /// Ends the current group and returns the keys of the largest ones with the records that this attempt read of
    /// them. Groups of fewer than 10,000 records are left out.
    pub fn largest_groups(&mut self) -> impl Iterator<Item = (&[u8], u64)> {
        self.end_group();
        self.largest.iter()
    }

    /// Returns the grouping prefix of the current group; without a grouping, the whole key.
    pub fn group_key(&self) -> &[u8] {
        &self.group_key
    }

    /// Returns the full key and the value of the group's next record; `None` after the last one. The slices are
    /// valid until the next call.
    ///
    /// # Errors
    /// As `next_group`.
    #[inline]
    pub fn next_value(&mut self) -> Result<Option<KeyValue<'_>>, ReduceError> {
        if self.state == RecordState::Taken {
            self.step(|input| {
                if input.in_group() {
                    RecordState::Offered
                } else {
                    RecordState::Beyond
                }
            })?;
        }
        if self.state != RecordState::Offered {
            return Ok(None);
        }
        self.state = RecordState::Taken;
        let key = self.merge.key();
        let value = self.merge.value();
        self.records += 1;
        self.bytes += (key.len() + value.len()) as u64;
        Ok(Some((key, value)))
    }

    /// Returns one warning per consolidated file that could not be used.
    pub fn remarks(&self) -> &[String] {
        &self.sources.remarks
    }

    pub fn statistics(&self) -> ReduceStatistics {
        ReduceStatistics {
            groups: self.groups,
            records: self.records,
            bytes: self.bytes,
            bytes_read: self.sources.bytes_merged + self.merge.bytes_read(),
            ..self.sources.statistics()
        }
    }

    /// Whether the current record belongs to the current group.
    #[inline]
    fn in_group(&self) -> bool {
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

//! Offsets of the records that a program has received but may not have processed yet.

use std::collections::VecDeque;

use crate::input::{InputPlace, Split};

/// Batches whose offsets are kept. Pipes and well-behaved programs buffer less; a failure in an older batch
/// is reported without an offset.
const BATCHES_MAX: usize = 16;

/// The records of one conversation, counted from 0.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The split, and the memory to read it with.
    file: Option<(Split, usize)>,
    batches: VecDeque<BatchOffsets>,
}

#[derive(Debug, Default)]
struct BatchOffsets {
    first: u64,
    offsets: Vec<Option<u64>>,
}

impl Places {
    /// Records the position of the next record.
    #[inline]
    pub(super) fn note(&mut self, place: &InputPlace) {
        if self.file.is_none() {
            self.file = Some(place.of_split());
        }
        if self.batches.is_empty() {
            self.batches.push_back(BatchOffsets::default());
        }
        if let Some(batch) = self.batches.back_mut() {
            batch.offsets.push(place.offset());
        }
    }

    /// Ends the current batch.
    pub(super) fn end_batch(&mut self) {
        let Some(batch) = self.batches.back() else {
            return;
        };
        let first = batch.first + batch.offsets.len() as u64;
        self.batches.push_back(BatchOffsets {
            first,
            offsets: Vec::new(),
        });
        if self.batches.len() > BATCHES_MAX {
            self.batches.pop_front();
        }
    }

    /// Describes the position of a record, or only names its file if the offset is unknown.
    pub(super) fn of(&self, record: u64) -> Option<String> {
        let (split, memory) = self.file.as_ref()?;
        let offset = self.batches.iter().find_map(|batch| {
            let within = usize::try_from(record.checked_sub(batch.first)?).ok()?;
            batch.offsets.get(within).copied().flatten()
        });
        Some(match offset {
            Some(offset) => InputPlace::anywhere(split, offset, *memory).to_string(),
            None => format!(
                "record {record} of those read from {}",
                split.path.display()
            ),
        })
    }
}

//! Offsets of the records that a program has received but may not have processed yet.

use std::collections::VecDeque;

use crate::input::{InputPlace, Split};

/// More batches than are under way when pipes and programs hold no more than they should; a program that
/// keeps more back is not told where it failed.
const BATCHES_MAX: usize = 16;

/// The records of one conversation, counted from 0.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The part of a file that they are of, and the memory there is to read it.
    file: Option<(Split, usize)>,
    batches: VecDeque<Noted>,
}

/// What is known of a batch.
#[derive(Debug, Default)]
struct Noted {
    first: u64,
    offsets: Vec<Option<u64>>,
}

impl Places {
    /// Notes where the next record lies.
    #[inline]
    pub(super) fn note(&mut self, place: &InputPlace) {
        if self.file.is_none() {
            self.file = Some(place.of_split());
        }
        if self.batches.is_empty() {
            self.batches.push_back(Noted::default());
        }
        if let Some(batch) = self.batches.back_mut() {
            batch.offsets.push(place.offset());
        }
    }

    /// The records that were noted since the last call are a batch.
    pub(super) fn end_batch(&mut self) {
        let Some(batch) = self.batches.back() else { return };
        let first = batch.first + batch.offsets.len() as u64;
        self.batches.push_back(Noted { first, offsets: Vec::new() });
        if self.batches.len() > BATCHES_MAX {
            self.batches.pop_front();
        }
    }

    /// The place of a record in words, or that of all of them if it is not known.
    pub(super) fn of(&self, record: u64) -> Option<String> {
        let (split, memory) = self.file.as_ref()?;
        let offset = self.batches.iter().find_map(|batch| {
            let within = usize::try_from(record.checked_sub(batch.first)?).ok()?;
            batch.offsets.get(within).copied().flatten()
        });
        Some(match offset {
            Some(offset) => InputPlace::anywhere(split, offset, *memory).to_string(),
            None => format!("record {record} of those read from {}", split.path.display()),
        })
    }
}

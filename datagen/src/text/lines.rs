//! Lines of one text chunk: 60 to 100 bytes each, ending exactly at the end of the chunk.

use super::vocabulary::{Slot, Vocabulary, WORD_BYTES_MAX};
use super::zipf::Zipf;
use crate::random::SplitMix;

/// A line ends with the first word that reaches a length drawn from this range; with that word and the
/// newline it has at most `LINE_BYTES_MAX` bytes.
const LINE_BYTES_MAX: usize = 100;
const LINE_GOAL_MIN: usize = 60;
const LINE_GOALS: u64 = (LINE_BYTES_MAX - LINE_GOAL_MIN - WORD_BYTES_MAX) as u64;

/// The end of a chunk that is filled exactly: room for any line and for a whole slot.
const EXACT_BYTES: usize = 256;

/// Words drawn at once.
const BATCH: usize = 512;

/// Makes lines of words drawn by rank.
pub(super) struct Lines {
    pub(super) vocabulary: Vocabulary,
    pub(super) zipf: Zipf,
}

impl Lines {
    /// Fills `chunk` with whole lines.
    pub(super) fn fill(&self, random: &mut SplitMix, chunk: &mut [u8]) {
        let mut batch = [[0; size_of::<Slot>()]; BATCH];
        let mut used = BATCH;
        let mut position = 0;
        while chunk.len() - position >= EXACT_BYTES {
            let goal = position + LINE_GOAL_MIN + random.below(LINE_GOALS) as usize;
            while position < goal {
                if used == BATCH {
                    self.draw_batch(random, &mut batch);
                    used = 0;
                }
                let slot = &batch[used];
                used += 1;
                // The whole slot is stored; the next word overwrites the bytes after the word and its space.
                chunk[position..position + size_of::<Slot>()].copy_from_slice(slot);
                position += usize::from(slot[15]);
            }
            chunk[position - 1] = b'\n';
        }
        let mut rest = &mut chunk[position..];
        while !rest.is_empty() {
            let lines = rest.len().div_ceil(LINE_BYTES_MAX);
            let (line, after) = rest.split_at_mut(rest.len() / lines);
            self.fill_line(random, line);
            rest = after;
        }
    }

    /// Draws words before they are used.
    ///
    /// The end of a line is unpredictable, and a mispredicted branch would wait for the words before it.
    /// Drawing in loops without such branches avoids that. The lookups in the word table, which exceeds the
    /// cache, have a loop of their own, so that many of them overlap.
    fn draw_batch(&self, random: &mut SplitMix, batch: &mut [Slot; BATCH]) {
        let mut ranks = [0; BATCH];
        for rank in &mut ranks {
            *rank = self.zipf.rank(random.draw());
        }
        for (slot, rank) in batch.iter_mut().zip(ranks) {
            *slot = *self.vocabulary.slot(rank);
        }
    }

    #[inline(always)]
    fn draw(&self, random: &mut SplitMix) -> &Slot {
        self.vocabulary.slot(self.zipf.rank(random.draw()))
    }

    /// Fills `line` with words and a final newline.
    fn fill_line(&self, random: &mut SplitMix, line: &mut [u8]) {
        let last = line.len() - 1;
        line[last] = b'\n';
        let mut position = 0;
        while position < last {
            let slot = self.draw_fitting(random, last - position);
            let length = usize::from(slot[15]).min(last - position);
            line[position..position + length].copy_from_slice(&slot[..length]);
            position += length;
        }
    }

    /// Draws a word that fills the room or leaves room for a space and another word.
    fn draw_fitting(&self, random: &mut SplitMix, room: usize) -> &Slot {
        if room > WORD_BYTES_MAX + 1 {
            return self.draw(random);
        }
        let exact: &[u32] = if room <= WORD_BYTES_MAX {
            self.vocabulary.ranks_of_length(room)
        } else {
            &[]
        };
        // Every vocabulary has words of one and two letters, which can fill any room: one letter and a space
        // leave at least one byte, because a room of two has a word of its own.
        let ranks = if exact.is_empty() {
            self.vocabulary.ranks_of_length(1)
        } else {
            exact
        };
        self.vocabulary
            .slot(ranks[random.below(ranks.len() as u64) as usize])
    }
}

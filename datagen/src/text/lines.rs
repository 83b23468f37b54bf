//! Words put into lines and lines into chunks.
//!
//! Owns the text of one chunk: lines of 60 to 100 bytes that end exactly at the chunk's end. Does not own
//! which chunk comes where.

use super::vocabulary::{Slot, Vocabulary, WORD_BYTES_MAX};
use super::zipf::Zipf;
use crate::random::SplitMix;

/// A line ends with the first word that reaches a length drawn from this range; with that word and the
/// newline it has at most `LINE_BYTES_MAX` bytes.
const LINE_BYTES_MAX: usize = 100;
const LINE_GOAL_MIN: usize = 60;
const LINE_GOALS: u64 = (LINE_BYTES_MAX - LINE_GOAL_MIN - WORD_BYTES_MAX) as u64;

/// The end of a chunk that is laid out exactly: room for any line and for a slot that is stored whole.
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
                // The whole slot is stored: what is behind the word and its blank is overwritten by the next
                // word.
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

    /// Draws words ahead of their use.
    ///
    /// A line's end cannot be predicted, and a processor that guesses wrong waits until the words before are
    /// there. So they are fetched in loops without such branches; and the fetching from the table of words,
    /// which is larger than the cache, in a loop that does nothing else, so that many fetches are under way
    /// at once.
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

    /// Fills `line` with words and a newline at its end.
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

    /// A word that leaves no room or room for a blank and another word.
    fn draw_fitting(&self, random: &mut SplitMix, room: usize) -> &Slot {
        if room > WORD_BYTES_MAX + 1 {
            return self.draw(random);
        }
        let exact: &[u32] = if room <= WORD_BYTES_MAX { self.vocabulary.of_length(room) } else { &[] };
        // Every vocabulary has words of one and two letters, and with those any room can be filled: one
        // letter and a blank leave at least one byte, because a room of two has a word of its own.
        let ranks = if exact.is_empty() { self.vocabulary.of_length(1) } else { exact };
        self.vocabulary.slot(ranks[random.below(ranks.len() as u64) as usize])
    }
}

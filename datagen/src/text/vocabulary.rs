//! Words of generated text by rank: distinct, pronounceable, lower-case ASCII, shorter for more frequent
//! ranks.

use crate::random::{SplitMix, stride};

/// Bytes of the longest word.
pub const WORD_BYTES_MAX: usize = 14;

/// A word, the space after it, and in the last byte the length of both; one unaligned store writes it.
pub(super) type Slot = [u8; 16];

/// Words by rank, the most frequent first.
///
/// A rank has the same word in every vocabulary: a smaller vocabulary is a prefix of a larger one, and the
/// seed of a text does not affect the words.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    slots: Vec<Slot>,
    /// Some ranks of each word length, to end a line exactly; `by_length[0]` is empty.
    by_length: [Vec<u32>; WORD_BYTES_MAX + 1],
}

/// Lengths of the first words, which the rule for later words would leave to chance. The first two, 2 and 1,
/// can fill any room.
const FIRST_LENGTHS: [u64; 10] = [2, 1, 3, 3, 2, 2, 1, 2, 2, 4];

const CONSONANTS: &[u8] = b"tnsrhldcmfpgwbvkjz";
const VOWELS: &[u8] = b"eaiou";

/// Ranks kept for each length in `by_length`, enough for variety at line ends.
const PER_LENGTH: usize = 256;

impl Vocabulary {
    /// Creates a vocabulary of the `words` most frequent words.
    ///
    /// # Panics
    ///
    /// Panics when `words` is less than 2 or more than [`super::VOCABULARY_MAX`].
    pub fn new(words: u32) -> Self {
        assert!(
            (2..=super::VOCABULARY_MAX).contains(&words),
            "invalid vocabulary size {words}"
        );
        let mut random = SplitMix::new(0, 0);
        let mut supplies: [Supply; WORD_BYTES_MAX + 1] = std::array::from_fn(Supply::new);
        let mut slots = Vec::with_capacity(words as usize);
        let mut by_length: [Vec<u32>; WORD_BYTES_MAX + 1] = Default::default();
        for rank in 0..words {
            let length = word_length(rank, &mut random);
            // When all words of a length are used up, longer ones follow; there are 10^13 of the longest.
            let slot = supplies[length..]
                .iter_mut()
                .find_map(Supply::take)
                .expect("long words do not run out");
            let ranks = &mut by_length[usize::from(slot[15]) - 1];
            if ranks.len() < PER_LENGTH {
                ranks.push(rank);
            }
            slots.push(slot);
        }
        Self { slots, by_length }
    }

    /// Returns the word of `rank`, from 0.
    ///
    /// # Panics
    ///
    /// Panics when `rank` is not less than the number of words.
    pub fn word(&self, rank: u32) -> &str {
        let slot = &self.slots[rank as usize];
        std::str::from_utf8(&slot[..usize::from(slot[15]) - 1])
            .expect("words consist of ASCII letters")
    }

    pub fn words(&self) -> u32 {
        self.slots.len() as u32
    }

    #[inline(always)]
    pub(super) fn slot(&self, rank: u32) -> &Slot {
        &self.slots[rank as usize]
    }

    /// Returns the ranks of some words of `length` bytes; never empty for 1 and 2.
    pub(super) fn ranks_of_length(&self, length: usize) -> &[u32] {
        &self.by_length[length]
    }
}

/// Returns the length of the word of `rank`: it grows with the logarithm of the rank, plus or minus up to two
/// letters.
fn word_length(rank: u32, random: &mut SplitMix) -> usize {
    if let Some(&length) = FIRST_LENGTHS.get(rank as usize) {
        return length as usize;
    }
    let hundredths = 180 + 45 * u64::from(rank.ilog2()) + 50;
    let spread = random.below(3) + random.below(3);
    ((hundredths / 100 + spread).saturating_sub(2) as usize).clamp(2, WORD_BYTES_MAX)
}

/// All words of one length, each returned once.
///
/// A word encodes a number whose digits alternate between consonants and vowels, so words are distinct
/// without comparisons. Numbers are visited by a golden-section step, so that words of adjacent ranks differ
/// and all first letters are about equally frequent.
struct Supply {
    length: usize,
    /// Number of words that start with a consonant; larger numbers start with a vowel.
    consonant_first: u64,
    words: u64,
    step: u64,
    next: u64,
    taken: u64,
}

impl Supply {
    fn new(length: usize) -> Self {
        let consonant_first = if length < 2 { 0 } else { count(length, false) };
        let words = consonant_first + count(length, true);
        let step = stride(words);
        Self {
            length,
            consonant_first,
            words,
            step,
            next: step / 2,
            taken: 0,
        }
    }

    /// Returns the next word, or `None` after the last one.
    fn take(&mut self) -> Option<Slot> {
        if self.taken == self.words {
            return None;
        }
        self.taken += 1;
        // The step and the number of words are coprime, so every number comes up once.
        self.next = (self.next + self.step) % self.words;
        let mut vowel = self.next >= self.consonant_first;
        let mut number = if vowel {
            self.next - self.consonant_first
        } else {
            self.next
        };
        let mut slot = [0; 16];
        for byte in &mut slot[..self.length] {
            let letters = if vowel { VOWELS } else { CONSONANTS };
            *byte = letters[(number % letters.len() as u64) as usize];
            number /= letters.len() as u64;
            vowel = !vowel;
        }
        slot[self.length] = b' ';
        slot[15] = self.length as u8 + 1;
        Some(slot)
    }
}

/// Returns the number of words of `length` that start with a vowel, or with a consonant.
fn count(length: usize, vowel: bool) -> u64 {
    let vowels = if vowel {
        length.div_ceil(2)
    } else {
        length / 2
    };
    (0..length).map(|index| if index < vowels { VOWELS.len() } else { CONSONANTS.len() } as u64).product()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Zipf;
    use std::collections::HashSet;

    #[test]
    fn vocabulary_words_are_distinct_lower_case_and_bounded() {
        let vocabulary = Vocabulary::new(200_000);
        let words: HashSet<&str> = (0..vocabulary.words())
            .map(|rank| vocabulary.word(rank))
            .collect();
        assert_eq!(words.len(), 200_000);
        for word in words {
            assert!((1..=WORD_BYTES_MAX).contains(&word.len()), "{word}");
            assert!(word.bytes().all(|byte| byte.is_ascii_lowercase()), "{word}");
        }
    }

    #[test]
    fn vocabulary_smaller_is_prefix_of_larger() {
        let small = Vocabulary::new(2);
        let large = Vocabulary::new(5000);
        assert!((0..2).all(|rank| small.word(rank) == large.word(rank)));
        assert_eq!((small.word(0).len(), small.word(1).len()), (2, 1));
    }

    #[test]
    fn supply_returns_every_word_once() {
        for (length, words) in [(1, 5), (2, 2 * 18 * 5), (3, 18 * 5 * 18 + 5 * 18 * 5)] {
            let mut supply = Supply::new(length);
            let all: HashSet<Slot> = std::iter::from_fn(|| supply.take()).collect();
            assert_eq!(all.len(), words, "length {length}");
        }
    }

    #[test]
    fn vocabulary_mean_used_length_is_about_five() {
        let vocabulary = Vocabulary::new(200_000);
        let zipf = Zipf::new(200_000, 1.05);
        let mut random = SplitMix::new(1, 1);
        let letters: usize = (0..100_000)
            .map(|_| vocabulary.word(zipf.rank(random.draw())).len())
            .sum();
        let mean = letters as f64 / 100_000.0;
        assert!((4.6..5.4).contains(&mean), "mean length in use {mean}");
    }
}

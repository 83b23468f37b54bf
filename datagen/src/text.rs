//! Lines of words with the frequencies of natural language, as `datagen text` writes them.
//!
//! Owns the meaning of `--bytes`, `--seed` and `--files`: how the text divides into chunks with seeds of
//! their own, and into part files at line ends. Words, frequencies and lines are modules of their own.

mod lines;
mod vocabulary;
mod zipf;

pub use vocabulary::{Vocabulary, WORD_BYTES_MAX};
pub use zipf::Zipf;

use crate::output::{self, OutputError, OutputSettings, Stream, Written};
use crate::random::SplitMix;
use lines::Lines;

/// The most words of a vocabulary: their table takes 24 bytes a word.
pub const VOCABULARY_MAX: u32 = 10_000_000;

/// The largest exponent; beyond it nearly all words are the first one.
pub const EXPONENT_MAX: f64 = 10.0;

/// Bytes that are made from one seed. Each chunk ends with a newline.
const CHUNK_BYTES: u64 = 64 * 1024;

/// What `datagen text` is asked for.
#[derive(Clone, Debug)]
pub struct TextSettings {
    /// How many bytes to write, newlines included.
    pub bytes: u64,
    /// How many different words there are, from 2 to [`VOCABULARY_MAX`].
    pub vocabulary: u32,
    /// The word of rank `r` is used in proportion to `r^-exponent`; from 0 to [`EXPONENT_MAX`].
    pub exponent: f64,
    /// Chooses one text of many.
    pub seed: u64,
    pub output: OutputSettings,
}

impl TextSettings {
    /// `bytes` of text with the standard vocabulary, exponent and seed.
    pub fn new(bytes: u64, output: OutputSettings) -> Self {
        Self { bytes, vocabulary: 200_000, exponent: 1.05, seed: 42, output }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// A vocabulary that cannot be had.
    #[error("vocabulary of {words} words asked for; choose 2 to {VOCABULARY_MAX}")]
    Vocabulary { words: u32 },
    /// An exponent that makes no distribution.
    #[error("exponent {exponent} asked for; choose 0 to {EXPONENT_MAX}")]
    Exponent { exponent: f64 },
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Writes exactly `bytes` bytes of text, the last of which is a newline.
///
/// The text depends on bytes, vocabulary, exponent and seed alone. Part `i` of `f` ends at the first line end
/// at or after byte `ceil(bytes * (i + 1) / f)`, so the parts in name order are the same text however many
/// there are.
///
/// # Errors
///
/// When the vocabulary or the exponent is out of range, and whatever [`OutputError`] names.
///
/// ```
/// use datagen::{output::OutputSettings, text::{self, TextSettings}};
/// let directory = tempfile::tempdir()?;
/// let output = OutputSettings::new(directory.path().join("in"));
/// let written = text::generate(&TextSettings { vocabulary: 1000, ..TextSettings::new(10_000, output) })?;
/// assert_eq!(std::fs::read_to_string(&written.files[0])?.len(), 10_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn generate(settings: &TextSettings) -> Result<Written, TextError> {
    let TextSettings { bytes, vocabulary, exponent, seed, .. } = *settings;
    if !(2..=VOCABULARY_MAX).contains(&vocabulary) {
        return Err(TextError::Vocabulary { words: vocabulary });
    }
    if !(0.0..=EXPONENT_MAX).contains(&exponent) {
        return Err(TextError::Exponent { exponent });
    }
    let files = settings.output.part_count()?;
    let lines = Lines { vocabulary: Vocabulary::new(vocabulary), zipf: Zipf::new(vocabulary, exponent) };
    let stream = TextStream { bytes, seed, lines };
    let ends = stream.part_ends(files);
    Ok(output::write(&stream, ends, &settings.output)?)
}

/// The whole text as one stream of bytes.
struct TextStream {
    bytes: u64,
    seed: u64,
    lines: Lines,
}

impl TextStream {
    /// Where each of `files` parts ends: found by making the chunks that hold the ends, a 64 KiB each.
    fn part_ends(&self, files: u64) -> Vec<u64> {
        let mut chunk = Vec::new();
        let mut chunk_start = None;
        let mut ends = Vec::new();
        for file in 1..=files {
            let goal = output::share(self.bytes, file, files);
            // A goal right behind a newline is an end already, so the search starts at the byte before it.
            let Some(before) = goal.checked_sub(1) else {
                ends.push(0);
                continue;
            };
            let start = before - before % CHUNK_BYTES;
            if chunk_start != Some(start) {
                chunk.resize(CHUNK_BYTES.min(self.bytes - start) as usize, 0);
                self.fill(start, &mut chunk);
                chunk_start = Some(start);
            }
            let line_end = chunk[(before - start) as usize..].iter().position(|&byte| byte == b'\n');
            ends.push(before + 1 + line_end.expect("a chunk ends with a newline") as u64);
        }
        ends
    }
}

impl Stream for TextStream {
    /// Eight chunks, about a quarter of a core's second-level cache.
    const UNIT_BYTES: u64 = 8 * CHUNK_BYTES;

    fn fill(&self, offset: u64, buffer: &mut [u8]) {
        for (index, chunk) in (offset / CHUNK_BYTES..).zip(buffer.chunks_mut(CHUNK_BYTES as usize)) {
            self.lines.fill(&mut SplitMix::of(self.seed, index), chunk);
        }
    }
}

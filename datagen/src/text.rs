//! Lines of words with the frequencies of natural language, as `datagen text` writes them.
//!
//! The text is made in chunks with separate seeds, so that threads make them independently; part files end at
//! line ends.

mod lines;
mod vocabulary;
mod zipf;

pub use vocabulary::{Vocabulary, WORD_BYTES_MAX};
pub use zipf::Zipf;

use crate::output::{self, OutputError, OutputSettings, Stream, WrittenFiles};
use crate::random::SplitMix;
use lines::Lines;

/// Largest number of words in a vocabulary; the table takes 24 bytes per word.
pub const VOCABULARY_MAX: u32 = 10_000_000;

/// Largest exponent; beyond it, nearly every word is the first one.
pub const EXPONENT_MAX: f64 = 10.0;

/// Bytes made from one seed. Each chunk ends with a newline.
const CHUNK_BYTES: u64 = 64 * 1024;

/// Settings of `datagen text`.
#[derive(Clone, Debug)]
pub struct TextSettings {
    /// Size of the text in bytes, newlines included.
    pub bytes: u64,
    /// Number of distinct words, from 2 to [`VOCABULARY_MAX`].
    pub vocabulary: u32,
    /// The word of rank `r` is used in proportion to `r^-exponent`; from 0 to [`EXPONENT_MAX`].
    pub exponent: f64,
    /// Random seed.
    pub seed: u64,
    pub output: OutputSettings,
}

impl TextSettings {
    /// `bytes` of text with the default vocabulary, exponent and seed.
    pub fn new(bytes: u64, output: OutputSettings) -> Self {
        Self {
            bytes,
            vocabulary: 200_000,
            exponent: 1.05,
            seed: 42,
            output,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TextError {
    #[error("invalid vocabulary size {words}; choose 2 to {VOCABULARY_MAX}")]
    Vocabulary { words: u32 },
    #[error("invalid exponent {exponent}; choose 0 to {EXPONENT_MAX}")]
    Exponent { exponent: f64 },
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Writes exactly `bytes` bytes of text that end with a newline.
///
/// The text depends only on the size, vocabulary, exponent and seed. Part `i` of `f` ends at the first line
/// end at or after byte `ceil(bytes * (i + 1) / f)`. The concatenated parts are the same text for any number
/// of files.
///
/// # Errors
///
/// Fails when the vocabulary or the exponent is out of range, and with any [`OutputError`].
///
/// ```
/// use datagen::{output::OutputSettings, text::{self, TextSettings}};
/// let directory = tempfile::tempdir()?;
/// let output = OutputSettings::new(directory.path().join("in"));
/// let written = text::generate(&TextSettings { vocabulary: 1000, ..TextSettings::new(10_000, output) })?;
/// assert_eq!(std::fs::read_to_string(&written.files[0])?.len(), 10_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn generate(settings: &TextSettings) -> Result<WrittenFiles, TextError> {
    let TextSettings {
        bytes,
        vocabulary,
        exponent,
        seed,
        ..
    } = *settings;
    if !(2..=VOCABULARY_MAX).contains(&vocabulary) {
        return Err(TextError::Vocabulary { words: vocabulary });
    }
    if !(0.0..=EXPONENT_MAX).contains(&exponent) {
        return Err(TextError::Exponent { exponent });
    }
    let files = settings.output.part_count()?;
    let lines = Lines {
        vocabulary: Vocabulary::new(vocabulary),
        zipf: Zipf::new(vocabulary, exponent),
    };
    let stream = TextStream { bytes, seed, lines };
    let ends = stream.part_ends(files);
    Ok(output::write(&stream, ends, &settings.output)?)
}

/// The text as one stream of bytes.
struct TextStream {
    bytes: u64,
    seed: u64,
    lines: Lines,
}

impl TextStream {
    /// Returns the end of each of `files` parts, found by making only the 64 KiB chunks that contain them.
    fn part_ends(&self, files: u64) -> Vec<u64> {
        let mut chunk = Vec::new();
        let mut chunk_start = None;
        let mut ends = Vec::new();
        for file in 1..=files {
            let goal = output::share(self.bytes, file, files);
            // A goal directly after a newline is a valid end, so the search starts one byte earlier.
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
            let line_end = chunk[(before - start) as usize..]
                .iter()
                .position(|&byte| byte == b'\n');
            ends.push(before + 1 + line_end.expect("a chunk ends with a newline") as u64);
        }
        ends
    }
}

impl Stream for TextStream {
    /// Eight chunks, about a quarter of a core's second-level cache.
    const UNIT_BYTES: u64 = 8 * CHUNK_BYTES;

    fn fill(&self, offset: u64, buffer: &mut [u8]) {
        for (index, chunk) in (offset / CHUNK_BYTES..).zip(buffer.chunks_mut(CHUNK_BYTES as usize))
        {
            self.lines.fill(&mut SplitMix::new(self.seed, index), chunk);
        }
    }
}

//! Records of the sort benchmark, as `datagen tera` writes them.
//!
//! Owns the meaning of `--records`, `--start` and `--files`: which record goes into which part. Record
//! layouts, the random sequence and the checksum are modules of their own; files and threads belong to
//! `output`.

mod checksum;
mod random;
mod record;

pub use checksum::Checksum;
pub use random::TeraRandom;
pub use record::{Format, write_record, write_records};

use crate::output::{self, OutputError, OutputSettings, Stream, Written};

/// Bytes of a record in every format.
pub const RECORD_BYTES: usize = 100;

/// Bytes of a record's key, at its start, compared as unsigned bytes.
pub const KEY_BYTES: usize = 10;

/// What `datagen tera` is asked for.
#[derive(Clone, Debug)]
pub struct TeraSettings {
    pub records: u64,
    /// The number of the first record; a set may be made in slices.
    pub start: u64,
    pub format: Format,
    pub output: OutputSettings,
}

#[derive(Debug, thiserror::Error)]
pub enum TeraError {
    /// The record numbers or the size would not fit in 64 bits.
    #[error("records {start} and the {records} after it are past the last record, number {}", MAX_RECORDS - 1)]
    TooManyRecords {
        /// The first record asked for.
        start: u64,
        records: u64,
    },
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// The largest record number plus one: byte offsets in the whole set fit in 64 bits.
const MAX_RECORDS: u64 = u64::MAX / RECORD_BYTES as u64;

/// Writes the records `start .. start + records` as part files that hold them in order.
///
/// Part `i` of `f` ends at row `ceil(records * (i + 1) / f)`, so the parts in name order are the same bytes
/// however many there are.
///
/// # Errors
///
/// When the numbers do not fit in 64 bits, and whatever [`OutputError`] names.
///
/// ```
/// use datagen::{output::OutputSettings, tera::{self, Format, TeraSettings}};
/// let directory = tempfile::tempdir()?;
/// let output = OutputSettings::new(directory.path().join("in"));
/// let written = tera::generate(&TeraSettings { records: 1000, start: 0, format: Format::Ascii, output })?;
/// assert_eq!(written.bytes, 100_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn generate(settings: &TeraSettings) -> Result<Written, TeraError> {
    let TeraSettings { records, start, format, .. } = *settings;
    if start.checked_add(records).is_none_or(|end| end > MAX_RECORDS) {
        return Err(TeraError::TooManyRecords { start, records });
    }
    let files = settings.output.part_count()?;
    let ends = (1..=files).map(|file| output::share(records, file, files) * RECORD_BYTES as u64).collect();
    Ok(output::write(&TeraStream { start, format }, ends, &settings.output)?)
}

/// The records from `start` on as one stream of bytes.
struct TeraStream {
    start: u64,
    format: Format,
}

impl Stream for TeraStream {
    /// About half of a core's second-level cache, whole records and whole pages: 125 pages of 4096 bytes.
    const UNIT_BYTES: u64 = 512_000;

    fn fill(&self, offset: u64, buffer: &mut [u8]) {
        write_records(self.format, self.start + offset / RECORD_BYTES as u64, buffer);
    }
}

//! Sort benchmark records, as `datagen tera` writes them.

mod random;
mod record;

pub use random::TeraRandom;
pub use record::{Format, write_record, write_records};

use crate::output::{self, OutputError, OutputSettings, Stream, WrittenFiles};
use std::fmt;
use std::ops::AddAssign;

/// Bytes of a record, in every format.
pub const RECORD_BYTES: usize = 100;

/// Bytes of the key at the start of a record, compared as unsigned bytes.
pub const KEY_BYTES: usize = 10;

/// Settings of `datagen tera`.
#[derive(Clone, Debug)]
pub struct TeraSettings {
    pub records: u64,
    /// Number of the first record; lets a set be made in slices.
    pub start: u64,
    pub format: Format,
    pub output: OutputSettings,
}

#[derive(Debug, thiserror::Error)]
pub enum TeraError {
    /// The record numbers or the size exceed 64 bits.
    #[error("too many records: {records} records from number {start} exceed the last number, {}", MAX_RECORDS - 1)]
    TooManyRecords { start: u64, records: u64 },
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Largest record number plus one; keeps byte offsets of the whole set within 64 bits.
const MAX_RECORDS: u64 = u64::MAX / RECORD_BYTES as u64;

/// Writes the records `start .. start + records` in order into part files.
///
/// Part `i` of `f` ends at row `ceil(records * (i + 1) / f)`. The concatenated parts are the same bytes for
/// any number of files.
///
/// # Errors
///
/// Fails when the record numbers do not fit in 64 bits, and with any [`OutputError`].
///
/// ```
/// use datagen::{output::OutputSettings, tera::{self, Format, TeraSettings}};
/// let directory = tempfile::tempdir()?;
/// let output = OutputSettings::new(directory.path().join("in"));
/// let written = tera::generate(&TeraSettings { records: 1000, start: 0, format: Format::Ascii, output })?;
/// assert_eq!(written.bytes, 100_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn generate(settings: &TeraSettings) -> Result<WrittenFiles, TeraError> {
    let TeraSettings {
        records,
        start,
        format,
        ..
    } = *settings;
    if start
        .checked_add(records)
        .is_none_or(|end| end > MAX_RECORDS)
    {
        return Err(TeraError::TooManyRecords { start, records });
    }
    let files = settings.output.part_count()?;
    let ends = (1..=files)
        .map(|file| output::share(records, file, files) * RECORD_BYTES as u64)
        .collect();
    Ok(output::write(
        &TeraStream { start, format },
        ends,
        &settings.output,
    )?)
}

/// Records from `start` as one stream of bytes.
struct TeraStream {
    start: u64,
    format: Format,
}

impl Stream for TeraStream {
    /// Whole records and whole pages (125 pages of 4096 bytes), about half of a core's second-level cache.
    const UNIT_BYTES: u64 = 512_000;

    fn fill(&self, offset: u64, buffer: &mut [u8]) {
        write_records(
            self.format,
            self.start + offset / RECORD_BYTES as u64,
            buffer,
        );
    }
}

/// Sum of the CRC-32 (as in zlib) of every record, in 128 bits, printed as hex without leading zeros.
///
/// Two sets of records with the same checksum are, for practical purposes, permutations of each other.
///
/// ```
/// let mut checksum = datagen::tera::Checksum::default();
/// checksum.add_record(b"123456789");
/// assert_eq!(checksum.to_string(), "cbf43926");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checksum(pub u128);

impl Checksum {
    #[inline]
    pub fn add_record(&mut self, record: &[u8]) {
        self.0 = self.0.wrapping_add(u128::from(crc32fast::hash(record)));
    }
}

impl AddAssign for Checksum {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:x}", self.0)
    }
}

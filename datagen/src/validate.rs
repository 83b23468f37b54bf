//! Whether records are in order, and which records they are, as `datagen validate` reports.
//!
//! Owns comparing neighbours within and across chunks and files, and adding up the checksum. Which files are
//! read is a module of its own.

mod inputs;

use crate::tera::{Checksum, Format, KEY_BYTES, RECORD_BYTES};
use crate::units;
use crate::watch::Watch;
use inputs::Chunk;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub type SortKey = [u8; KEY_BYTES];

#[derive(Clone, Debug, Default)]
pub struct ValidateSettings {
    /// Files, and directories that stand for their files in name order, those starting with `_` or `.` left
    /// out. The order of the records is checked across all of them as they are listed.
    pub inputs: Vec<PathBuf>,
    /// When given, a record without this format's fixed bytes is an error.
    pub format: Option<Format>,
    /// How many threads read; 0 is one per core.
    pub threads: usize,
    /// Tells how far the call is and can end it early.
    pub watch: Watch,
}

/// What the records are like. Equal keys next to each other are in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationReport {
    pub files: u64,
    pub records: u64,
    /// How many records have a smaller key than the record before them.
    pub unordered: u64,
    /// How many records have the same key as the record before them.
    pub duplicates: u64,
    /// The sum of the records' CRC-32, independent of their order.
    pub checksum: Checksum,
    /// The first record's key.
    pub first: Option<SortKey>,
    /// The last record's key.
    pub last: Option<SortKey>,
    /// The first record that is out of order.
    pub first_unordered: Option<RecordPosition>,
}

/// A record of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordPosition {
    pub file: PathBuf,
    /// Its number in that file, from 0.
    pub record: u64,
}

/// Why records could not be validated. That they are out of order is no error but part of the report.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// A directory without anything to read.
    #[error("directory {} holds no files to validate", directory.display())]
    NoFiles { directory: PathBuf },
    /// Something that cannot hold records.
    #[error("{} is not a regular file; name files, or a directory that holds only files", path.display())]
    NotFile { path: PathBuf },
    /// A file that ends inside a record.
    #[error("{} has {bytes} bytes, which is not a multiple of {RECORD_BYTES}: not whole records", path.display())]
    Length { path: PathBuf, bytes: u64 },
    #[error("{}, record {record}, is not in {format} format; name its format or leave --format out", path.display())]
    Malformed {
        path: PathBuf,
        /// The record's number in it, from 0.
        record: u64,
        format: Format,
    },
    /// The operating system refused.
    #[error("cannot read {}: {source}", path.display())]
    Refused { path: PathBuf, source: io::Error },
    /// The watcher stopped the call.
    #[error("interrupted")]
    Interrupted,
}

/// Validates `inputs` with one thread per core; see [`ValidateSettings`] for what they may be.
///
/// # Errors
///
/// See [`ValidateError`].
///
/// ```
/// use datagen::validate::validate;
/// let directory = tempfile::tempdir()?;
/// std::fs::write(directory.path().join("part-00000"), [b'x'; 200])?;
/// let report = validate(&[directory.path()], None)?;
/// assert_eq!((report.records, report.unordered, report.duplicates), (2, 0, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn validate<P: AsRef<Path>>(
    inputs: &[P],
    format: Option<Format>,
) -> Result<ValidationReport, ValidateError> {
    let inputs = inputs.iter().map(|input| input.as_ref().to_owned()).collect();
    validate_with(&ValidateSettings { inputs, format, ..ValidateSettings::default() })
}

/// [`validate`] with every setting.
///
/// # Errors
///
/// See [`ValidateError`].
pub fn validate_with(settings: &ValidateSettings) -> Result<ValidationReport, ValidateError> {
    let files = inputs::list(&settings.inputs)?;
    let chunks = inputs::chunks(&files);
    settings.watch.expect(files.iter().map(|file| file.bytes).sum());
    let step = |reader: &mut Reader, unit: u64| {
        // Units are indices of `chunks`, so they fit.
        let chunk = &chunks[unit as usize];
        let summary = reader.read(chunk, settings.format)?;
        reader.summaries.push((unit, summary));
        settings.watch.advance(chunk.length as u64);
        Ok(())
    };
    let units = chunks.len() as u64;
    let interrupted = || ValidateError::Interrupted;
    let (threads, watch) = (settings.threads, &settings.watch);
    let readers = units::run(threads, units, watch, interrupted, Reader::default, step)?;
    let mut summaries: Vec<_> = readers.into_iter().flat_map(|reader| reader.summaries).collect();
    summaries.sort_unstable_by_key(|&(unit, _)| unit);
    let mut report = ValidationReport { files: files.len() as u64, ..ValidationReport::default() };
    for (chunk, (_, summary)) in chunks.iter().zip(&summaries) {
        append(&mut report, chunk, summary);
    }
    Ok(report)
}

/// What one chunk, which is never empty, adds to the report.
struct Summary {
    records: u64,
    unordered: u64,
    duplicates: u64,
    checksum: Checksum,
    first: SortKey,
    last: SortKey,
    /// The first record that is out of order, by its number in the chunk.
    first_unordered: Option<u64>,
}

/// Adds the chunk that follows in the input, and compares the records on both sides of the boundary.
fn append(report: &mut ValidationReport, chunk: &Chunk<'_>, summary: &Summary) {
    let mut first_unordered = summary.first_unordered;
    match report.last {
        Some(last) if summary.first < last => {
            report.unordered += 1;
            first_unordered = Some(0);
        }
        Some(last) if summary.first == last => report.duplicates += 1,
        _ => {}
    }
    if report.first_unordered.is_none() {
        report.first_unordered = first_unordered.map(|record| RecordPosition {
            file: chunk.file.path.clone(),
            record: chunk.first_record() + record,
        });
    }
    report.records += summary.records;
    report.unordered += summary.unordered;
    report.duplicates += summary.duplicates;
    report.checksum += summary.checksum;
    report.first.get_or_insert(summary.first);
    report.last = Some(summary.last);
}

/// One thread's buffer and what it has found.
#[derive(Default)]
struct Reader {
    buffer: Vec<u8>,
    summaries: Vec<(u64, Summary)>,
}

impl Reader {
    fn read(&mut self, chunk: &Chunk<'_>, format: Option<Format>) -> Result<Summary, ValidateError> {
        let path = &chunk.file.path;
        let refused = |source| ValidateError::Refused { path: path.clone(), source };
        self.buffer.resize(chunk.length, 0);
        let file = File::open(path).map_err(refused)?;
        file.read_exact_at(&mut self.buffer, chunk.offset).map_err(refused)?;
        let (records, _) = self.buffer.as_chunks::<RECORD_BYTES>();
        if let Some(format) = format
            && let Some(index) = records.iter().position(|record| !format.recognises(record))
        {
            let record = chunk.first_record() + index as u64;
            return Err(ValidateError::Malformed { path: path.clone(), record, format });
        }
        Ok(summarise(records))
    }
}

/// Compares neighbours and adds checksums of at least one record.
fn summarise(records: &[[u8; RECORD_BYTES]]) -> Summary {
    let mut summary = Summary {
        records: records.len() as u64,
        unordered: 0,
        duplicates: 0,
        checksum: Checksum::default(),
        first: key(&records[0]),
        last: key(&records[records.len() - 1]),
        first_unordered: None,
    };
    let mut previous = ordinal(&records[0]);
    summary.checksum.add_record(&records[0]);
    for (index, record) in (1..).zip(&records[1..]) {
        summary.checksum.add_record(record);
        let current = ordinal(record);
        if current < previous {
            summary.unordered += 1;
            summary.first_unordered.get_or_insert(index);
        }
        summary.duplicates += u64::from(current == previous);
        previous = current;
    }
    summary
}

fn key(record: &[u8; RECORD_BYTES]) -> SortKey {
    let mut key = [0; KEY_BYTES];
    key.copy_from_slice(&record[..KEY_BYTES]);
    key
}

/// The key as a number of the same order: ten bytes compare in one or two instructions.
#[inline(always)]
fn ordinal(record: &[u8; RECORD_BYTES]) -> u128 {
    let mut bytes = [0; 16];
    bytes[6..].copy_from_slice(&record[..KEY_BYTES]);
    u128::from_be_bytes(bytes)
}

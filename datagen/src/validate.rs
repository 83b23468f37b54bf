//! Checks the order and the checksum of records, as `datagen validate` reports them. Records are compared
//! within and across chunks and files.

mod inputs;

use crate::tera::{Checksum, Format, KEY_BYTES, RECORD_BYTES};
use crate::units::Workers;
use crate::watch::Watch;
use inputs::Chunk;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub type SortKey = [u8; KEY_BYTES];

#[derive(Clone, Debug, Default)]
pub struct ValidateSettings {
    /// Files, or directories whose files are read in name order; names that start with `_` or `.` are
    /// skipped. The order of records is checked across all inputs.
    pub inputs: Vec<PathBuf>,
    /// Reports a record without this format's fixed bytes as an error.
    pub format: Option<Format>,
    /// Number of threads; 0 is one per core.
    pub threads: usize,
    /// Reports progress and stops the call early.
    pub watch: Watch,
}

/// Result of a validation. Adjacent equal keys are in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationReport {
    pub files: u64,
    pub records: u64,
    /// Number of records with a smaller key than the record before.
    pub unordered: u64,
    /// Number of records with the same key as the record before.
    pub duplicates: u64,
    /// Sum of the records' CRC-32, independent of their order.
    pub checksum: Checksum,
    /// Key of the first record.
    pub first: Option<SortKey>,
    /// Key of the last record.
    pub last: Option<SortKey>,
    /// First record that is out of order.
    pub first_unordered: Option<RecordPosition>,
}

/// Position of a record in the inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordPosition {
    pub file: PathBuf,
    /// Number of the record in the file, from 0.
    pub record: u64,
}

/// Error of a validation. Records out of order are not an error but part of the report.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// A directory without data files.
    #[error("directory {} has no files to validate; name another", directory.display())]
    NoFiles { directory: PathBuf },
    /// Neither a regular file nor a directory of files.
    #[error("{} is not a regular file; name files, or a directory that holds only files", path.display())]
    NotFile { path: PathBuf },
    /// A file that ends within a record.
    #[error("{} has {bytes} bytes, not a multiple of {RECORD_BYTES}; give files of whole records", path.display())]
    Length { path: PathBuf, bytes: u64 },
    #[error("{}, record {record}: not in {format} format; pass its format or omit --format", path.display())]
    Malformed {
        path: PathBuf,
        /// Number of the record in the file, from 0.
        record: u64,
        format: Format,
    },
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The call was stopped through [`Watch`].
    #[error("interrupted")]
    Interrupted,
}

/// Validates `inputs` with one thread per core; [`ValidateSettings::inputs`] describes the inputs.
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
    let inputs = inputs
        .iter()
        .map(|input| input.as_ref().to_owned())
        .collect();
    validate_with(&ValidateSettings {
        inputs,
        format,
        ..ValidateSettings::default()
    })
}

/// Validates records with all settings.
///
/// # Errors
///
/// See [`ValidateError`].
pub fn validate_with(settings: &ValidateSettings) -> Result<ValidationReport, ValidateError> {
    let files = inputs::list(&settings.inputs)?;
    let chunks = inputs::chunks(&files);
    settings
        .watch
        .expect(files.iter().map(|file| file.bytes).sum());
    let step = |reader: &mut Reader, unit: u64| {
        // Units are indices of `chunks`, so they fit in `usize`.
        let chunk = &chunks[unit as usize];
        let summary = reader.read(chunk, settings.format)?;
        reader.summaries.push((unit, summary));
        settings.watch.advance(chunk.length as u64);
        Ok(())
    };
    let workers = Workers {
        threads: settings.threads,
        units: chunks.len() as u64,
        watch: &settings.watch,
    };
    let readers = workers.run(|| ValidateError::Interrupted, Reader::default, step)?;
    let mut summaries: Vec<_> = readers
        .into_iter()
        .flat_map(|reader| reader.summaries)
        .collect();
    summaries.sort_unstable_by_key(|&(unit, _)| unit);
    let mut report = ValidationReport {
        files: files.len() as u64,
        ..ValidationReport::default()
    };
    for (chunk, (_, summary)) in chunks.iter().zip(&summaries) {
        append(&mut report, chunk, summary);
    }
    Ok(report)
}

/// Statistics of one chunk, which has at least one record.
struct Summary {
    records: u64,
    unordered: u64,
    duplicates: u64,
    checksum: Checksum,
    first: SortKey,
    last: SortKey,
    /// Number in the chunk of the first record that is out of order.
    first_unordered: Option<u64>,
}

/// Adds the next chunk to the report and compares the records on both sides of the boundary.
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

/// Buffer and results of one thread.
#[derive(Default)]
struct Reader {
    buffer: Vec<u8>,
    summaries: Vec<(u64, Summary)>,
}

impl Reader {
    fn read(
        &mut self,
        chunk: &Chunk<'_>,
        format: Option<Format>,
    ) -> Result<Summary, ValidateError> {
        let path = &chunk.file.path;
        let io_error = |source| ValidateError::Io {
            path: path.clone(),
            source,
        };
        self.buffer.resize(chunk.length, 0);
        let file = File::open(path).map_err(io_error)?;
        file.read_exact_at(&mut self.buffer, chunk.offset)
            .map_err(io_error)?;
        let (records, _) = self.buffer.as_chunks::<RECORD_BYTES>();
        if let Some(format) = format
            && let Some(index) = records.iter().position(|record| !format.matches(record))
        {
            let record = chunk.first_record() + index as u64;
            return Err(ValidateError::Malformed {
                path: path.clone(),
                record,
                format,
            });
        }
        Ok(summarize(records))
    }
}

/// Compares adjacent records and adds their checksums; there must be at least one record.
fn summarize(records: &[[u8; RECORD_BYTES]]) -> Summary {
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

/// Returns the key as a number with the same order, which compares in one or two instructions.
#[inline(always)]
fn ordinal(record: &[u8; RECORD_BYTES]) -> u128 {
    let mut bytes = [0; 16];
    bytes[6..].copy_from_slice(&record[..KEY_BYTES]);
    u128::from_be_bytes(bytes)
}

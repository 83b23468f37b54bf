//! Parquet files, in both directions. Pages are those of the parquet crate, and values those of serde_arrow; here is which
//! row groups belong to a range of a file, what of a footer is checked before it is relied on, and files whose bytes do not
//! depend on where their writer was interrupted.

mod bytes;
mod encoding;
mod groups;

use std::io;
use std::ops::Range;
use std::vec::IntoIter;

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use serde::Deserialize;
use serde_arrow::Deserializer;

use self::bytes::ParquetBytes;
pub use self::encoding::{MAGIC, PartWriter};
use self::groups::{Footer, Group, checked};
use crate::bytes::{ReadAt, ReadError, SharedBytes};
use crate::row::BadRow;

const ENCRYPTED: &[u8; 4] = b"PARE";
const OTHER_ROWS: &str = "it is damaged: a row group does not have as many rows as the footer says";

/// The rows of the row groups that begin in a range of a file.
pub struct ParquetFile {
    bytes: ParquetBytes,
    footer: Footer,
    batch_bytes: u64,
    /// Those that are not begun.
    groups: IntoIter<Group>,
    open: Option<OpenGroup>,
    /// Rows to pass over.
    skipped: u64,
    rows_before: u64,
    rows: u64,
}

/// The row group that is being read.
struct OpenGroup {
    group: Group,
    batches: ParquetRecordBatchReader,
    /// Rows that are still to come.
    left: u64,
}

/// Some rows of a row group.
pub struct Batch {
    /// Where the row group begins.
    offset: u64,
    batch: RecordBatch,
}

/// Decodes the rows of a batch.
pub struct Rows<'b> {
    offset: u64,
    rows: Deserializer<'b>,
}

/// Refuses bytes that do not begin and end as such a file.
pub fn check(bytes: &dyn ReadAt) -> Result<(), ReadError> {
    let bad = |offset, reason: &str| Err(ReadError::damaged(offset, reason));
    let length = bytes.length().map_err(ReadError::Unreadable)?;
    let read = |at| {
        let mut ends = [0; MAGIC.len()];
        match bytes.read_exact_at(&mut ends, at) {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(ReadError::Unreadable(error)),
            _ => Ok(ends),
        }
    };
    let end = length.saturating_sub(MAGIC.len() as u64);
    match (&read(0)?, &read(end)?) {
        _ if length == 0 => bad(0, "it is empty, where a parquet file has a footer at least; write it again"),
        (MAGIC, MAGIC) if end > 0 => Ok(()),
        (ENCRYPTED, _) | (_, ENCRYPTED) => bad(end, "it is encrypted, which is not read; decrypt it first"),
        (MAGIC, _) => {
            bad(length, "it does not end as a parquet file, so that it is incomplete; write it again")
        }
        _ => bad(0, "it does not begin as a parquet file"),
    }
}

impl ParquetFile {
    /// Opens the row groups in `range` of a file of `length` bytes for the columns that `T` names, and passes over the first
    /// `skipped` rows. About `batch_bytes` of rows are decoded at once.
    pub fn open<'de, T: Deserialize<'de>>(
        bytes: SharedBytes,
        length: u64,
        range: &Range<u64>,
        skipped: u64,
        batch_bytes: u64,
    ) -> Result<Self, ReadError> {
        check(&*bytes)?;
        let bytes = ParquetBytes::new(bytes).map_err(ReadError::Unreadable)?;
        let bad_footer = |reason| failed(&bytes, length, reason);
        let footer = Footer::read::<T>(&bytes).map_err(bad_footer)?;
        let groups = footer.groups(range, length).map_err(bad_footer)?;
        Ok(ParquetFile {
            bytes,
            footer,
            batch_bytes,
            groups: groups.list.into_iter(),
            open: None,
            skipped,
            rows_before: groups.rows_before,
            rows: groups.rows,
        })
    }

    /// The number of rows of the file before the range.
    pub fn rows_before(&self) -> u64 {
        self.rows_before
    }

    /// The number of rows in the range.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Reads the next rows that are not to be passed over.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, ReadError> {
        loop {
            if let Some(OpenGroup { group, batches, left }) = &mut self.open {
                let offset = group.offset;
                let batch = checked(|| batches.next().transpose());
                let batch = batch.map_err(|reason| failed(&self.bytes, offset, reason))?;
                let rows = batch.as_ref().map_or(0, |batch| batch.num_rows() as u64);
                if rows > *left || (batch.is_none() && *left > 0) {
                    return Err(failed(&self.bytes, offset, OTHER_ROWS.to_owned()));
                }
                *left -= rows;
                match batch {
                    Some(batch) => return Ok(Some(Batch { offset, batch })),
                    None => self.open = None,
                }
            }
            let Some(group) = self.groups.next() else { return Ok(None) };
            if group.rows <= self.skipped {
                self.skipped -= group.rows;
                continue;
            }
            let skipped = std::mem::take(&mut self.skipped);
            let batches = self.footer.open(self.bytes.clone(), group, skipped, self.batch_bytes);
            let batches = batches.map_err(|reason| failed(&self.bytes, group.offset, reason))?;
            self.open = Some(OpenGroup { group, batches, left: group.rows - skipped });
        }
    }
}

/// The error of the last read, if one has failed, and otherwise one of bytes that are not valid.
#[cold]
fn failed(bytes: &ParquetBytes, offset: u64, reason: String) -> ReadError {
    bytes.take_error().map_or_else(|| ReadError::damaged(offset, reason), ReadError::Unreadable)
}

impl Batch {
    /// The number of rows.
    pub fn count(&self) -> usize {
        self.batch.num_rows()
    }

    /// A decoder of the rows.
    pub fn rows(&self) -> Result<Rows<'_>, ReadError> {
        let rows = Deserializer::from_record_batch(&self.batch);
        let rows = rows.map_err(|error| ReadError::damaged(self.offset, reason(&error)))?;
        Ok(Rows { offset: self.offset, rows })
    }
}

impl Rows<'_> {
    /// The row of this number, which is below [`Batch::count`].
    pub fn get<'r, T: Deserialize<'r>>(&'r self, number: usize) -> Result<Result<T, BadRow>, ReadError> {
        let row = || self.rows.get(number).ok_or_else(|| ReadError::damaged(self.offset, OTHER_ROWS));
        match T::deserialize(row()?) {
            Ok(row) => Ok(Ok(row)),
            Err(error) => {
                let shown = serde_json::Value::deserialize(row()?);
                let row = shown.map(|row| row.to_string()).unwrap_or_default();
                Ok(Err(BadRow { row, reason: reason(&error) }))
            }
        }
    }
}

/// The message of serde_arrow without its first word.
fn reason(error: &serde_arrow::Error) -> String {
    let text = error.to_string();
    text.strip_prefix("Error: ").unwrap_or(&text).to_owned()
}

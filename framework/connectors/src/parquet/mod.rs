//! Parquet files, in both directions. The parquet crate handles pages, and serde_arrow values. This module
//! assigns row groups to splits, checks footers, and writes files whose bytes do not depend on interruptions.

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
use crate::strict;

const ENCRYPTED: &[u8; 4] = b"PARE";
const OTHER_ROWS: &str = "it is damaged: the rows of a row group do not match the footer";

/// The rows of the row groups that begin in a range of a file.
pub struct ParquetFile {
    bytes: ParquetBytes,
    footer: Footer,
    batch_bytes: u64,
    /// Row groups that are not open yet.
    groups: IntoIter<Group>,
    open: Option<OpenGroup>,
    /// Rows to skip.
    skipped: u64,
    rows_before: u64,
    rows: u64,
}

/// The current row group.
struct OpenGroup {
    group: Group,
    batches: ParquetRecordBatchReader,
    /// Remaining rows.
    left: u64,
}

/// Some rows of a row group.
pub struct Batch {
    /// Offset of the row group.
    offset: u64,
    batch: RecordBatch,
}

/// Decodes the rows of a batch.
pub struct Rows<'b> {
    offset: u64,
    rows: Deserializer<'b>,
}

/// Rejects files without the magic of Parquet at both ends.
pub fn check(bytes: &dyn ReadAt) -> Result<(), ReadError> {
    let bad = |offset, reason: &str| Err(ReadError::damaged(offset, reason));
    let length = bytes.length().map_err(ReadError::Unreadable)?;
    let read = |at| {
        let mut ends = [0; MAGIC.len()];
        match bytes.read_exact_at(&mut ends, at) {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                Err(ReadError::Unreadable(error))
            }
            _ => Ok(ends),
        }
    };
    let end = length.saturating_sub(MAGIC.len() as u64);
    match (&read(0)?, &read(end)?) {
        _ if length == 0 => bad(0, "an empty file is not a Parquet file; write it again"),
        (MAGIC, MAGIC) if end > 0 => Ok(()),
        (ENCRYPTED, _) | (_, ENCRYPTED) => bad(
            end,
            "it is encrypted, which is not supported; decrypt it first",
        ),
        (MAGIC, _) => bad(
            length,
            "it does not end as a Parquet file; it is incomplete, so write it again",
        ),
        _ => bad(0, "not a Parquet file"),
    }
}

impl ParquetFile {
    /// Opens the row groups that begin in `range` of a file of `length` bytes, for the columns that `T`
    /// names, and skips `skipped` rows. Decodes about `batch_bytes` at once.
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

    /// Returns the number of rows before the range.
    pub fn rows_before(&self) -> u64 {
        self.rows_before
    }

    /// Returns the number of rows in the range.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Reads the next rows that are not skipped.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, ReadError> {
        loop {
            if let Some(OpenGroup {
                group,
                batches,
                left,
            }) = &mut self.open
            {
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
            let Some(group) = self.groups.next() else {
                return Ok(None);
            };
            if group.rows <= self.skipped {
                self.skipped -= group.rows;
                continue;
            }
            let skipped = std::mem::take(&mut self.skipped);
            let batches = self
                .footer
                .open(self.bytes.clone(), group, skipped, self.batch_bytes);
            let batches = batches.map_err(|reason| failed(&self.bytes, group.offset, reason))?;
            self.open = Some(OpenGroup {
                group,
                batches,
                left: group.rows - skipped,
            });
        }
    }
}

/// Returns the error of the last failed read, or else an error for invalid bytes.
#[cold]
fn failed(bytes: &ParquetBytes, offset: u64, reason: String) -> ReadError {
    bytes
        .take_error()
        .map_or_else(|| ReadError::damaged(offset, reason), ReadError::Unreadable)
}

impl Batch {
    /// Returns the number of rows.
    pub fn count(&self) -> usize {
        self.batch.num_rows()
    }

    /// Returns a decoder of the rows.
    pub fn rows(&self) -> Result<Rows<'_>, ReadError> {
        let rows = Deserializer::from_record_batch(&self.batch);
        let rows = rows.map_err(|error| ReadError::damaged(self.offset, reason(&error)))?;
        Ok(Rows {
            offset: self.offset,
            rows,
        })
    }
}

impl Rows<'_> {
    /// Decodes the row with this number, which is below [`Batch::count`].
    pub fn get<'r, T: Deserialize<'r>>(
        &'r self,
        number: usize,
    ) -> Result<Result<T, BadRow>, ReadError> {
        let row = || {
            self.rows
                .get(number)
                .ok_or_else(|| ReadError::damaged(self.offset, OTHER_ROWS))
        };
        match strict::deserialize(row()?) {
            Ok(row) => Ok(Ok(row)),
            Err(error) => {
                let shown = serde_json::Value::deserialize(row()?);
                let row = shown.map(|row| row.to_string()).unwrap_or_default();
                Ok(Err(BadRow {
                    row,
                    reason: reason(&error),
                }))
            }
        }
    }
}

/// Returns the message of serde_arrow without its prefix.
fn reason(error: &serde_arrow::Error) -> String {
    let text = error.to_string();
    text.strip_prefix("Error: ").unwrap_or(&text).to_owned()
}

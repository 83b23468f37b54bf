//! Reading the row groups of a Parquet file.
//!
//! Owns positions, which count rows: the offset of a split and the rows of it that are done. Does
//! not own the footer (`groups`) nor pages, which are the parquet crate's, nor how columns become
//! values, which is serde_arrow's.

use std::io;
use std::marker::PhantomData;
use std::path::Path;
use std::vec::IntoIter;

use arrow_array::RecordBatch;
use napreduce_live::{ReadPosition, progress};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use serde::Deserialize;
use serde_arrow::Deserializer;

use super::super::TypedRow;
use super::super::bad::{BadRow, BadRowGate, RowPlace, bad_table};
use super::ParquetRows;
use super::bytes::ParquetBytes;
use super::groups::{Footer, Group, checked};
use crate::input::{BadRows, InputError, RecordReader, Split, open_input, open_path};
use napreduce_connectors::bytes::ReadAt;

const MAGIC: &[u8; 4] = b"PAR1";
const ENCRYPTED: &[u8; 4] = b"PARE";
/// Of the memory of the task, what the rows that are decoded at once may take, by what the footer says.
const BATCH_SHARE: usize = 8;

/// Reads [`ParquetRows`].
///
/// ```
/// use napreduce::input::{InputError, InputFormat, RecordReader, Split};
/// use napreduce::rows::{ParquetRowReader, ParquetRows};
/// use serde::de::IgnoredAny;
///
/// /// How many rows there are in a file.
/// fn count(path: &std::path::Path, length: u64) -> Result<u64, InputError> {
///     let split = Split::whole(path, length);
///     let mut reader: ParquetRowReader<IgnoredAny> = ParquetRows::<IgnoredAny>::default().open(&split, 1 << 20)?;
///     let mut rows = 0;
///     while reader.read_batch(&mut |_: IgnoredAny| -> Result<(), InputError> {
///         rows += 1;
///         Ok(())
///     })? {}
///     Ok(rows)
/// }
/// # let _ = count;
/// ```
pub struct ParquetRowReader<R> {
    file: ParquetBytes,
    footer: Footer,
    split: Split,
    gate: BadRowGate,
    batch_bytes: u64,
    /// Those that are not begun.
    groups: IntoIter<Group>,
    open: Option<OpenGroup>,
    /// Rows that are still to be passed over.
    skipped: u64,
    /// Rows of the file before the split.
    rows_before: u64,
    position: ReadPosition,
    ended: bool,
    row: PhantomData<fn() -> R>,
}

/// The row group that is being read.
struct OpenGroup {
    group: Group,
    batches: ParquetRecordBatchReader,
    /// Rows that are still to come.
    left: u64,
}

/// Refuses what does not begin and end as such a file.
pub(super) fn check(path: &Path) -> Result<(), InputError> {
    let file = open_path(path).map_err(|error| InputError::unreadable(path, error))?;
    check_ends(path, &*file)
}

fn check_ends(path: &Path, file: &dyn ReadAt) -> Result<(), InputError> {
    let unreadable = |error| InputError::unreadable(path, error);
    let bad = |offset, reason: &str| Err(bad_table(path, offset, reason.to_owned()));
    let length = file.length().map_err(unreadable)?;
    let read = |at| {
        let mut bytes = [0; MAGIC.len()];
        match file.read_exact_at(&mut bytes, at) {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(unreadable(error)),
            _ => Ok(bytes),
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

impl<R: TypedRow> ParquetRowReader<R> {
    pub(super) fn open(
        bad_rows: BadRows,
        split: &Split,
        offset: u64,
        memory: usize,
    ) -> Result<Self, InputError> {
        let unreadable = |error| InputError::unreadable(&split.path, error);
        let bytes = open_input(split, memory, false).map_err(unreadable)?;
        check_ends(&split.path, &*bytes)?;
        let file = ParquetBytes::new(bytes).map_err(unreadable)?;
        let bad_footer = |reason| {
            let trouble = file.take_trouble().map(unreadable);
            trouble.unwrap_or_else(|| bad_table(&split.path, split.file_length, reason))
        };
        let footer = Footer::read::<R>(&file).map_err(bad_footer)?;
        let groups = footer.groups(&(split.offset..split.end()), split.file_length).map_err(bad_footer)?;
        let position = ReadPosition::new(split.offset..split.offset + groups.rows, 0..split.length);
        position.set(offset);
        Ok(ParquetRowReader {
            file,
            footer,
            split: split.clone(),
            gate: BadRowGate::new(bad_rows, split, memory),
            batch_bytes: (memory / BATCH_SHARE) as u64,
            groups: groups.list.into_iter(),
            open: None,
            skipped: offset.saturating_sub(split.offset),
            rows_before: groups.rows_before,
            position,
            ended: false,
            row: PhantomData,
        })
    }

    #[cold]
    fn bad(&self, group: Group, reason: impl Into<String>) -> InputError {
        let path = &self.split.path;
        let trouble = self.file.take_trouble().map(|error| InputError::unreadable(path, error));
        trouble.unwrap_or_else(|| bad_table(path, group.offset, reason.into()))
    }

    /// Counts the rows of a batch, or the end of its row group; whether there are as many as there should be.
    fn take(&mut self, batch: Option<&RecordBatch>) -> bool {
        let Some(open) = &mut self.open else { return false };
        match batch {
            None => open.left == 0,
            Some(batch) => {
                let rows = batch.num_rows() as u64;
                let enough = rows <= open.left;
                open.left = open.left.saturating_sub(rows);
                enough
            }
        }
    }

    /// The next rows of the split that are not done.
    fn next_batch(&mut self) -> Result<Option<(Group, RecordBatch)>, InputError> {
        loop {
            if let Some(open) = &mut self.open {
                progress();
                let group = open.group;
                let batch = checked(|| open.batches.next().transpose());
                let batch = batch.map_err(|reason| self.bad(group, reason))?;
                match self.take(batch.as_ref()) {
                    true if batch.is_none() => self.open = None,
                    true => return Ok(batch.map(|batch| (group, batch))),
                    false => return Err(self.bad(group, OTHER_ROWS)),
                }
            }
            let Some(group) = self.groups.next() else {
                self.ended = true;
                return Ok(None);
            };
            if group.rows <= self.skipped {
                self.skipped -= group.rows;
                continue;
            }
            let skipped = std::mem::take(&mut self.skipped);
            let batches = self.footer.open(self.file.clone(), group, skipped, self.batch_bytes);
            let batches = batches.map_err(|reason| self.bad(group, reason))?;
            self.open = Some(OpenGroup { group, batches, left: group.rows - skipped });
        }
    }
}

const OTHER_ROWS: &str = "it is damaged: a row group does not have as many rows as the footer says";

/// What serde_arrow says, without its first word.
fn reason(error: &serde_arrow::Error) -> String {
    let text = error.to_string();
    text.strip_prefix("Error: ").unwrap_or(&text).to_owned()
}

impl<R: TypedRow> RecordReader<ParquetRows<R>> for ParquetRowReader<R> {
    fn read_batch<E: From<InputError>>(
        &mut self,
        each: &mut impl FnMut(R::Of<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let Some((group, batch)) = self.next_batch()? else { return Ok(false) };
        let rows =
            Deserializer::from_record_batch(&batch).map_err(|error| self.bad(group, reason(&error)))?;
        for number in 0..batch.num_rows() {
            let row = || rows.get(number).ok_or_else(|| self.bad(group, OTHER_ROWS));
            match R::Of::deserialize(row()?) {
                Ok(row) => each(row)?,
                Err(error) => {
                    let shown = serde_json::Value::deserialize(row()?);
                    let shown = shown.map(|row| row.to_string()).unwrap_or_default();
                    let place = RowPlace::Row(self.place());
                    self.gate.pass(BadRow { place, row: shown.as_bytes(), reason: reason(&error) })?;
                }
            }
            self.position.set(self.position.get() + 1);
        }
        Ok(true)
    }

    /// Counts rows, since those of a row group share its bytes.
    fn offset(&self) -> u64 {
        self.position.get()
    }

    fn place(&self) -> String {
        format!("row {}", self.rows_before + self.position.get() - self.split.offset + 1)
    }

    fn consumed(&self) -> u64 {
        if self.ended { self.split.length } else { self.position.bytes() }
    }

    fn position(&self) -> Option<ReadPosition> {
        Some(self.position.clone())
    }
}

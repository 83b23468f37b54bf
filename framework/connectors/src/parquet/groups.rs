//! The footer of a Parquet file: the columns of a row type, and the row groups of a split. Values that a
//! reader relies on are checked.

use std::fmt::Display;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Compression;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use serde::Deserialize;

use super::bytes::ParquetBytes;
use crate::columns::columns;

/// Maximum rows decoded at once.
const BATCH_ROWS: u64 = 1024;
/// Maximum columns in a message.
const NAMED_COLUMNS: usize = 8;

/// A footer and its selected columns.
pub(super) struct Footer {
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
}

/// A row group of a split.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    number: usize,
    /// Offset of its first byte.
    pub(super) offset: u64,
    pub(super) rows: u64,
}

/// The row groups of a split.
pub(super) struct Groups {
    pub(super) list: Vec<Group>,
    /// Rows of the file before them.
    pub(super) rows_before: u64,
    pub(super) rows: u64,
}

impl Footer {
    /// Reads the footer of a file and selects the columns of `T`.
    pub(super) fn read<'de, T: Deserialize<'de>>(file: &ParquetBytes) -> Result<Footer, String> {
        // Arrow's own types in the metadata are ignored; those of Parquet suffice.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = checked(|| ArrowReaderMetadata::load(file, options))?;
        let schema = metadata.parquet_schema();
        let held: Vec<&str> = schema
            .root_schema()
            .get_fields()
            .iter()
            .map(|field| field.name())
            .collect();
        let wanted = columns::<T>().filter(|wanted| !wanted.is_empty());
        let is_wanted = |name: &str| wanted.is_none_or(|wanted| wanted.contains(&name));
        let taken: Vec<usize> = (0..held.len()).filter(|at| is_wanted(held[*at])).collect();
        if taken.is_empty() {
            let dots = if held.len() > NAMED_COLUMNS {
                ", ..."
            } else {
                ""
            };
            return Err(format!(
                "it has none of the columns {} but {}{dots}; check the names",
                wanted.unwrap_or_default().join(", "),
                held[..held.len().min(NAMED_COLUMNS)].join(", ")
            ));
        }
        let mask = ProjectionMask::roots(schema, taken);
        Ok(Footer { metadata, mask })
    }

    /// Returns the row groups that begin in `range` of a file of `file_length` bytes.
    pub(super) fn groups(&self, range: &Range<u64>, file_length: u64) -> Result<Groups, String> {
        let mut groups = Groups {
            list: Vec::new(),
            rows_before: 0,
            rows: 0,
        };
        for (number, group) in self.metadata.metadata().row_groups().iter().enumerate() {
            let damaged =
                || format!("it is damaged: its footer is inconsistent about row group {number}");
            let rows = u64::try_from(group.num_rows()).map_err(|_| damaged())?;
            let offset = self.check(group, file_length)?.ok_or_else(damaged)?;
            let sum = if offset < range.start {
                &mut groups.rows_before
            } else {
                &mut groups.rows
            };
            if offset < range.end {
                *sum = sum
                    .checked_add(rows)
                    .filter(|rows| *rows < 1 << 62)
                    .ok_or_else(damaged)?;
            }
            if range.contains(&offset) {
                groups.list.push(Group {
                    number,
                    offset,
                    rows,
                });
            }
        }
        Ok(groups)
    }

    /// Checks the columns of a row group; returns its offset, or `None` if the footer is inconsistent.
    fn check(&self, group: &RowGroupMetaData, file_length: u64) -> Result<Option<u64>, String> {
        let mut first = None;
        for (leaf, column) in group.columns().iter().enumerate() {
            let Some(range) = chunk(column) else {
                return Ok(None);
            };
            if range.end > file_length {
                return Ok(None);
            }
            first = Some(first.unwrap_or(range.start).min(range.start));
            if !self.mask.leaf_included(leaf) {
                continue;
            }
            if column.file_path().is_some() {
                return Err("its columns are in other files; read those files".to_owned());
            }
            match column.compression() {
                Compression::ZSTD(_) if !cfg!(feature = "parquet-zstd") => {
                    return Err(format!(
                        "column {} is compressed with zstd; build this program with the feature parquet-zstd of \
                         napreduce, or write the file with snappy",
                        column.column_path().string()
                    ));
                }
                Compression::LZO => {
                    return Err(format!(
                        "column {} is compressed with lzo, which is not supported; write the file with snappy",
                        column.column_path().string()
                    ));
                }
                _ => {}
            }
        }
        Ok(first)
    }

    /// Opens a row group after `skipped` rows; decodes about `batch_bytes` at once.
    pub(super) fn open(
        &self,
        file: ParquetBytes,
        group: Group,
        skipped: u64,
        batch_bytes: u64,
    ) -> Result<ParquetRecordBatchReader, String> {
        let chunks = self
            .metadata
            .metadata()
            .row_group(group.number)
            .columns()
            .iter()
            .enumerate();
        let read = chunks.filter(|(leaf, _)| self.mask.leaf_included(*leaf));
        let bytes: u64 = read
            .map(|(_, chunk)| u64::try_from(chunk.uncompressed_size()).unwrap_or(0))
            .sum();
        let rows = batch_bytes
            .checked_div(bytes / group.rows.max(1))
            .unwrap_or(BATCH_ROWS);
        let skipped = usize::try_from(skipped).map_err(|error| error.to_string())?;
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
                .with_row_groups(vec![group.number])
                .with_projection(self.mask.clone())
                .with_batch_size(rows.clamp(1, BATCH_ROWS) as usize)
                .with_offset(skipped);
        checked(|| builder.build())
    }
}

/// Calls the parquet crate, which panics on some damaged bytes.
pub(super) fn checked<T, E: Display>(read: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(read) => read.map_err(|error| format!("it is damaged: {error}")),
        Err(panic) => {
            let message = panic.downcast_ref::<String>().map(String::as_str);
            let message = message
                .or(panic.downcast_ref::<&str>().copied())
                .unwrap_or("unknown error");
            Err(format!("it is damaged: {message}"))
        }
    }
}

/// Returns the range of a column; `None` if the footer is inconsistent. A dictionary precedes the data; some
/// writers use offset 0 if there is none.
fn chunk(column: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let data = column.data_page_offset();
    let start = column
        .dictionary_page_offset()
        .filter(|at| *at > 0 && *at < data)
        .unwrap_or(data);
    let start = u64::try_from(start).ok()?;
    let end = start.checked_add(u64::try_from(column.compressed_size()).ok()?)?;
    column
        .dictionary_page_offset()
        .is_none_or(|at| at >= 0)
        .then_some(start..end)
}

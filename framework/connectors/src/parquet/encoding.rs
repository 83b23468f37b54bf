//! Encoding of row groups and of the footer.
//!
//! The bytes do not depend on interruptions: a complete group is encoded at once, as its own file, whose
//! columns are then copied.

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::file::metadata::{
    FileMetaData, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataOptions,
    ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use serde::{Deserialize, Serialize};
use serde_arrow::ArrayBuilder;
use serde_arrow::schema::{SchemaLike, SerdeArrowSchema, TracingOptions};

/// The first and last bytes of a file.
pub const MAGIC: &[u8; 4] = b"PAR1";
/// Number of rows at which they are converted to columns.
const BATCH_ROWS: usize = 1024;
/// Bytes after the metadata in a footer: their length, and the magic.
const TAIL_BYTES: usize = 8;

/// A Parquet file that is being written.
pub struct PartWriter {
    encoded: Encoded,
    rows: OpenRows,
}

impl PartWriter {
    /// Creates a file of rows of type `T`, which begins with [`MAGIC`]. Fails if the type has no columns.
    pub fn new<'de, T: Deserialize<'de>>() -> Result<PartWriter, String> {
        let rows = OpenRows::of::<T>()?;
        Ok(PartWriter {
            encoded: Encoded::new(rows.none())?,
            rows,
        })
    }

    /// Adds a row. Appends a group to `out` after `group_rows` rows.
    pub fn push(
        &mut self,
        row: &impl Serialize,
        group_rows: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        self.rows.push(row)?;
        if self.rows.count() == group_rows {
            self.encoded.add_group(&self.rows.take()?, out)?;
        }
        Ok(())
    }

    /// Appends the state for [`restore`](PartWriter::restore).
    pub fn save(&mut self, state: &mut Vec<u8>) -> Result<(), String> {
        self.encoded.save(&self.rows.all()?, state)
    }

    /// Restores a saved state in a new writer of the same type.
    pub fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let rows = self.encoded.restore(state)?;
        self.rows.put_back(rows);
        Ok(())
    }

    /// Appends the last group and the footer.
    pub fn end(mut self, out: &mut Vec<u8>) -> Result<(), String> {
        self.encoded.add_group(&self.rows.take()?, out)?;
        self.encoded.end(out)
    }
}

/// The rows of the incomplete group.
struct OpenRows {
    batches: Vec<RecordBatch>,
    builder: ArrayBuilder,
    /// Rows in the builder.
    waiting: usize,
    /// Total rows.
    count: usize,
    /// An empty batch with all columns.
    none: RecordBatch,
}

impl OpenRows {
    /// Creates an empty group; fails if the type has no columns.
    fn of<'de, T: Deserialize<'de>>() -> Result<OpenRows, String> {
        let options = TracingOptions::default()
            .strings_as_large_utf8(false)
            .bytes_as_large_binary(false)
            .sequence_as_large_list(false)
            .map_as_struct(false)
            .enums_without_data_as_strings(true)
            .string_dictionary_encoding(false);
        let schema = SerdeArrowSchema::from_type::<T>(options);
        let schema = schema.map_err(|error| error.to_string())?;
        let mut builder = ArrayBuilder::new(schema).map_err(|error| error.to_string())?;
        let none = builder
            .to_record_batch()
            .map_err(|error| error.to_string())?;
        if none.num_columns() == 0 {
            return Err("it has no columns".to_owned());
        }
        Ok(OpenRows {
            batches: Vec::new(),
            builder,
            waiting: 0,
            count: 0,
            none,
        })
    }

    fn none(&self) -> &RecordBatch {
        &self.none
    }

    fn count(&self) -> usize {
        self.count
    }

    fn push(&mut self, row: &impl Serialize) -> Result<(), String> {
        self.builder.push(row).map_err(|error| error.to_string())?;
        self.waiting += 1;
        self.count += 1;
        if self.waiting == BATCH_ROWS {
            self.close_batch()
        } else {
            Ok(())
        }
    }

    fn close_batch(&mut self) -> Result<(), String> {
        self.waiting = 0;
        self.batches.push(
            self.builder
                .to_record_batch()
                .map_err(|error| error.to_string())?,
        );
        Ok(())
    }

    /// Returns the rows as one batch, so that the output does not depend on batches.
    fn all(&mut self) -> Result<RecordBatch, String> {
        self.close_batch()?;
        concat_batches(&self.none.schema(), &self.batches).map_err(|error| error.to_string())
    }

    /// Returns the rows as one batch and removes them.
    fn take(&mut self) -> Result<RecordBatch, String> {
        let all = self.all()?;
        self.batches.clear();
        self.count = 0;
        Ok(all)
    }

    /// Continues with the rows of an earlier attempt.
    fn put_back(&mut self, batches: Vec<RecordBatch>) {
        self.count = batches.iter().map(RecordBatch::num_rows).sum();
        self.batches = batches;
    }
}

/// The encoded part of a file.
struct Encoded {
    /// Metadata of a file without rows.
    file: FileMetaData,
    groups: Vec<RowGroupMetaData>,
    /// Bytes so far.
    bytes: u64,
}

/// The state in a checkpoint. Part files contain the complete groups.
struct WriterState {
    bytes: u64,
    /// A footer over the complete groups.
    footer: Vec<u8>,
    /// A file with the rows of the incomplete group.
    rows: Vec<u8>,
}

impl WriterState {
    /// Appends the number of bytes, the length of the footer, the footer and the rows.
    fn append_to(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.bytes.to_le_bytes());
        state.extend_from_slice(&(self.footer.len() as u64).to_le_bytes());
        state.extend_from_slice(&self.footer);
        state.extend_from_slice(&self.rows);
    }

    /// Returns `None` if the state is truncated.
    fn read(state: &[u8]) -> Option<WriterState> {
        let (bytes, rest) = state.split_first_chunk()?;
        let (footer_length, rest) = rest.split_first_chunk()?;
        let footer_length = usize::try_from(u64::from_le_bytes(*footer_length)).ok()?;
        let (footer, rows) = rest.split_at_checked(footer_length)?;
        let bytes = u64::from_le_bytes(*bytes);
        Some(WriterState {
            bytes,
            footer: footer.to_vec(),
            rows: rows.to_vec(),
        })
    }
}

impl Encoded {
    /// Creates a file with the columns of these rows.
    fn new(none: &RecordBatch) -> Result<Encoded, String> {
        let (_, metadata) = file_of(none, Types::Parquet)?;
        Ok(Encoded {
            file: metadata.file_metadata().clone(),
            groups: Vec::new(),
            bytes: MAGIC.len() as u64,
        })
    }

    /// Appends a group of these rows, if there are any.
    fn add_group(&mut self, rows: &RecordBatch, out: &mut Vec<u8>) -> Result<(), String> {
        let (file, metadata) = file_of(rows, Types::Parquet)?;
        let Some(group) = metadata.row_groups().first() else {
            return Ok(());
        };
        let end = group
            .columns()
            .iter()
            .map(|column| column.byte_range())
            .map(|(at, length)| at + length);
        let columns = &file[MAGIC.len()..end.max().unwrap_or_default() as usize];
        out.extend_from_slice(columns);
        let moved_by = self.bytes as i64 - MAGIC.len() as i64;
        self.groups.push(
            moved(group.clone(), moved_by, self.groups.len()).map_err(|error| error.to_string())?,
        );
        self.bytes += columns.len() as u64;
        Ok(())
    }

    fn footer(&self) -> Result<Vec<u8>, String> {
        let rows = self.groups.iter().map(RowGroupMetaData::num_rows).sum();
        let file = FileMetaData::new(
            self.file.version(),
            rows,
            self.file.created_by().map(str::to_owned),
            self.file.key_value_metadata().cloned(),
            self.file.schema_descr_ptr(),
            self.file.column_orders().cloned(),
        );
        let metadata = ParquetMetaDataBuilder::new(file)
            .set_row_groups(self.groups.clone())
            .build();
        let mut footer = Vec::new();
        let written = ParquetMetaDataWriter::new(&mut footer, &metadata).finish();
        written.map(|()| footer).map_err(|error| error.to_string())
    }

    /// Appends the footer.
    fn end(&self, out: &mut Vec<u8>) -> Result<(), String> {
        out.append(&mut self.footer()?);
        Ok(())
    }

    fn save(&self, rows: &RecordBatch, state: &mut Vec<u8>) -> Result<(), String> {
        let (rows, _) = file_of(rows, Types::Arrow)?;
        let saved = WriterState {
            bytes: self.bytes,
            footer: self.footer()?,
            rows,
        };
        saved.append_to(state);
        Ok(())
    }

    /// Restores a saved state; returns the rows of the incomplete group.
    fn restore(&mut self, state: &[u8]) -> Result<Vec<RecordBatch>, String> {
        let WriterState {
            bytes,
            footer,
            rows,
        } = WriterState::read(state).ok_or("the state of a Parquet writer is truncated")?;
        let metadata = metadata_of(&footer)?;
        self.bytes = bytes;
        self.groups = metadata.row_groups().to_vec();
        let rows = ParquetRecordBatchReader::try_new(Bytes::from(rows), BATCH_ROWS);
        let rows = rows.map_err(|error| error.to_string())?;
        rows.collect::<Result<_, _>>()
            .map_err(|error| error.to_string())
    }
}

/// The type information in a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Types {
    /// Parquet types, which every program reads.
    Parquet,
    /// Also Arrow types, so that columns round-trip exactly.
    Arrow,
}

/// Encodes rows as a file with one group, or with none if there are no rows.
fn file_of(rows: &RecordBatch, types: Types) -> Result<(Vec<u8>, ParquetMetaData), String> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(None)
        .set_max_row_group_bytes(None)
        .build();
    let options = ArrowWriterOptions::new().with_properties(properties);
    let options = options.with_skip_arrow_metadata(types == Types::Parquet);
    let mut file = Vec::new();
    let encode = || {
        let mut writer = ArrowWriter::try_new_with_options(&mut file, rows.schema(), options)?;
        writer.write(rows)?;
        writer.finish()
    };
    encode().map_err(|error| error.to_string())?;
    let metadata = metadata_of(&file)?;
    Ok((file, metadata))
}

/// Reads the metadata in a footer. Everything written passes through here, since a reader does not return all
/// that a writer knows.
fn metadata_of(bytes: &[u8]) -> Result<ParquetMetaData, String> {
    let cut = || "it ends too early".to_owned();
    let end = bytes.len().checked_sub(TAIL_BYTES).ok_or_else(cut)?;
    let length = bytes[end..]
        .first_chunk()
        .map_or(0, |length| u32::from_le_bytes(*length));
    let start = end.checked_sub(length as usize).ok_or_else(cut)?;
    let options = ParquetMetaDataOptions::new().with_encoding_stats_as_mask(false);
    let metadata =
        ParquetMetaDataReader::decode_metadata_with_options(&bytes[start..end], Some(&options));
    metadata.map_err(|error| error.to_string())
}

/// Returns the group with this number in another file, moved by `by` bytes.
fn moved(
    group: RowGroupMetaData,
    by: i64,
    number: usize,
) -> Result<RowGroupMetaData, parquet::errors::ParquetError> {
    let offset = group.file_offset();
    let mut group = group.into_builder();
    let columns = group.take_columns().into_iter().map(|column| {
        let data = column.data_page_offset();
        let dictionary = column.dictionary_page_offset();
        let column = column.into_builder().set_data_page_offset(data + by);
        column
            .set_dictionary_page_offset(dictionary.map(|at| at + by))
            .build()
    });
    let group = group.set_column_metadata(columns.collect::<Result<_, _>>()?);
    let group = match i16::try_from(number) {
        Ok(number) => group.set_ordinal(number.into()),
        Err(_) => group,
    };
    match offset {
        Some(offset) => group.set_file_offset(offset + by).build(),
        None => group.build(),
    }
}

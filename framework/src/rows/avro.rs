//! Rows of Avro container files, for input. The file format is in `napreduce_connectors::avro`.

use std::marker::PhantomData;
use std::path::Path;

use napreduce_connectors::avro::{self, AvroFile};
use napreduce_task::ReadPosition;

use super::TypedRow;
use super::bad::{BadRow, BadRowGate, RowPlace};
use crate::input::{InputError, InputFormat, RecordReader, Skip, Split, Splitting, container};

/// Rows of Avro container files as values of the serde type `R`; made by [`Job::avro`](crate::Job::avro).
///
/// A struct takes the fields that match its own by name; others are skipped. A union with null is an
/// `Option`, an enum a unit variant or a text. Logical types are ignored: a date is its number of days, a
/// decimal its bytes. Blocks may be in deflate, and in zstandard, snappy, bzip2 and xz with the features of
/// these names. A block belongs to the split that holds the first byte of the marker before it.
///
/// ```
/// use napreduce::rows::AvroRows;
/// use napreduce::testing::JobTest;
/// use napreduce::{Job, borrowed};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Word<'a> {
///     word: &'a str,
/// }
///
/// // A file with one block of two records, whose one field is a text.
/// let schema = br#"{"type":"record","name":"W","fields":[{"name":"word","type":"string"}]}"#;
/// let head = [b"Obj\x01\x02\x16avro.schema", &[schema.len() as u8 * 2 | 0x80, 1][..], schema, b"\0"].concat();
/// let file = [&head[..], b"a marker of 16 B", b"\x04\x0e\x04to\x06not", b"a marker of 16 B"].concat();
///
/// let words = || Job::input(AvroRows::<borrowed!(Word)>::default()).map_only(|row, out| out.emit(row.word, ()));
/// let test = JobTest::new(words).input(file);
/// assert_eq!(test.run().text(), "to\nnot\n");
/// test.assert_preemption_safe();
/// ```
pub struct AvroRows<R> {
    skip: Skip,
    row: PhantomData<fn() -> R>,
}

impl<R> Default for AvroRows<R> {
    fn default() -> Self {
        AvroRows {
            skip: Skip::default(),
            row: PhantomData,
        }
    }
}

impl<R: TypedRow> InputFormat for AvroRows<R> {
    type Record<'a> = R::Of<'a>;
    type Reader = AvroRowReader<R>;

    fn splitting(&self, _: &Path) -> Splitting {
        Splitting::Anywhere
    }

    fn check(&self, path: &Path) -> Result<(), InputError> {
        container::check(path, avro::check)
    }

    fn open_at(
        &self,
        split: &Split,
        offset: u64,
        memory: usize,
    ) -> Result<AvroRowReader<R>, InputError> {
        AvroRowReader::open(self.skip, split, offset, memory)
    }

    fn on_bad_input(&mut self, skip: Skip) {
        self.skip = skip;
    }
}

/// Reads [`AvroRows`].
pub struct AvroRowReader<R> {
    file: AvroFile,
    gate: BadRowGate,
    split: Split,
    memory: usize,
    position: ReadPosition,
    row: PhantomData<fn() -> R>,
}

impl<R: TypedRow> AvroRowReader<R> {
    fn open(skip: Skip, split: &Split, offset: u64, memory: usize) -> Result<Self, InputError> {
        let bytes = container::open(split, memory)?;
        let range = split.offset..split.end();
        let position = ReadPosition::new(range.clone(), 0..split.length);
        position.set(offset);
        let skipped = offset.saturating_sub(split.offset);
        let file = AvroFile::open(bytes, split.file_length, range, skipped, memory);
        Ok(AvroRowReader {
            file: file.map_err(|error| container::in_file(&split.path, memory, error))?,
            gate: BadRowGate::new(skip, split, memory),
            split: split.clone(),
            memory,
            position,
            row: PhantomData,
        })
    }
}

/// Describes the current row, counted in the split.
fn row_in_words(position: &ReadPosition, split: &Split) -> String {
    let number = position.get() - split.offset + 1;
    if split.offset == 0 {
        format!("row {number}")
    } else {
        format!("row {number} after byte {}", split.offset)
    }
}

impl<R: TypedRow> RecordReader<AvroRows<R>> for AvroRowReader<R> {
    fn read_batch<E: From<InputError>>(
        &mut self,
        each: &mut impl FnMut(R::Of<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let AvroRowReader {
            file,
            position,
            gate,
            split,
            memory,
            ..
        } = self;
        let in_file = |error| container::in_file(&split.path, *memory, error);
        let Some(mut rows) = file.next_block().map_err(in_file)? else {
            return Ok(false);
        };
        while let Some(row) = rows.next::<R::Of<'_>>().map_err(in_file)? {
            match row {
                Ok(row) => each(row)?,
                Err(bad) => {
                    let place = RowPlace::Row(row_in_words(position, split));
                    gate.pass(BadRow {
                        place,
                        row: bad.row.as_bytes(),
                        reason: bad.reason,
                    })?;
                }
            }
            position.set(position.get() + 1);
        }
        Ok(true)
    }

    /// Counts rows, since the rows of a block share its bytes.
    fn offset(&self) -> u64 {
        self.position.get()
    }

    fn place(&self) -> String {
        row_in_words(&self.position, &self.split)
    }

    fn consumed(&self) -> u64 {
        self.file.consumed()
    }

    fn position(&self) -> Option<ReadPosition> {
        Some(self.position.clone())
    }
}

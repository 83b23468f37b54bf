//! Reading the rows of Parquet files. A position is the offset of the split plus the number of rows read.

use std::marker::PhantomData;

use napreduce_connectors::parquet::ParquetFile;
use napreduce_task::{ReadPosition, progress};

use super::super::TypedRow;
use super::super::bad::{BadRow, BadRowGate, RowPlace};
use super::ParquetRows;
use crate::input::{InputError, RecordReader, Skip, Split, container};

/// A batch of decoded rows may take 1/8 of the task's memory, by the sizes in the footer.
const BATCH_SHARE: usize = 8;

/// Reads [`ParquetRows`].
pub struct ParquetRowReader<R> {
    file: ParquetFile,
    split: Split,
    gate: BadRowGate,
    position: ReadPosition,
    ended: bool,
    row: PhantomData<fn() -> R>,
}

impl<R: TypedRow> ParquetRowReader<R> {
    pub(super) fn open(
        skip: Skip,
        split: &Split,
        offset: u64,
        memory: usize,
    ) -> Result<Self, InputError> {
        let bytes = container::open(split, memory)?;
        let range = split.offset..split.end();
        let skipped = offset.saturating_sub(split.offset);
        let batch_bytes = (memory / BATCH_SHARE) as u64;
        let file =
            ParquetFile::open::<R::Of<'_>>(bytes, split.file_length, &range, skipped, batch_bytes);
        let file = file.map_err(|error| container::in_file(&split.path, memory, error))?;
        let position = ReadPosition::new(split.offset..split.offset + file.rows(), 0..split.length);
        position.set(offset);
        Ok(ParquetRowReader {
            file,
            split: split.clone(),
            gate: BadRowGate::new(skip, split, memory),
            position,
            ended: false,
            row: PhantomData,
        })
    }
}

impl<R: TypedRow> RecordReader<ParquetRows<R>> for ParquetRowReader<R> {
    fn read_batch<E: From<InputError>>(
        &mut self,
        each: &mut impl FnMut(R::Of<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        progress();
        let in_file = |error| container::in_file(&self.split.path, 0, error);
        let Some(batch) = self.file.next_batch().map_err(in_file)? else {
            self.ended = true;
            return Ok(false);
        };
        let rows = batch.rows().map_err(in_file)?;
        for number in 0..batch.count() {
            match rows.get::<R::Of<'_>>(number).map_err(in_file)? {
                Ok(row) => each(row)?,
                Err(bad) => {
                    let place = RowPlace::Row(self.place());
                    self.gate.pass(BadRow {
                        place,
                        row: bad.row.as_bytes(),
                        reason: bad.reason,
                    })?;
                }
            }
            self.position.set(self.position.get() + 1);
        }
        Ok(true)
    }

    /// Counts rows, since the rows of a group share its bytes.
    fn offset(&self) -> u64 {
        self.position.get()
    }

    fn place(&self) -> String {
        let number = self.file.rows_before() + self.position.get() - self.split.offset + 1;
        format!("row {number}")
    }

    fn consumed(&self) -> u64 {
        if self.ended {
            self.split.length
        } else {
            self.position.bytes()
        }
    }

    fn position(&self) -> Option<ReadPosition> {
        Some(self.position.clone())
    }
}

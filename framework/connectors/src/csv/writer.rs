//! Rows as lines of comma-separated values, by the csv crate.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// Writes each row as a line.
pub struct RowWriter {
    writer: csv::Writer<SharedBuffer>,
    lines: SharedBuffer,
    /// Fields of each row; `None` before the first one.
    width: Option<u32>,
    /// Whether this writer has written a row, with which it compares further ones.
    has_row: bool,
    delimiter: u8,
    quote: u8,
}

impl RowWriter {
    /// Creates a writer. Fields are quoted if necessary. With `header`, a line with the field names precedes
    /// the first row of a struct. `width` is the number of fields of earlier rows of the same file, if there are any.
    pub fn new(delimiter: u8, quote: u8, header: bool, width: Option<u32>) -> RowWriter {
        let lines = SharedBuffer::default();
        let mut builder = csv::WriterBuilder::new();
        builder
            .delimiter(delimiter)
            .quote(quote)
            .has_headers(header);
        let writer = builder.from_writer(lines.clone());
        RowWriter {
            writer,
            lines,
            width,
            has_row: false,
            delimiter,
            quote,
        }
    }

    /// Appends a row to `out` and returns the number of its fields. Fails for a row that is not one line of fields, such
    /// as one with a map, and for one with another number of fields than the rows before.
    pub fn write<T: Serialize + ?Sized>(
        &mut self,
        row: &T,
        out: &mut Vec<u8>,
    ) -> Result<u32, String> {
        self.writer
            .serialize(row)
            .map_err(|error| error.to_string())?;
        self.writer.flush().map_err(|error| error.to_string())?;
        let mut lines = self.lines.lock();
        if let (true, Some(width)) = (self.has_row, self.width) {
            out.append(&mut lines);
            return Ok(width);
        }
        let fields = fields_of(&lines, self.delimiter, self.quote);
        if let Some(width) = self.width.filter(|width| *width != fields) {
            return Err(format!(
                "it has {fields} fields, but the rows before it have {width}"
            ));
        }
        out.append(&mut lines);
        self.has_row = true;
        self.width = Some(fields);
        Ok(fields)
    }
}

/// Returns the number of fields of the last row.
fn fields_of(lines: &[u8], delimiter: u8, quote: u8) -> u32 {
    let mut builder = csv::ReaderBuilder::new();
    let mut reader = builder
        .has_headers(false)
        .delimiter(delimiter)
        .quote(quote)
        .from_reader(lines);
    let fields = reader
        .byte_records()
        .map_while(Result::ok)
        .last()
        .map_or(0, |row| row.len());
    u32::try_from(fields).unwrap_or(u32::MAX)
}

/// The buffer shared with the csv crate's writer, which owns its output.
#[derive(Debug, Default, Clone)]
struct SharedBuffer {
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl SharedBuffer {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

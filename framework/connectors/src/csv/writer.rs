//! Rows as lines of comma-separated values, by the csv crate.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// Writes each row as a line.
pub struct RowWriter {
    writer: csv::Writer<SharedBuffer>,
    lines: SharedBuffer,
}

impl RowWriter {
    /// Creates a writer. Fields are quoted if necessary. With `header`, a line with the field names precedes
    /// the first row of a struct.
    pub fn new(delimiter: u8, quote: u8, header: bool) -> RowWriter {
        let lines = SharedBuffer::default();
        let mut builder = csv::WriterBuilder::new();
        builder.delimiter(delimiter).quote(quote).has_headers(header);
        RowWriter { writer: builder.from_writer(lines.clone()), lines }
    }

    /// Appends a row to `out`. Fails for a row that is not one line of fields, such as one with a map.
    pub fn write<T: Serialize + ?Sized>(&mut self, row: &T, out: &mut Vec<u8>) -> Result<(), String> {
        self.writer.serialize(row).map_err(|error| error.to_string())?;
        self.writer.flush().map_err(|error| error.to_string())?;
        out.append(&mut self.lines.lock());
        Ok(())
    }
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

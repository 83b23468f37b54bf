//! Rows that are not of the job's type: they fail the job, or are skipped and counted.

#[cfg(feature = "csv")]
use std::path::Path;

use napreduce_protocol::printing::print_error;
use napreduce_task::{UserCounter, counter};

#[cfg(any(feature = "csv", feature = "json-lines"))]
use crate::input::Source;
use crate::input::{BAD_ROWS, InputError, Skip, Split, quoted};

#[cfg(any(feature = "csv", feature = "json-lines"))]
const READ_BYTES: usize = 64 << 10;

/// The handling of bad rows of one split.
pub(super) struct BadRowGate {
    skip: Skip,
    counter: UserCounter,
    split: Split,
    #[cfg(any(feature = "csv", feature = "json-lines"))]
    memory: usize,
}

/// A row that cannot be parsed: its position, its text and the problem.
pub(super) struct BadRow<'a> {
    pub(super) place: RowPlace,
    pub(super) row: &'a [u8],
    pub(super) reason: String,
}

/// The position of a row.
#[derive(Debug, Clone)]
pub(super) enum RowPlace {
    /// A line that begins at this offset.
    #[cfg(any(feature = "csv", feature = "json-lines"))]
    Offset(u64),
    /// As text.
    #[cfg(any(feature = "avro", feature = "csv", feature = "parquet"))]
    Row(String),
}

impl BadRowGate {
    pub(super) fn new(skip: Skip, split: &Split, memory: usize) -> Self {
        let _ = memory;
        BadRowGate {
            skip,
            counter: counter(BAD_ROWS),
            split: split.clone(),
            #[cfg(any(feature = "csv", feature = "json-lines"))]
            memory,
        }
    }

    /// Skips a bad row if the limit allows it, else fails.
    #[cold]
    pub(super) fn pass(&self, bad: BadRow<'_>) -> Result<(), InputError> {
        if let Err(most) = self.skip.check_one_more() {
            return Err(self.error(bad, most));
        }
        if self.counter.get() == 0 {
            print_error(format_args!(
                "{}: skipped a bad row at {}: {}; the row is {}; further ones are only counted, as {BAD_ROWS}",
                self.split.path.display(),
                self.place(bad.place),
                bad.reason,
                quoted(bad.row)
            ));
        }
        self.counter.add(1);
        Ok(())
    }

    fn error(&self, bad: BadRow<'_>, most: Option<u64>) -> InputError {
        InputError::BadRow {
            path: self.split.path.clone(),
            place: self.place(bad.place),
            reason: bad.reason,
            row: quoted(bad.row),
            most,
        }
    }

    /// Returns the error for a line in which a quoted field begins and does not end. It fails the job even if bad
    /// rows are skipped: the next lines may be parts of the field and cannot be distinguished from rows.
    #[cfg(feature = "csv")]
    #[cold]
    pub(super) fn unclosed_quote(&self, offset: u64, line: &[u8]) -> InputError {
        let reason = format!(
            "a quoted field does not end on its line ({}), which is {}; if fields contain newlines, use \
             multiline(); if quotes are ordinary characters, use quoting(false)",
            self.line(offset),
            quoted(line.trim_ascii_end())
        );
        bad_table(&self.split.path, offset, reason)
    }

    fn place(&self, place: RowPlace) -> String {
        match place {
            #[cfg(any(feature = "csv", feature = "json-lines"))]
            RowPlace::Offset(offset) => self.line(offset),
            #[cfg(any(feature = "avro", feature = "csv", feature = "parquet"))]
            RowPlace::Row(row) => row,
        }
    }

    /// Returns the line, counted from the start of the split, so that finding it takes no longer than reading
    /// the split.
    #[cfg(any(feature = "csv", feature = "json-lines"))]
    fn line(&self, offset: u64) -> String {
        match (self.newlines_before(offset), self.split.offset) {
            (Some(newlines), 0) => format!("line {}", newlines + 1),
            (Some(newlines), start) => {
                format!("byte {offset}, {newlines} lines after byte {start}")
            }
            (None, _) => format!("byte {offset}"),
        }
    }

    #[cfg(any(feature = "csv", feature = "json-lines"))]
    /// `None` if the file cannot be read again, which is not the error to report here.
    fn newlines_before(&self, offset: u64) -> Option<usize> {
        let mut source = Source::open(&self.split, self.split.offset, self.memory).ok()?;
        let mut left = offset.checked_sub(self.split.offset)?;
        let mut buffer = vec![0; READ_BYTES];
        let mut newlines = 0;
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(READ_BYTES).min(READ_BYTES);
            let read = source
                .read(&mut buffer[..wanted])
                .ok()
                .filter(|read| *read > 0)?;
            newlines += memchr::memchr_iter(b'\n', &buffer[..read]).count();
            left -= read as u64;
        }
        Some(newlines)
    }
}

/// Creates an error about the file as a whole.
#[cfg(feature = "csv")]
pub(super) fn bad_table(path: &Path, offset: u64, reason: String) -> InputError {
    InputError::BadTable {
        path: path.to_owned(),
        offset,
        reason,
    }
}

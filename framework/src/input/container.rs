//! Access to container files of rows for `napreduce_connectors`. Each read reports progress, since finding a
//! block can take long, and errors contain the name of the file.

use std::io;
use std::path::Path;
use std::sync::Arc;

use napreduce_connectors::bytes::{ReadAt, ReadError, SharedBytes};
use napreduce_protocol::{ByteSize, Split};
use napreduce_task::progress;

use super::error::InputError;
use super::opening::{open_input, open_path};

/// Opens the file of a split.
pub(crate) fn open(split: &Split, memory: usize) -> Result<SharedBytes, InputError> {
    let bytes = open_input(split, memory, false);
    Ok(Arc::new(Watched(bytes.map_err(|error| {
        InputError::unreadable(&split.path, error)
    })?)))
}

/// Checks the file at `path` in its current state.
pub(crate) fn check(
    path: &Path,
    check: impl FnOnce(&dyn ReadAt) -> Result<(), ReadError>,
) -> Result<(), InputError> {
    let bytes = open_path(path).map_err(|error| InputError::unreadable(path, error))?;
    check(&*bytes).map_err(|error| in_file(path, 0, error))
}

/// Adds the name of the file to an error; `memory` is that of the task.
#[cold]
pub(crate) fn in_file(path: &Path, memory: usize, error: ReadError) -> InputError {
    let bad = |path, offset, reason| InputError::BadTable {
        path,
        offset,
        reason,
    };
    match error {
        ReadError::TooLarge { offset, what } => {
            let memory = ByteSize::new(memory as u64);
            let reason = format!(
                "{what} is larger than {memory}, the memory of the task; raise --task-memory"
            );
            bad(path.to_owned(), offset, reason)
        }
        other => InputError::of_bytes(path, other, bad),
    }
}

struct Watched(SharedBytes);

impl ReadAt for Watched {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        progress();
        self.0.read_at(into, offset)
    }

    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }

    fn take_error(&self) -> Option<io::Error> {
        self.0.take_error()
    }
}

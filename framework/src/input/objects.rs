//! Objects in stores as inputs of formats. Sequential readers get read-ahead. A reader that jumps, like
//! Parquet's between columns, gets one stream per position.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use napreduce_connectors::bytes::{ReadAt, SharedBytes};
use napreduce_connectors::stores::{
    ObjectStream, ObjectUri, REQUEST_BYTES, StorageError, StoredObject, stat, take_figures,
};
use napreduce_protocol::{Counter, Counters, Split, lock};

/// Share of a task's memory for one request: two are in flight while a third is consumed.
const MEMORY_SHARE: u64 = 32;
/// Concurrent streams of an object.
const LANES: usize = 16;
/// Minimum size of a request.
const REQUEST_BYTES_MIN: u64 = 64 << 10;

/// Version and length of the objects to which inputs were expanded, so that planning need not look them up
/// again.
static FOUND: Mutex<Option<HashMap<PathBuf, (String, u64)>>> = Mutex::new(None);

/// Records the version and length of an object when the input is expanded.
pub(super) fn remember(path: &Path, version: &str, length: u64) {
    locked(&FOUND)
        .get_or_insert_default()
        .insert(path.to_owned(), (version.to_owned(), length));
}

/// Adds the bytes read from stores to the counters of the task.
pub(crate) fn count(counters: &Counters) {
    let figures = take_figures();
    counters.add(Counter::StorageReadRequests, figures.requests);
    counters.add(Counter::StorageReadBytes, figures.bytes);
    counters.add(Counter::StorageReadRetries, figures.retries);
}

/// Opens the object of a split in its version. With `reads_on` it is read ahead.
pub(super) fn open(split: &Split, memory: usize, reads_on: bool) -> io::Result<SharedBytes> {
    let Some(version) = &split.version else {
        // A split made by hand has no version: use the current one.
        let (version, _) = look_up(&split.path)?;
        return open(
            &Split {
                version: Some(version),
                ..split.clone()
            },
            memory,
            reads_on,
        );
    };
    let object = object(&split.path, version, split.file_length)?;
    let request_bytes = (memory as u64 / MEMORY_SHARE).clamp(REQUEST_BYTES_MIN, REQUEST_BYTES);
    let ahead = reads_on.then_some((split.offset.saturating_sub(1), split.end()));
    Ok(Arc::new(ObjectInput::new(object, ahead, request_bytes)))
}

/// Opens an object by name, in the recorded version if there is one.
pub(super) fn open_found(path: &Path) -> io::Result<SharedBytes> {
    let (version, length) = look_up(path)?;
    Ok(Arc::new(ObjectInput::new(
        object(path, &version, length)?,
        None,
        REQUEST_BYTES_MIN,
    )))
}

fn look_up(path: &Path) -> io::Result<(String, u64)> {
    if let Some(known) = locked(&FOUND).get_or_insert_default().get(path) {
        return Ok(known.clone());
    }
    let found = ObjectUri::parse(path)
        .and_then(|uri| stat(&uri))
        .map_err(io::Error::other)?;
    Ok((found.version, found.length))
}

fn object(path: &Path, version: &str, length: u64) -> io::Result<StoredObject> {
    let object =
        ObjectUri::parse(path).and_then(|uri| StoredObject::open(uri, version.to_owned(), length));
    object.map_err(io::Error::other)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    lock(mutex)
}

/// An open object.
struct ObjectInput {
    object: StoredObject,
    /// The range that is certainly read in full.
    ahead: Option<(u64, u64)>,
    request_bytes: u64,
    /// In order of last use.
    lanes: Mutex<Vec<ObjectStream>>,
    trouble: Mutex<Option<StorageError>>,
}

impl ObjectInput {
    fn new(object: StoredObject, ahead: Option<(u64, u64)>, request_bytes: u64) -> ObjectInput {
        let lanes = Mutex::new(Vec::new());
        let trouble = Mutex::new(None);
        ObjectInput {
            object,
            ahead,
            request_bytes,
            lanes,
            trouble,
        }
    }

    /// Returns the stream that is at `offset` or will reach it next.
    fn lane(&self, lanes: &mut Vec<ObjectStream>, offset: u64) -> ObjectStream {
        let serves =
            |lane: &ObjectStream| (lane.position()..=lane.requested_end()).contains(&offset);
        if let Some(at) = lanes.iter().position(serves) {
            return lanes.remove(at);
        }
        if lanes.len() == LANES {
            lanes.remove(0);
        }
        let object = self.object.clone();
        match self.ahead {
            Some((begin, end)) if (begin..end).contains(&offset) => {
                ObjectStream::new(object, offset, end, self.request_bytes)
            }
            _ => {
                let most = (self.request_bytes / LANES as u64).max(REQUEST_BYTES_MIN);
                ObjectStream::growing(object, offset, REQUEST_BYTES_MIN, most)
            }
        }
    }
}

impl ReadAt for ObjectInput {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset >= self.object.length() || into.is_empty() {
            return Ok(0);
        }
        let mut lanes = locked(&self.lanes);
        let mut lane = self.lane(&mut lanes, offset);
        let read = lane.skip_to(offset).and_then(|()| lane.read(into));
        lanes.push(lane);
        read.map_err(|error| {
            *locked(&self.trouble) = Some(error.clone());
            io::Error::other(error)
        })
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.object.length())
    }

    fn take_error(&self) -> Option<io::Error> {
        locked(&self.trouble).take().map(io::Error::other)
    }
}

//! A snapshot file: a header, then the coordinator's state as JSON in segments of bounded size. Memory for
//! writing and reading therefore does not grow with the cluster.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use napreduce_local::world::disk::{Disk, DiskFile, Opening};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::file::{MODE, read_header};
use super::frame::{self, FrameError, HEAD_BYTES};
use super::{Header, JournalError};

/// Extension of snapshots.
pub(super) const JSON: &str = "json";
/// Extension of snapshots of earlier versions, which are refused.
pub(super) const MESSAGE_PACK: &str = "msgpack";

/// Extension of a snapshot that is being written.
pub(super) const UNFINISHED: &str = "unfinished";

/// Bytes of every segment but the last.
const SEGMENT_BYTES: usize = 1 << 20;
/// First byte of a segment.
const MORE_FOLLOWS: u8 = 0;
const IS_LAST: u8 = 1;

/// Writes a snapshot atomically.
pub(super) fn write(
    disk: &dyn Disk,
    path: &Path,
    header: &Header,
    content: &impl Serialize,
) -> Result<(), JournalError> {
    let unfinished = path.with_extension(UNFINISHED);
    let write = || -> io::Result<()> {
        let mut file =
            BufWriter::new(disk.open(&unfinished, Opening::CreateOrEmpty { mode: MODE })?);
        let mut bytes = Vec::new();
        frame::push(&mut bytes, &serde_json::to_vec(header)?).map_err(io::Error::other)?;
        file.write_all(&bytes)?;
        let mut segments = SegmentWriter {
            file,
            segment: vec![MORE_FOLLOWS],
            frame: bytes,
        };
        serde_json::to_writer(&mut segments, content)?;
        let file = segments
            .finish()?
            .into_inner()
            .map_err(|error| error.into_error())?;
        file.sync_data()?;
        disk.rename(&unfinished, path)?;
        disk.sync_parent(path)
    };
    write().map_err(JournalError::io("write", path))
}

struct SegmentWriter<W> {
    file: W,
    segment: Vec<u8>,
    frame: Vec<u8>,
}

impl<W: Write> SegmentWriter<W> {
    fn put(&mut self) -> io::Result<()> {
        self.frame.clear();
        frame::push(&mut self.frame, &self.segment).map_err(io::Error::other)?;
        self.segment.truncate(1);
        self.file.write_all(&self.frame)
    }

    fn finish(mut self) -> io::Result<W> {
        self.segment[0] = IS_LAST;
        self.put()?;
        Ok(self.file)
    }
}

impl<W: Write> Write for SegmentWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(SEGMENT_BYTES - self.segment.len());
        self.segment.extend_from_slice(&bytes[..taken]);
        if self.segment.len() == SEGMENT_BYTES {
            self.put()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An opened snapshot whose header has been read.
#[derive(Debug)]
pub(crate) struct Snapshot {
    path: PathBuf,
    pub(super) header: Header,
    segments: SegmentReader,
}

impl Snapshot {
    pub(super) fn open(disk: &dyn Disk, path: &Path) -> Result<Snapshot, JournalError> {
        let file = disk
            .open(path, Opening::Read)
            .map_err(JournalError::io("read", path))?;
        let mut segments = SegmentReader::new(file);
        let header = match segments.frame(SEGMENT_BYTES) {
            Ok(header) => read_header(path, &header)?,
            Err(error) => return Err(segments.refusal(path, &error.to_string())),
        };
        Ok(Snapshot {
            path: path.to_owned(),
            header,
            segments,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the whole file; fails if it is damaged.
    pub(super) fn verify(self) -> Result<(), JournalError> {
        self.decode::<IgnoredAny>()?;
        Ok(())
    }

    /// Decodes the content; fails if data follows it.
    pub(crate) fn decode<T: DeserializeOwned>(mut self) -> Result<T, JournalError> {
        let mut decoder = serde_json::Deserializer::from_reader(&mut self.segments);
        let decoded = T::deserialize(&mut decoder);
        match decoded {
            Ok(content) if self.segments.is_at_end() => Ok(content),
            Ok(_) => Err(self
                .segments
                .refusal(&self.path, "data follows its content")),
            Err(error) => Err(self.segments.refusal(&self.path, &error.to_string())),
        }
    }
}

#[derive(Debug)]
struct SegmentReader {
    file: BufReader<Box<dyn DiskFile>>,
    /// The offset of the next frame.
    offset: u64,
    segment: Vec<u8>,
    read: usize,
    was_last: bool,
    /// The offset of a frame that cannot be read, and the reason.
    broken: Option<(u64, FrameError)>,
}

impl SegmentReader {
    fn new(file: Box<dyn DiskFile>) -> SegmentReader {
        SegmentReader {
            file: BufReader::new(file),
            offset: 0,
            segment: Vec::new(),
            read: 0,
            was_last: false,
            broken: None,
        }
    }
}

impl SegmentReader {
    /// Reads the next frame's payload.
    fn frame(&mut self, payload_bytes_max: usize) -> io::Result<Vec<u8>> {
        let began = self.offset;
        let frame = frame::read_from(&mut self.file, payload_bytes_max);
        match frame {
            Ok(payload) => {
                self.offset += (HEAD_BYTES + payload.len()) as u64;
                Ok(payload)
            }
            Err(error) => {
                self.broken = Some((began, error));
                Err(io::Error::other("a frame cannot be read"))
            }
        }
    }

    fn is_at_end(&mut self) -> bool {
        if !self.was_last || self.read < self.segment.len() {
            return false;
        }
        match self.file.read(&mut [0]) {
            Ok(bytes) => bytes == 0,
            Err(error) => {
                self.broken = Some((self.offset, FrameError::Io(error)));
                false
            }
        }
    }

    /// Returns the error of the frame that could not be read, or of content that is not valid.
    fn refusal(&mut self, path: &Path, otherwise: &str) -> JournalError {
        let (offset, what) = match self.broken.take() {
            Some((_, FrameError::Io(error))) => return JournalError::io("read", path)(error),
            Some((offset, FrameError::Damaged(what))) => (offset, what),
            None => (self.offset, otherwise.to_owned()),
        };
        JournalError::Damaged {
            path: path.to_owned(),
            offset,
            what,
        }
    }
}

impl Read for SegmentReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.read == self.segment.len() && !self.was_last {
            self.segment = self.frame(SEGMENT_BYTES)?;
            self.was_last = self.segment[0] == IS_LAST;
            self.read = 1;
        }
        let bytes = into.len().min(self.segment.len() - self.read);
        into[..bytes].copy_from_slice(&self.segment[self.read..self.read + bytes]);
        self.read += bytes;
        Ok(bytes)
    }
}

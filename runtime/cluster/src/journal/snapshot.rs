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
/// First byte of a segment that another one follows.
const MORE_FOLLOWS: u8 = 0;
/// First byte of the last segment.
const IS_LAST: u8 = 1;
/// Length of the first byte, before the content.
const MARKER_BYTES: usize = 1;

/// Writes a snapshot atomically.
pub(super) fn write(
    disk: &dyn Disk,
    path: &Path,
    header: &Header,
    content: &impl Serialize,
) -> Result<(), JournalError> {
    write_and_rename(disk, path, header, content).map_err(JournalError::io("write", path))
}

fn write_and_rename(
    disk: &dyn Disk,
    path: &Path,
    header: &Header,
    content: &impl Serialize,
) -> io::Result<()> {
    let unfinished = path.with_extension(UNFINISHED);
    let file = disk.open(&unfinished, Opening::CreateOrEmpty { mode: MODE })?;
    let mut file = BufWriter::new(file);
    let header = serde_json::to_vec(header)?;
    let mut frame = Vec::new();
    frame::push(&mut frame, &header).map_err(io::Error::other)?;
    file.write_all(&frame)?;
    let mut segments = SegmentWriter {
        file,
        segment: vec![MORE_FOLLOWS],
        frame,
    };
    serde_json::to_writer(&mut segments, content)?;
    let buffered = segments.finish()?;
    let file = buffered.into_inner().map_err(|error| error.into_error())?;
    file.sync_data()?;
    disk.rename(&unfinished, path)?;
    disk.sync_parent(path)
}

/// Writes bytes as segments, each of which is a frame.
struct SegmentWriter<W> {
    file: W,
    /// The segment that is being filled.
    segment: Vec<u8>,
    /// The buffer of a frame.
    frame: Vec<u8>,
}

impl<W: Write> SegmentWriter<W> {
    /// Writes the segment and begins the next one.
    fn write_segment(&mut self) -> io::Result<()> {
        self.frame.clear();
        frame::push(&mut self.frame, &self.segment).map_err(io::Error::other)?;
        self.segment.truncate(MARKER_BYTES);
        self.file.write_all(&self.frame)
    }

    fn finish(mut self) -> io::Result<W> {
        self.segment[0] = IS_LAST;
        self.write_segment()?;
        Ok(self.file)
    }
}

impl<W: Write> Write for SegmentWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(SEGMENT_BYTES - self.segment.len());
        self.segment.extend_from_slice(&bytes[..count]);
        if self.segment.len() == SEGMENT_BYTES {
            self.write_segment()?;
        }
        Ok(count)
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
        let header = match segments.read_frame() {
            Ok(payload) => read_header(path, &payload)?,
            Err(error) => return Err(segments.take_error(path, &error.to_string())),
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
        let content = match decoded {
            Ok(content) => content,
            Err(error) => return Err(self.segments.take_error(&self.path, &error.to_string())),
        };
        if !self.segments.is_at_end() {
            let reason = "data follows its content";
            return Err(self.segments.take_error(&self.path, reason));
        }
        Ok(content)
    }
}

/// Reads the bytes that a [`SegmentWriter`] has written.
#[derive(Debug)]
struct SegmentReader {
    file: BufReader<Box<dyn DiskFile>>,
    /// The offset of the next frame.
    offset: u64,
    segment: Vec<u8>,
    /// The position in the segment.
    position: usize,
    was_last: bool,
    /// Kept for `take_error`: `serde_json` reports an error without its offset in the file.
    broken: Option<BrokenFrame>,
}

/// A frame that cannot be read.
#[derive(Debug)]
struct BrokenFrame {
    offset: u64,
    error: FrameError,
}

impl SegmentReader {
    fn new(file: Box<dyn DiskFile>) -> SegmentReader {
        SegmentReader {
            file: BufReader::new(file),
            offset: 0,
            segment: Vec::new(),
            position: 0,
            was_last: false,
            broken: None,
        }
    }

    /// Reads the next frame's payload.
    fn read_frame(&mut self) -> io::Result<Vec<u8>> {
        match frame::read_from(&mut self.file, SEGMENT_BYTES) {
            Ok(payload) => {
                self.offset += (HEAD_BYTES + payload.len()) as u64;
                Ok(payload)
            }
            Err(error) => {
                self.break_at_offset(error);
                Err(io::Error::other("a frame cannot be read"))
            }
        }
    }

    /// Returns whether everything has been read and nothing follows in the file.
    fn is_at_end(&mut self) -> bool {
        if !self.was_last || self.position < self.segment.len() {
            return false;
        }
        match self.file.read(&mut [0]) {
            Ok(bytes) => bytes == 0,
            Err(error) => {
                self.break_at_offset(FrameError::Io(error));
                false
            }
        }
    }

    fn break_at_offset(&mut self, error: FrameError) {
        self.broken = Some(BrokenFrame {
            offset: self.offset,
            error,
        });
    }

    /// Returns the error of the broken frame; without one, of invalid content, which `reason` describes.
    fn take_error(&mut self, path: &Path, reason: &str) -> JournalError {
        let path = path.to_owned();
        let Some(BrokenFrame { offset, error }) = self.broken.take() else {
            return JournalError::Damaged {
                path,
                offset: self.offset,
                what: reason.to_owned(),
            };
        };
        match error {
            FrameError::Io(error) => JournalError::io("read", &path)(error),
            FrameError::Damaged(what) => JournalError::Damaged { path, offset, what },
        }
    }
}

impl Read for SegmentReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.position == self.segment.len() && !self.was_last {
            self.segment = self.read_frame()?;
            self.was_last = self.segment[0] == IS_LAST;
            self.position = MARKER_BYTES;
        }
        let unread = &self.segment[self.position..];
        let count = into.len().min(unread.len());
        into[..count].copy_from_slice(&unread[..count]);
        self.position += count;
        Ok(count)
    }
}

//! Reads a recording: all rows of a kind, a page of them, or those of a time.
//!
//! Owns finding the frames, by the trailer or without one, and what is said of those that cannot be read.
//! What it reads may be cut or made by anybody: nothing of it is believed before it is checked, and no length
//! is allocated that the file cannot fill.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::RangeInclusive;
use std::path::Path;

use napreduce_protocol::open_regular;

use super::trailer::{self, RecordedFrame};
use super::{
    BYTES_READ_MAX, FOOTER_BYTES, MAGIC, MAGIC_END, PREAMBLE_BYTES, RECORDING_VERSION, ROWS_READ_MAX,
    RecordingError, Row, TRAILER, frame,
};

/// So many damaged frames in a file without a trailer are no recording any more, but somebody's bytes.
const DAMAGED_FRAMES_MAX: u32 = 64;

/// A recording that is open.
#[derive(Debug)]
pub struct RecordingReader<R> {
    file: R,
    end: u64,
    frames: Vec<RecordedFrame>,
    remarks: Vec<String>,
}

impl RecordingReader<BufReader<File>> {
    /// Opens a regular file.
    pub fn open(path: &Path) -> Result<RecordingReader<BufReader<File>>, RecordingError> {
        RecordingReader::new(BufReader::new(open_regular(path)?))
    }
}

impl<R: Read + Seek> RecordingReader<R> {
    /// Finds the frames: by the trailer, or, when there is none, by going through the file.
    pub fn new(mut file: R) -> Result<RecordingReader<R>, RecordingError> {
        let end = file.seek(SeekFrom::End(0))?;
        if end < PREAMBLE_BYTES {
            return Err(RecordingError::NotARecording);
        }
        file.seek(SeekFrom::Start(0))?;
        let (mut magic, mut version) = ([0; MAGIC.len()], [0; 4]);
        file.read_exact(&mut magic)?;
        file.read_exact(&mut version)?;
        if magic != MAGIC {
            return Err(RecordingError::NotARecording);
        }
        match u32::from_le_bytes(version) {
            RECORDING_VERSION => {}
            other => return Err(RecordingError::Version(other)),
        }
        let mut reader = RecordingReader { file, end, frames: Vec::new(), remarks: Vec::new() };
        match reader.read_trailer() {
            Ok(frames) => reader.frames = frames,
            Err(RecordingError::Io(error)) => return Err(RecordingError::Io(error)),
            Err(_) => reader.scan()?,
        }
        Ok(reader)
    }

    /// The frames there are, in their order.
    pub fn frames(&self) -> &[RecordedFrame] {
        &self.frames
    }

    /// How many rows of a kind there are.
    pub fn count<T: Row>(&self) -> u64 {
        self.frames_of::<T>().fold(0, |all, frame| all.saturating_add(frame.rows))
    }

    /// What could not be read so far, for people.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Every row of a kind, in order; frames that cannot be read are left out, and a remark says so.
    pub fn all<T: Row>(&mut self) -> Vec<T> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        for frame in self.frames_of::<T>().collect::<Vec<_>>() {
            if bytes > BYTES_READ_MAX || frame.rows.saturating_add(rows.len() as u64) > ROWS_READ_MAX {
                self.remarks.push(format!("more than {} {} are too many at once", rows.len(), T::NAME));
                break;
            }
            match self.read_measured::<T>(&frame) {
                Ok((read, of_frame)) => {
                    rows.extend(read);
                    bytes += of_frame;
                }
                Err(error) => self.remark(&frame, T::NAME, &error),
            }
        }
        rows
    }

    /// At most `count` rows of a kind, behind the first `skip`; other frames are not read.
    pub fn page<T: Row>(&mut self, skip: u64, count: usize) -> Vec<T> {
        let (mut rows, mut before) = (Vec::new(), 0u64);
        for frame in self.frames_of::<T>().collect::<Vec<_>>() {
            let behind = before.saturating_add(frame.rows);
            if rows.len() < count && behind > skip {
                let within = usize::try_from(skip.saturating_sub(before)).unwrap_or(usize::MAX);
                let missing = count - rows.len();
                rows.extend(self.read_or_remark::<T>(&frame).into_iter().skip(within).take(missing));
            }
            before = behind;
        }
        rows
    }

    /// The rows of a kind that touch a time, in microseconds since 1970; frames of another time are not read.
    /// At most `count`.
    pub fn window<T: Row>(&mut self, times: RangeInclusive<u64>, count: usize) -> Vec<T> {
        let touches = |of: Option<(u64, u64)>| {
            of.is_none_or(|(first, last)| first <= *times.end() && *times.start() <= last)
        };
        let mut rows = Vec::new();
        for frame in self.frames_of::<T>().filter(|frame| touches(frame.times)).collect::<Vec<_>>() {
            if rows.len() >= count {
                break;
            }
            let missing = count - rows.len();
            let found = self.read_or_remark::<T>(&frame).into_iter();
            rows.extend(found.filter(|row| row.times().is_some_and(|of| touches(Some(of)))).take(missing));
        }
        rows
    }

    /// The rows of one frame.
    pub fn read<T: Row>(&mut self, recorded: &RecordedFrame) -> Result<Vec<T>, RecordingError> {
        Ok(self.read_measured(recorded)?.0)
    }

    /// With the bytes of its columns.
    fn read_measured<T: Row>(&mut self, recorded: &RecordedFrame) -> Result<(Vec<T>, usize), RecordingError> {
        let offset = recorded.offset;
        let (header, columns) = frame::read_columns(&mut self.file, offset, self.end)?;
        let damaged = |what: String| RecordingError::Damaged { offset, what };
        if header.kind != T::KIND || columns.rows() as u64 != recorded.rows {
            return Err(damaged("the trailer says something else of it".to_owned()));
        }
        Ok((T::read(&columns).map_err(damaged)?, columns.bytes()))
    }

    fn read_or_remark<T: Row>(&mut self, frame: &RecordedFrame) -> Vec<T> {
        match self.read(frame) {
            Ok(rows) => rows,
            Err(error) => {
                self.remark(frame, T::NAME, &error);
                Vec::new()
            }
        }
    }

    fn remark(&mut self, frame: &RecordedFrame, name: &str, error: &RecordingError) {
        self.remarks.push(format!("{} {name} are left out: {error}", frame.rows));
    }

    fn frames_of<T: Row>(&self) -> impl Iterator<Item = RecordedFrame> + '_ {
        self.frames.iter().copied().filter(|frame| frame.kind == T::KIND)
    }

    fn read_trailer(&mut self) -> Result<Vec<RecordedFrame>, RecordingError> {
        let missing = || RecordingError::Damaged { offset: self.end, what: "there is no trailer".to_owned() };
        let footer = self.end.checked_sub(FOOTER_BYTES).ok_or_else(missing)?;
        self.file.seek(SeekFrom::Start(footer))?;
        let (mut offset, mut magic) = ([0; 8], [0; MAGIC_END.len()]);
        self.file.read_exact(&mut offset)?;
        self.file.read_exact(&mut magic)?;
        if magic != MAGIC_END {
            return Err(missing());
        }
        let offset = u64::from_le_bytes(offset);
        let (header, columns) = frame::read_columns(&mut self.file, offset, footer)?;
        trailer::read(header.kind, &columns).map_err(|what| RecordingError::Damaged { offset, what })
    }

    /// Goes through a file without a trailer, and keeps what is whole.
    fn scan(&mut self) -> Result<(), RecordingError> {
        let mut offset = PREAMBLE_BYTES;
        let mut damaged = 0;
        while damaged < DAMAGED_FRAMES_MAX {
            let header = match frame::read_header(&mut self.file, offset, self.end) {
                Ok(header) => header,
                Err(RecordingError::Io(error)) => return Err(RecordingError::Io(error)),
                Err(_) => break,
            };
            match frame::read_columns(&mut self.file, offset, self.end) {
                Ok((_, _)) if header.kind == TRAILER => {}
                Ok((_, columns)) => {
                    let rows = columns.rows() as u64;
                    self.frames.push(RecordedFrame { kind: header.kind, offset, rows, times: None });
                }
                Err(RecordingError::Io(error)) => return Err(RecordingError::Io(error)),
                Err(_) => damaged += 1,
            }
            offset += header.frame_bytes();
        }
        let also = if damaged == 0 {
            String::new()
        } else {
            format!(", and {damaged} that are damaged are left out")
        };
        self.remarks.push(format!(
            "it has no valid trailer, so its writer was stopped or its end is lost; {} whole frames were found by going \
             through it{also}",
            self.frames.len()
        ));
        Ok(())
    }
}

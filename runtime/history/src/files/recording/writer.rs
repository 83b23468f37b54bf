//! Writes a recording, frame by frame.
//!
//! Owns how rows are shared out to frames, and the end of a file. Does not own under which name a file is
//! written.

use std::io::Write;

use super::columns::ColumnsWriter;
use super::trailer::{self, RecordedFrame};
use super::{
    FRAME_ROWS_MAX, FRAME_TEXT_BYTES, MAGIC, MAGIC_END, PREAMBLE_BYTES, RECORDING_VERSION, RecordingError,
    Row, TRAILER, frame,
};

/// A recording that is being written. Without `finish` it has no trailer, and readers say so.
#[derive(Debug)]
pub struct RecordingWriter<W> {
    out: W,
    offset: u64,
    frames: Vec<RecordedFrame>,
}

impl<W: Write> RecordingWriter<W> {
    /// Begins one.
    pub fn begin(mut out: W) -> Result<RecordingWriter<W>, RecordingError> {
        out.write_all(&MAGIC)?;
        out.write_all(&RECORDING_VERSION.to_le_bytes())?;
        Ok(RecordingWriter { out, offset: PREAMBLE_BYTES, frames: Vec::new() })
    }

    /// Adds rows behind those that were added before.
    pub fn add<T: Row>(&mut self, rows: &[T]) -> Result<(), RecordingError> {
        let mut rest = rows;
        while !rest.is_empty() {
            let mut text = 0;
            let fits = rest.iter().take(FRAME_ROWS_MAX).position(|row| {
                text += row.text_bytes();
                text > FRAME_TEXT_BYTES
            });
            // A row that is too long by itself has a frame of its own.
            let count = fits.unwrap_or(FRAME_ROWS_MAX).clamp(1, rest.len());
            let (rows, behind) = rest.split_at(count);
            self.add_frame(rows)?;
            rest = behind;
        }
        Ok(())
    }

    fn add_frame<T: Row>(&mut self, rows: &[T]) -> Result<(), RecordingError> {
        if self.frames.len() == FRAME_ROWS_MAX {
            return Err(RecordingError::TooLarge(format!("more than {FRAME_ROWS_MAX} frames")));
        }
        let mut columns = ColumnsWriter::new(rows.len());
        T::write(rows, &mut columns);
        let times = rows.iter().filter_map(T::times);
        let times = times.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)));
        let frame = RecordedFrame { kind: T::KIND, offset: self.offset, rows: rows.len() as u64, times };
        self.offset += frame::write(&mut self.out, T::KIND, columns)?;
        self.frames.push(frame);
        Ok(())
    }

    /// Hands on what was added.
    pub fn flush(&mut self) -> Result<(), RecordingError> {
        Ok(self.out.flush()?)
    }

    /// Writes the trailer; what was written to in return, which is neither flushed nor synced.
    pub fn finish(mut self) -> Result<W, RecordingError> {
        frame::write(&mut self.out, TRAILER, trailer::write(&self.frames))?;
        self.out.write_all(&self.offset.to_le_bytes())?;
        self.out.write_all(&MAGIC_END)?;
        Ok(self.out)
    }
}

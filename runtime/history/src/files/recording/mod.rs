//! Recordings: `.napt` files of rows that belong to one job, such as its attempts.
//!
//! Owns the form of the bytes, which web pages and other programs may read, too:
//!
//! ```text
//! file    = "NAPTREC1" version:u32 frame* trailer footer          every number is little-endian
//! frame   = length:u32 kind:u16 crc32c:u32 payload                length of the payload; crc of all but itself
//! payload = raw:u32 lz4                                           length of the columns, and their lz4 block
//! columns = length:u32 description column*                        JSON: rows, and name, type, bytes of each column
//! column  = present? values                                       a bit for each row where some have no value
//! trailer = a frame of kind 65535, whose rows are the frames: kind, offset, rows, first and last time
//! footer  = offset of the trailer:u64 "NAPTEND1"
//! ```
//!
//! A reader leaves out kinds and columns that it does not know, and takes columns that it misses for empty.
//! Types are `number` (a varint), `difference` (the varint of the zigzag of the difference from the value
//! before) and `text` (the varints of all lengths, then all bytes). Does not own what the rows are (`rows`)
//! nor which files there are (`store`).

mod columns;
mod frame;
mod reader;
#[cfg(test)]
mod tests;
mod trailer;
mod varint;
mod writer;

use std::io;

use thiserror::Error;

pub use columns::{Columns, ColumnsWriter};
pub use reader::RecordingReader;
pub use trailer::RecordedFrame;
pub use writer::RecordingWriter;

/// What a recording begins with.
const MAGIC: [u8; 8] = *b"NAPTREC1";
/// What a recording ends with that was written to its end.
const MAGIC_END: [u8; 8] = *b"NAPTEND1";
/// Version of the form; readers of one version read what later ones add within it.
const RECORDING_VERSION: u32 = 1;
/// Magic and version.
const PREAMBLE_BYTES: u64 = 12;
/// Offset of the trailer, and the last magic.
const FOOTER_BYTES: u64 = 16;
/// Rows of a frame at most.
pub const FRAME_ROWS_MAX: usize = 16_384;
/// Columns of a frame at most, before they are compressed; above it a reader takes a frame for damaged.
const FRAME_BYTES_MAX: usize = 64 << 20;
/// A frame is full when its rows have so much text.
const FRAME_TEXT_BYTES: usize = 1 << 20;
/// A text is cut behind so many bytes.
const TEXT_BYTES_MAX: usize = 16 << 20;
/// Rows of one kind that are read at one go, at most: a damaged or hostile file must not take all memory.
const ROWS_READ_MAX: u64 = 1 << 22;
/// Columns of one kind that are read at one go, at most about; what clients are answered is smaller.
const BYTES_READ_MAX: usize = 256 << 20;
/// The kind of the trailer.
const TRAILER: u16 = u16::MAX;

/// Why a recording, or a part of it, cannot be written or read.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// The storage does not do it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is something else, or was cut within its first bytes.
    #[error("it is not a recording: it does not begin with NAPTREC1")]
    NotARecording,
    /// A later program wrote it.
    #[error("it has version {0}, and this program reads {RECORDING_VERSION}")]
    Version(u32),
    /// Bytes are not what was written.
    #[error("the frame at byte {offset} is damaged: {what}")]
    Damaged {
        /// Where the frame begins.
        offset: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A row cannot be written.
    #[error("cannot be written: {0}")]
    TooLarge(String),
}

/// Rows of one kind, as columns and back.
pub trait Row: Sized {
    /// The number of the kind in files.
    const KIND: u16;
    /// What rows of it are called in messages.
    const NAME: &'static str;

    /// When it begins and ends, in microseconds since 1970; both are the same for a moment.
    fn times(&self) -> Option<(u64, u64)> {
        None
    }

    /// How much text it has, about.
    fn text_bytes(&self) -> usize {
        0
    }

    /// Rows as columns; there are at most `FRAME_ROWS_MAX`.
    fn write(rows: &[Self], columns: &mut ColumnsWriter);

    /// The rows of columns that a file has, or which of them makes no sense.
    fn read(columns: &Columns) -> Result<Vec<Self>, String>;
}

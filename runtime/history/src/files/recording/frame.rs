//! Frames: columns compressed, with a checksum, each readable alone.
//!
//! Owns the header of a frame and its bounds. Does not own what is in the columns.

use std::io::{self, Read, Seek, SeekFrom, Write};

use super::columns::{Columns, ColumnsWriter};
use super::{FRAME_BYTES_MAX, RecordingError};

/// Length, kind, checksum.
pub(super) const HEADER_BYTES: u64 = 10;
/// The length before compression, which the payload begins with.
const RAW_BYTES: usize = 4;
/// A byte of an lz4 block stands for so many bytes at most.
const RATIO_MAX: usize = 255;
/// Compression may make what cannot be compressed a little longer.
const PAYLOAD_BYTES_MAX: usize = FRAME_BYTES_MAX + FRAME_BYTES_MAX / RATIO_MAX + 64;

/// A frame's kind and the length of its payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    pub(super) length: u32,
    pub(super) kind: u16,
    checksum: u32,
}

impl Header {
    /// Where the frame behind begins, seen from where this one does.
    pub(super) fn frame_bytes(self) -> u64 {
        HEADER_BYTES + u64::from(self.length)
    }

    fn begins(self) -> [u8; 6] {
        let mut bytes = [0; 6];
        bytes[..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4..].copy_from_slice(&self.kind.to_le_bytes());
        bytes
    }
}

/// Writes a frame; how many bytes that were.
pub(super) fn write(out: &mut impl Write, kind: u16, columns: ColumnsWriter) -> Result<u64, RecordingError> {
    let columns = columns.into_bytes().map_err(RecordingError::TooLarge)?;
    let payload = lz4_flex::block::compress_prepend_size(&columns);
    let length = u32::try_from(payload.len()).map_err(|error| RecordingError::TooLarge(error.to_string()))?;
    let header = Header { length, kind, checksum: 0 };
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&header.begins()), &payload);
    out.write_all(&header.begins())?;
    out.write_all(&checksum.to_le_bytes())?;
    out.write_all(&payload)?;
    Ok(header.frame_bytes())
}

/// The header of the frame at `offset`, which ends before `end`.
pub(super) fn read_header(
    file: &mut (impl Read + Seek),
    offset: u64,
    end: u64,
) -> Result<Header, RecordingError> {
    let damaged = |what: &str| RecordingError::Damaged { offset, what: what.to_owned() };
    let room = end.checked_sub(offset).filter(|room| *room >= HEADER_BYTES);
    let room = room.ok_or_else(|| damaged("it is cut"))?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = [0; HEADER_BYTES as usize];
    file.read_exact(&mut bytes).map_err(|error| cut(offset, error))?;
    let [l0, l1, l2, l3, k0, k1, c0, c1, c2, c3] = bytes;
    let header = Header {
        length: u32::from_le_bytes([l0, l1, l2, l3]),
        kind: u16::from_le_bytes([k0, k1]),
        checksum: u32::from_le_bytes([c0, c1, c2, c3]),
    };
    let lengths = RAW_BYTES..=PAYLOAD_BYTES_MAX;
    if header.frame_bytes() > room || !lengths.contains(&(header.length as usize)) {
        return Err(damaged("it is cut, or its length is wrong"));
    }
    Ok(header)
}

/// The columns of the frame at `offset`; nothing is allocated that its header, checked against the file, does
/// not ask for.
pub(super) fn read_columns(
    file: &mut (impl Read + Seek),
    offset: u64,
    end: u64,
) -> Result<(Header, Columns), RecordingError> {
    let header = read_header(file, offset, end)?;
    let mut payload = vec![0; header.length as usize];
    file.read_exact(&mut payload).map_err(|error| cut(offset, error))?;
    let damaged = |what: String| RecordingError::Damaged { offset, what };
    if crc32c::crc32c_append(crc32c::crc32c(&header.begins()), &payload) != header.checksum {
        return Err(damaged("its checksum is wrong".to_owned()));
    }
    let (raw, block) = payload.split_first_chunk::<RAW_BYTES>().ok_or_else(|| damaged("it is cut".into()))?;
    let raw = u32::from_le_bytes(*raw) as usize;
    if raw > FRAME_BYTES_MAX || raw > block.len().saturating_mul(RATIO_MAX) {
        return Err(damaged(format!("it says that it has {raw} bytes, more than it can have")));
    }
    let mut columns = vec![0; raw];
    let written =
        lz4_flex::block::decompress_into(block, &mut columns).map_err(|error| damaged(error.to_string()))?;
    if written != raw {
        return Err(damaged(format!("it has {written} bytes, and says {raw}")));
    }
    Ok((header, Columns::parse(columns).map_err(damaged)?))
}

/// A file that ends early is damaged; anything else is the storage's.
fn cut(offset: u64, error: io::Error) -> RecordingError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => RecordingError::Damaged { offset, what: "it is cut".to_owned() },
        _ => RecordingError::Io(error),
    }
}

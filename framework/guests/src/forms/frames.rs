//! Frames: the binary form in which sealed blocks of maps, and reports, pass opaquely through an engine.
//!
//! ```text
//! u32 partition, u32 map, u32 number, u32 length     big-endian; the order of the first 12 bytes is
//!                                                    that of partition, map and number
//! length bytes                                       number 0: the extent; then chunks; partition FFFFFFFF: a report
//! ```

use std::io::{self, Read, Write};

/// Maximum length of a chunk of blocks that a map writes.
pub const GUEST_CHUNK_BYTES: usize = 1 << 20;
/// Maximum length of a frame when reading: an extent describes each block, and other programs may write
/// longer chunks.
pub const GUEST_FRAME_BYTES_MAX: u32 = 64 << 20;
/// The partition of reports, after all others.
const REPORT: u32 = u32::MAX;
const HEADER_BYTES: usize = 16;

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GuestFrame {
    pub partition: u32,
    pub map: u32,
    pub number: u32,
    pub length: u32,
}

/// A violated rule about frames.
#[derive(Debug, thiserror::Error)]
pub enum GuestFrameError {
    #[error("cannot read frames: {0}")]
    Io(#[from] io::Error),
    #[error("cut short: {missing} bytes of a frame are missing")]
    CutShort { missing: u64 },
    #[error("too long: a frame of {length} bytes (limit {GUEST_FRAME_BYTES_MAX})")]
    TooLong { length: u32 },
    #[error("other partition: a frame of map {map} is for partition {found} instead of {own}")]
    OtherPartition { map: u32, found: u32, own: u32 },
    #[error("unknown map: a frame of map {map} in a job of {maps} maps")]
    UnknownMap { map: u32, maps: u32 },
    #[error("missing extent: the first frame of map {map} is number {found}")]
    MissingExtent { map: u32, found: u32 },
    #[error("second extent: map {map} already sent one")]
    SecondExtent { map: u32 },
    #[error("missing frame: number {found} of map {map} instead of {expected}")]
    MissingFrame { map: u32, found: u32, expected: u32 },
    #[error("frame after report: frame {number} of map {map}")]
    AfterReport { map: u32, number: u32 },
    #[error("second report: map {map} already sent one")]
    SecondReport { map: u32 },
    #[error("other report: map {map} reports to reduce {taker} instead of {own}")]
    OtherReport { map: u32, taker: u32, own: u32 },
    #[error("missing report: map {map} sent none")]
    MissingReport { map: u32 },
    #[error("bad extent: map {map}: {why}")]
    BadExtent { map: u32, why: String },
    #[error("bad block: map {map}: {why}")]
    BadBlock { map: u32, why: String },
    #[error("bad report: map {map}: {why}")]
    BadReport { map: u32, why: String },
}

impl GuestFrame {
    /// Returns the frame of a map's report.
    pub fn of_report(map: u32, length: u32) -> GuestFrame {
        GuestFrame {
            partition: REPORT,
            map,
            number: 0,
            length,
        }
    }

    pub fn is_report(&self) -> bool {
        self.partition == REPORT
    }

    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let words = [self.partition, self.map, self.number, self.length];
        let mut bytes = [0; HEADER_BYTES];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<GuestFrame, GuestFrameError> {
        let [partition, map, number, length] = [0, 4, 8, 12]
            .map(|at| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
        if length <= GUEST_FRAME_BYTES_MAX {
            Ok(GuestFrame {
                partition,
                map,
                number,
                length,
            })
        } else {
            Err(GuestFrameError::TooLong { length })
        }
    }

    /// Writes the frame with its payload, whose length must match.
    pub fn write(&self, payload: &[u8], to: &mut impl Write) -> io::Result<()> {
        debug_assert_eq!(payload.len(), self.length as usize);
        to.write_all(&self.encode())?;
        to.write_all(payload)
    }
}

/// Reads frames from a stream. Memory grows with received bytes, not with the claimed length.
#[derive(Debug)]
pub struct GuestFrameReader<R> {
    source: R,
    payload: Vec<u8>,
}

impl<R: Read> GuestFrameReader<R> {
    pub fn new(source: R) -> GuestFrameReader<R> {
        GuestFrameReader {
            source,
            payload: Vec::new(),
        }
    }

    /// Returns the next frame and its payload; `None` at the end of the stream.
    ///
    /// # Errors
    /// `CutShort`, `TooLong`, `Io`.
    pub fn next_frame(&mut self) -> Result<Option<(GuestFrame, &[u8])>, GuestFrameError> {
        self.payload.clear();
        self.take(HEADER_BYTES as u64)?;
        let header: [u8; HEADER_BYTES] = match self.payload.as_slice().try_into() {
            Ok(header) => header,
            Err(_) if self.payload.is_empty() => return Ok(None),
            Err(_) => {
                let missing = (HEADER_BYTES - self.payload.len()) as u64;
                return Err(GuestFrameError::CutShort { missing });
            }
        };
        let frame = GuestFrame::decode(&header)?;
        self.payload.clear();
        self.take(u64::from(frame.length))?;
        let missing = u64::from(frame.length) - self.payload.len() as u64;
        match missing {
            0 => Ok(Some((frame, &self.payload))),
            missing => Err(GuestFrameError::CutShort { missing }),
        }
    }

    fn take(&mut self, bytes: u64) -> io::Result<()> {
        self.source
            .by_ref()
            .take(bytes)
            .read_to_end(&mut self.payload)
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(partition: u32, map: u32, number: u32, length: u32) -> GuestFrame {
        GuestFrame {
            partition,
            map,
            number,
            length,
        }
    }

    #[test]
    fn frame_order_equals_byte_order() {
        let ascending = [
            frame(0, 0, 1, 9),
            frame(0, 1, 0, 2),
            frame(0, 256, 0, 1),
            frame(1, 0, 0, 0),
        ];
        assert!(ascending.is_sorted());
        assert!(
            ascending
                .map(|frame| frame.encode()[..12].to_vec())
                .is_sorted()
        );
        assert!(GuestFrame::of_report(0, 0).encode()[..12] > ascending[3].encode()[..12]);
    }

    #[test]
    fn frames_round_trip() {
        let mut bytes = Vec::new();
        for (frame, payload) in [
            (frame(3, 1, 0, 2), &b"ab"[..]),
            (GuestFrame::of_report(1, 0), b""),
        ] {
            frame
                .write(payload, &mut bytes)
                .expect("memory can be written");
        }
        let mut reader = GuestFrameReader::new(bytes.as_slice());
        assert_eq!(
            reader.next_frame().expect("a frame"),
            Some((frame(3, 1, 0, 2), &b"ab"[..]))
        );
        assert_eq!(
            reader.next_frame().expect("a frame"),
            Some((GuestFrame::of_report(1, 0), &b""[..]))
        );
        assert_eq!(reader.next_frame().expect("the end"), None);
    }

    #[test]
    fn truncated_and_oversized_frames_are_rejected() {
        let whole = [frame(3, 1, 0, 2).encode().as_slice(), b"ab"].concat();
        for length in 1..whole.len() {
            let error = GuestFrameReader::new(&whole[..length])
                .next_frame()
                .expect_err("it is cut short");
            assert!(error.to_string().starts_with("cut short: "), "{error}");
        }
        let huge = frame(3, 1, 0, GUEST_FRAME_BYTES_MAX + 1).encode();
        let error = GuestFrameReader::new(&huge[..])
            .next_frame()
            .expect_err("it is huge");
        assert_eq!(
            error.to_string(),
            "too long: a frame of 67108865 bytes (limit 67108864)"
        );
    }
}

//! Frames: a length, a checksum and the payload. Distinguishes a torn tail from damage.

use std::io::{self, Read};

/// Bytes before the payload.
pub(super) const HEAD_BYTES: usize = 8;
/// Maximum length of a payload.
pub(super) const PAYLOAD_BYTES_MAX: usize = 1 << 30;

/// Appends a frame to `buffer`.
pub(super) fn push(buffer: &mut Vec<u8>, payload: &[u8]) -> Result<(), String> {
    let length = u32::try_from(payload.len()).ok().filter(|_| payload.len() <= PAYLOAD_BYTES_MAX);
    let length =
        length.ok_or_else(|| format!("an entry of {} bytes is too long (limit 1 GiB)", payload.len()))?;
    buffer.extend_from_slice(&length.to_le_bytes());
    buffer.extend_from_slice(&crc32c::crc32c(payload).to_le_bytes());
    buffer.extend_from_slice(payload);
    Ok(())
}

/// The data at an offset.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    /// A whole frame, and the offset of the next one.
    Whole { payload: &'a [u8], next: usize },
    /// The end of the bytes.
    End,
    /// The last frame is incomplete.
    Torn { what: String },
    /// An invalid frame that is followed by whole ones.
    Damaged { what: String },
}

/// Reads the frame at `offset`, which is at most the length of `bytes`.
pub(super) fn read(bytes: &[u8], offset: usize) -> Frame<'_> {
    if offset == bytes.len() {
        return Frame::End;
    }
    match whole(bytes, offset) {
        Ok((payload, next)) => Frame::Whole { payload, next },
        Err(what) if another_follows(bytes, offset) => Frame::Damaged { what },
        Err(what) => Frame::Torn { what },
    }
}

fn whole(bytes: &[u8], offset: usize) -> Result<(&[u8], usize), String> {
    let rest = &bytes[offset..];
    let Some((head, body)) = rest.split_first_chunk::<HEAD_BYTES>() else {
        return Err(format!("only {} bytes of a frame header", rest.len()));
    };
    let (length, sum) = parse_head(head);
    // Frames are never empty, but the unwritten end of a file is full of zeros.
    if length == 0 || length > PAYLOAD_BYTES_MAX {
        return Err(format!("invalid frame length {length}"));
    }
    let Some(payload) = body.get(..length) else {
        return Err(format!("only {} of {length} bytes", body.len()));
    };
    if crc32c::crc32c(payload) != sum {
        return Err("the checksum does not match".to_owned());
    }
    Ok((payload, offset + HEAD_BYTES + length))
}

/// Reads the payload of a file's next frame; fails if it is longer than `payload_bytes_max`.
pub(super) fn read_from(file: &mut impl Read, payload_bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut head = [0; HEAD_BYTES];
    file.read_exact(&mut head).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => io::Error::other("the file ends early"),
        _ => error,
    })?;
    let (length, sum) = parse_head(&head);
    if length == 0 || length > payload_bytes_max {
        return Err(io::Error::other(format!("invalid frame length {length}")));
    }
    let mut payload = Vec::with_capacity(length);
    file.take(length as u64).read_to_end(&mut payload)?;
    if payload.len() < length {
        return Err(io::Error::other(format!("only {} of {length} bytes", payload.len())));
    }
    if crc32c::crc32c(&payload) != sum {
        return Err(io::Error::other("the checksum does not match"));
    }
    Ok(payload)
}

fn parse_head(head: &[u8; HEAD_BYTES]) -> (usize, u32) {
    let [length, sum] =
        [0, 4].map(|at| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
    (usize::try_from(length).unwrap_or(usize::MAX), sum)
}

/// Returns whether a whole frame follows a broken one, which is then not a torn tail. Entries are JSON
/// objects: a brace marks a possible start, and the checksum verifies it.
fn another_follows(bytes: &[u8], broken: usize) -> bool {
    let first = broken + HEAD_BYTES + 1;
    (first..bytes.len().saturating_sub(HEAD_BYTES))
        .filter(|at| bytes.get(at + HEAD_BYTES) == Some(&b'{'))
        .any(|at| whole(bytes, at).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(payloads: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for payload in payloads {
            push(&mut bytes, payload.as_bytes()).expect("short");
        }
        bytes
    }

    #[test]
    fn frames_round_trip() {
        let bytes = frames(&["{1}", "{22}"]);
        let Frame::Whole { payload, next } = read(&bytes, 0) else { panic!("no frame") };
        assert_eq!(payload, b"{1}");
        let Frame::Whole { payload, next } = read(&bytes, next) else { panic!("no frame") };
        assert_eq!(payload, b"{22}");
        assert_eq!(read(&bytes, next), Frame::End);
    }

    #[test]
    fn cut_last_frame_is_torn_tail() {
        let bytes = frames(&["{one}", "{two}"]);
        let second = bytes.len() / 2;
        for length in second + 1..bytes.len() {
            assert!(matches!(read(&bytes[..length], second), Frame::Torn { .. }), "cut at {length}");
        }
    }

    #[test]
    fn flipped_bit_is_damage_before_last_frame() {
        let good = frames(&["{one}", "{two}"]);
        for bit in 0..good.len() / 2 * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(read(&bytes, 0), Frame::Damaged { .. }), "bit {bit}");
        }
        let mut last = good.clone();
        *last.last_mut().expect("not empty") ^= 1;
        assert!(matches!(read(&last, good.len() / 2), Frame::Torn { .. }));
    }

    #[test]
    fn trailing_zeros_are_torn_tail() {
        let mut bytes = frames(&["{one}"]);
        let end = bytes.len();
        bytes.resize(end + 100, 0);
        assert!(matches!(read(&bytes, end), Frame::Torn { .. }));
    }
}

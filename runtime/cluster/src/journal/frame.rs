//! Frames: a length, a checksum and the payload. A chained frame also contains the checksum of the frame before, so that
//! a missing, repeated or moved one is noticed. Distinguishes a torn tail from damage.

use std::io::{self, Read};

/// Bytes before the payload.
pub(super) const HEAD_BYTES: usize = 8;
/// Bytes before the payload of a chained frame.
pub(super) const CHAINED_HEAD_BYTES: usize = 12;
/// Maximum length of a payload.
pub(super) const PAYLOAD_BYTES_MAX: usize = 1 << 30;

/// Appends a frame to `buffer`; returns its checksum.
pub(super) fn push(buffer: &mut Vec<u8>, payload: &[u8]) -> Result<u32, String> {
    let length = checked_length(payload)?;
    let sum = crc32c::crc32c(payload);
    buffer.extend_from_slice(&length.to_le_bytes());
    buffer.extend_from_slice(&sum.to_le_bytes());
    buffer.extend_from_slice(payload);
    Ok(sum)
}

/// Appends a frame that follows the one with the checksum `previous`; returns its checksum.
pub(super) fn push_chained(
    buffer: &mut Vec<u8>,
    previous: u32,
    payload: &[u8],
) -> Result<u32, String> {
    let length = checked_length(payload)?;
    let sum = chained_sum(previous, payload);
    buffer.extend_from_slice(&length.to_le_bytes());
    buffer.extend_from_slice(&previous.to_le_bytes());
    buffer.extend_from_slice(&sum.to_le_bytes());
    buffer.extend_from_slice(payload);
    Ok(sum)
}

fn checked_length(payload: &[u8]) -> Result<u32, String> {
    let length = u32::try_from(payload.len())
        .ok()
        .filter(|_| payload.len() <= PAYLOAD_BYTES_MAX);
    length.ok_or_else(|| {
        format!(
            "an entry of {} bytes is too long (limit 1 GiB)",
            payload.len()
        )
    })
}

fn chained_sum(previous: u32, payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&previous.to_le_bytes()), payload)
}

/// The data at an offset.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    /// A whole frame, its checksum, and the offset of the next one.
    Whole {
        payload: &'a [u8],
        sum: u32,
        next: usize,
    },
    /// The end of the bytes.
    End,
    /// The last frame is incomplete.
    Torn { what: String },
    /// An invalid frame that is followed by whole ones, or one that does not follow the frame before.
    Damaged { what: String },
}

/// Reads the first frame, which is not chained.
pub(super) fn read_first(bytes: &[u8]) -> Frame<'_> {
    if bytes.is_empty() {
        return Frame::End;
    }
    let read = whole(bytes).map(|(payload, sum, next)| Frame::Whole { payload, sum, next });
    read.unwrap_or_else(|what| torn_or_damaged(bytes, 0, what))
}

/// Reads the chained frame at `offset`, which is at most the length of `bytes`. `previous` is the checksum of the
/// frame before.
pub(super) fn read(bytes: &[u8], offset: usize, previous: u32) -> Frame<'_> {
    if offset == bytes.len() {
        return Frame::End;
    }
    match whole_chained(bytes, offset) {
        Ok((payload, Sums { own, of_previous }, next)) if of_previous == previous => {
            Frame::Whole { payload, sum: own, next }
        }
        Ok(_) => Frame::Damaged {
            what: "it does not follow the entry before: entries are missing, repeated or in another order"
                .to_owned(),
        },
        Err(what) => torn_or_damaged(bytes, offset, what),
    }
}

fn torn_or_damaged(bytes: &[u8], broken: usize, what: String) -> Frame<'_> {
    if another_follows(bytes, broken) {
        Frame::Damaged { what }
    } else {
        Frame::Torn { what }
    }
}

/// Returns the payload, the checksum and the end of the frame at the start of `bytes`.
fn whole(bytes: &[u8]) -> Result<(&[u8], u32, usize), String> {
    let Some((head, body)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
        return Err(format!("only {} bytes of a frame header", bytes.len()));
    };
    let (length, sum) = parse_head(head);
    let payload = payload_of(body, length)?;
    if crc32c::crc32c(payload) != sum {
        return Err(MISMATCH.to_owned());
    }
    Ok((payload, sum, HEAD_BYTES + length))
}

/// The checksums in a chained frame.
struct Sums {
    own: u32,
    of_previous: u32,
}

/// Returns the payload, the checksums and the end of a chained frame.
fn whole_chained(bytes: &[u8], offset: usize) -> Result<(&[u8], Sums, usize), String> {
    let rest = &bytes[offset..];
    let Some((head, body)) = rest.split_first_chunk::<CHAINED_HEAD_BYTES>() else {
        return Err(format!("only {} bytes of a frame header", rest.len()));
    };
    let length = usize::try_from(u32_at(head, 0)).unwrap_or(usize::MAX);
    let sums = Sums {
        of_previous: u32_at(head, 4),
        own: u32_at(head, 8),
    };
    let payload = payload_of(body, length)?;
    if chained_sum(sums.of_previous, payload) != sums.own {
        return Err(MISMATCH.to_owned());
    }
    Ok((payload, sums, offset + CHAINED_HEAD_BYTES + length))
}

fn payload_of(body: &[u8], length: usize) -> Result<&[u8], String> {
    // Frames are never empty, but the unwritten end of a file is full of zeros.
    if length == 0 || length > PAYLOAD_BYTES_MAX {
        return Err(format!("invalid frame length {length}"));
    }
    body.get(..length)
        .ok_or_else(|| format!("only {} of {length} bytes", body.len()))
}

const MISMATCH: &str = "the checksum does not match";

/// The reason why a frame of a file cannot be read.
#[derive(Debug)]
pub(super) enum FrameError {
    Io(io::Error),
    /// The frame is invalid.
    Damaged(String),
}

/// Reads the payload of a file's next frame; fails if it is longer than `payload_bytes_max`.
pub(super) fn read_from(
    file: &mut impl Read,
    payload_bytes_max: usize,
) -> Result<Vec<u8>, FrameError> {
    let mut head = [0; HEAD_BYTES];
    file.read_exact(&mut head)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => FrameError::Damaged("the file ends early".to_owned()),
            _ => FrameError::Io(error),
        })?;
    let (length, sum) = parse_head(&head);
    if length == 0 || length > payload_bytes_max {
        return Err(FrameError::Damaged(format!(
            "invalid frame length {length}"
        )));
    }
    let mut payload = Vec::with_capacity(length);
    file.take(length as u64)
        .read_to_end(&mut payload)
        .map_err(FrameError::Io)?;
    if payload.len() < length {
        return Err(FrameError::Damaged(format!(
            "only {} of {length} bytes",
            payload.len()
        )));
    }
    if crc32c::crc32c(&payload) != sum {
        return Err(FrameError::Damaged(MISMATCH.to_owned()));
    }
    Ok(payload)
}

fn parse_head(head: &[u8; HEAD_BYTES]) -> (usize, u32) {
    (
        usize::try_from(u32_at(head, 0)).unwrap_or(usize::MAX),
        u32_at(head, 4),
    )
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Returns whether a whole chained frame follows a broken one, which is then not a torn tail. Entries are JSON
/// objects: a brace marks a possible start, and the checksum verifies it.
fn another_follows(bytes: &[u8], broken: usize) -> bool {
    let first = broken + HEAD_BYTES + 1;
    (first..bytes.len().saturating_sub(CHAINED_HEAD_BYTES))
        .filter(|at| bytes.get(at + CHAINED_HEAD_BYTES) == Some(&b'{'))
        .any(|at| whole_chained(bytes, at).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frames of a file: the first one, then chained ones.
    fn frames(payloads: &[&str]) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let mut previous = None;
        for payload in payloads {
            let mut frame = Vec::new();
            let sum = match previous {
                None => push(&mut frame, payload.as_bytes()),
                Some(previous) => push_chained(&mut frame, previous, payload.as_bytes()),
            };
            previous = Some(sum.expect("short"));
            frames.push(frame);
        }
        frames
    }

    /// Reads all frames; returns their payloads, and the end that is not `Frame::End`.
    fn read_all(bytes: &[u8]) -> (Vec<String>, Option<Frame<'_>>) {
        let mut payloads = Vec::new();
        let mut frame = read_first(bytes);
        loop {
            match frame {
                Frame::Whole { payload, sum, next } => {
                    payloads.push(String::from_utf8_lossy(payload).into_owned());
                    frame = read(bytes, next, sum);
                }
                Frame::End => return (payloads, None),
                broken => return (payloads, Some(broken)),
            }
        }
    }

    #[test]
    fn frames_round_trip() {
        let payloads = ["{1}", "{22}", "{333}"];
        let bytes = frames(&payloads).concat();
        let (read, broken) = read_all(&bytes);
        assert_eq!(
            (read.as_slice(), broken),
            (&payloads.map(str::to_owned)[..], None)
        );
    }

    #[test]
    fn cut_last_frame_is_torn_tail() {
        let all = frames(&["{one}", "{two}"]);
        let bytes = all.concat();
        for length in all[0].len() + 1..bytes.len() {
            let (read, broken) = read_all(&bytes[..length]);
            assert_eq!(read, ["{one}"]);
            assert!(
                matches!(broken, Some(Frame::Torn { .. })),
                "cut at {length}"
            );
        }
    }

    #[test]
    fn flipped_bit_is_damage_before_last_frame() {
        let all = frames(&["{one}", "{two}", "{three}"]);
        let good = all.concat();
        for bit in 0..(all[0].len() + all[1].len()) * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(
                matches!(read_all(&bytes).1, Some(Frame::Damaged { .. })),
                "bit {bit}"
            );
        }
        let mut last = good.clone();
        *last.last_mut().expect("not empty") ^= 1;
        assert!(matches!(read_all(&last).1, Some(Frame::Torn { .. })));
    }

    #[test]
    fn missing_repeated_or_moved_frame_is_damage() {
        let all = frames(&["{one}", "{two}", "{three}", "{four}"]);
        let orders: [&[usize]; 6] = [
            &[0, 2, 3],
            &[0, 1, 3],
            &[0, 1, 1, 2, 3],
            &[0, 2, 1, 3],
            &[0, 1, 3, 2],
            &[0, 1, 2, 3, 3],
        ];
        for order in orders {
            let bytes: Vec<u8> = order.iter().flat_map(|place| all[*place].clone()).collect();
            let (_, broken) = read_all(&bytes);
            assert!(matches!(broken, Some(Frame::Damaged { .. })), "{order:?}");
        }
    }

    #[test]
    fn trailing_zeros_are_torn_tail() {
        let mut bytes = frames(&["{one}"]).concat();
        bytes.resize(bytes.len() + 100, 0);
        assert!(matches!(read_all(&bytes).1, Some(Frame::Torn { .. })));
    }
}

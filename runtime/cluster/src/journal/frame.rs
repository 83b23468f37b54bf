//! Frames: a length, a checksum and the payload. A chained frame also contains the checksum of the frame before, so that
//! a missing, repeated or moved one is noticed, and the length of the file that was settled when it was written. That
//! distinguishes a torn append from damage.
//!
//! A power loss may lose any page that was not synced, also one before a page that survives. So a frame that cannot be
//! read is torn, with all that follows, unless a later frame proves that it had been synced: its settled length is then
//! larger than the offset of the broken frame. A writer settles a length only after the sync, so no power loss can
//! produce such a proof. The mark after each sync, a frame without payload, proves it for the last entries.

use std::io::{self, Read};

/// Bytes before the payload.
pub(super) const HEAD_BYTES: usize = 8;
/// Bytes before the payload of a chained frame.
pub(super) const CHAINED_HEAD_BYTES: usize = 20;
/// The same in journals of version 10.
const UNSETTLED_HEAD_BYTES: usize = 12;
/// Maximum length of a payload.
pub(super) const PAYLOAD_BYTES_MAX: usize = 1 << 30;

/// The layout of the chained frames in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// That of version 10, without settled lengths. Each frame counts as a proof for all bytes before it.
    Unsettled,
    /// Length, checksum of the frame before, settled length, checksum, payload.
    Settled,
}

/// The part of a chained frame that links it to the bytes before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    /// The checksum of the frame before.
    pub(super) previous: u32,
    /// The length of the file that no power loss can change any more.
    pub(super) settled: u64,
}

/// Appends a frame to `buffer`; returns its checksum.
pub(super) fn push(buffer: &mut Vec<u8>, payload: &[u8]) -> Result<u32, String> {
    let length = checked_length(payload)?;
    let sum = crc32c::crc32c(payload);
    buffer.extend_from_slice(&length.to_le_bytes());
    buffer.extend_from_slice(&sum.to_le_bytes());
    buffer.extend_from_slice(payload);
    Ok(sum)
}

/// Appends a chained frame; returns its checksum. Without a payload it is a mark.
pub(super) fn push_chained(
    buffer: &mut Vec<u8>,
    link: Link,
    payload: &[u8],
) -> Result<u32, String> {
    let length = checked_length(payload)?;
    let sum = settled_sum(link, payload);
    buffer.extend_from_slice(&length.to_le_bytes());
    buffer.extend_from_slice(&link.previous.to_le_bytes());
    buffer.extend_from_slice(&link.settled.to_le_bytes());
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

fn unsettled_sum(previous: u32, payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&previous.to_le_bytes()), payload)
}

fn settled_sum(link: Link, payload: &[u8]) -> u32 {
    let previous = crc32c::crc32c(&link.previous.to_le_bytes());
    let settled = crc32c::crc32c_append(previous, &link.settled.to_le_bytes());
    crc32c::crc32c_append(settled, payload)
}

/// The data at an offset.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    /// A whole frame.
    Whole(WholeFrame<'a>),
    /// The end of the bytes.
    End,
    /// The frame was lost before it was synced, with all that follows.
    Torn { what: String },
    /// An invalid frame that had been synced, or one that does not follow the frame before.
    Damaged { what: String },
}

/// A frame whose checksum matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WholeFrame<'a> {
    /// Empty for a mark.
    pub(super) payload: &'a [u8],
    pub(super) sum: u32,
    /// The length of the file that it proves to be settled.
    pub(super) settled: u64,
    /// The offset of the next frame.
    pub(super) next: usize,
}

/// Reads the first frame, which is not chained.
pub(super) fn read_first(bytes: &[u8]) -> Frame<'_> {
    if bytes.is_empty() {
        return Frame::End;
    }
    match whole(bytes) {
        Ok((payload, sum, next)) => Frame::Whole(WholeFrame {
            payload,
            sum,
            settled: 0,
            next,
        }),
        Err(what) if is_settled(bytes, 0, Layout::Settled) => Frame::Damaged { what },
        Err(what) => torn_or_damaged(bytes, 0, Layout::Unsettled, what),
    }
}

/// Reads the chained frame at `offset`, which is at most the length of `bytes`. `previous` is the checksum of the
/// frame before.
pub(super) fn read(bytes: &[u8], offset: usize, previous: u32, layout: Layout) -> Frame<'_> {
    if offset == bytes.len() {
        return Frame::End;
    }
    match whole_chained(bytes, offset, layout) {
        Ok((frame, follows)) if follows == previous => Frame::Whole(frame),
        Ok(_) => Frame::Damaged {
            what: "it does not follow the entry before: entries are missing, repeated or in another order"
                .to_owned(),
        },
        Err(what) => torn_or_damaged(bytes, offset, layout, what),
    }
}

fn torn_or_damaged(bytes: &[u8], broken: usize, layout: Layout, what: String) -> Frame<'_> {
    if is_settled(bytes, broken, layout) {
        Frame::Damaged { what }
    } else {
        Frame::Torn { what }
    }
}

/// Returns whether a frame after a broken one proves that the broken one had been synced.
fn is_settled(bytes: &[u8], broken: usize, layout: Layout) -> bool {
    for frame in frames_after(bytes, broken, layout) {
        if frame.settled > broken as u64 {
            return true;
        }
    }
    false
}

/// Returns the payload, the checksum and the end of the frame at the start of `bytes`.
fn whole(bytes: &[u8]) -> Result<(&[u8], u32, usize), String> {
    let Some((head, body)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
        return Err(incomplete_head(bytes.len()));
    };
    let (length, sum) = parse_head(head);
    if length == 0 {
        return Err(invalid_length(length));
    }
    let payload = payload_of(body, length)?;
    if crc32c::crc32c(payload) != sum {
        return Err(MISMATCH.to_owned());
    }
    Ok((payload, sum, HEAD_BYTES + length))
}

/// Returns a chained frame, and the checksum of the frame that it follows.
fn whole_chained(
    bytes: &[u8],
    offset: usize,
    layout: Layout,
) -> Result<(WholeFrame<'_>, u32), String> {
    let rest = &bytes[offset..];
    let head_bytes = layout.head_bytes();
    let Some((head, body)) = rest.split_at_checked(head_bytes) else {
        return Err(incomplete_head(rest.len()));
    };
    let length = usize::try_from(u32_at(head, 0)).unwrap_or(usize::MAX);
    let payload = payload_of(body, length)?;
    let previous = u32_at(head, 4);
    let (settled, sum, expected) = match layout {
        Layout::Unsettled if length == 0 => return Err(invalid_length(length)),
        Layout::Unsettled => (
            offset as u64,
            u32_at(head, 8),
            unsettled_sum(previous, payload),
        ),
        Layout::Settled => {
            let settled = u64_at(head, 8);
            let link = Link { previous, settled };
            (settled, u32_at(head, 16), settled_sum(link, payload))
        }
    };
    if sum != expected {
        return Err(MISMATCH.to_owned());
    }
    let frame = WholeFrame {
        payload,
        sum,
        settled,
        next: offset + head_bytes + length,
    };
    Ok((frame, previous))
}

impl Layout {
    fn head_bytes(self) -> usize {
        match self {
            Layout::Unsettled => UNSETTLED_HEAD_BYTES,
            Layout::Settled => CHAINED_HEAD_BYTES,
        }
    }
}

fn payload_of(body: &[u8], length: usize) -> Result<&[u8], String> {
    if length > PAYLOAD_BYTES_MAX {
        return Err(invalid_length(length));
    }
    body.get(..length)
        .ok_or_else(|| format!("only {} of {length} bytes", body.len()))
}

fn invalid_length(length: usize) -> String {
    format!("invalid frame length {length}")
}

fn incomplete_head(bytes: usize) -> String {
    format!("only {bytes} bytes of a frame header")
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
        return Err(FrameError::Damaged(invalid_length(length)));
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

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// Finds the whole chained frames after a broken one.
pub(super) fn frames_after(bytes: &[u8], broken: usize, layout: Layout) -> FramesAfter<'_> {
    FramesAfter {
        bytes,
        at: broken + HEAD_BYTES + 1,
        layout,
    }
}

/// An iterator over whole frames. Entries are JSON objects and marks have no payload: a brace or a length of zero
/// marks a possible start, and the checksum verifies it.
pub(super) struct FramesAfter<'a> {
    bytes: &'a [u8],
    at: usize,
    layout: Layout,
}

impl FramesAfter<'_> {
    fn may_start(&self, at: usize) -> bool {
        let payload = at + self.layout.head_bytes();
        let is_mark = self.layout == Layout::Settled && u32_at(self.bytes, at) == 0;
        is_mark || self.bytes.get(payload) == Some(&b'{')
    }
}

impl<'a> Iterator for FramesAfter<'a> {
    type Item = WholeFrame<'a>;

    fn next(&mut self) -> Option<WholeFrame<'a>> {
        while self.at + self.layout.head_bytes() <= self.bytes.len() {
            let at = self.at;
            self.at += 1;
            if !self.may_start(at) {
                continue;
            }
            if let Ok((frame, _)) = whole_chained(self.bytes, at, self.layout) {
                self.at = frame.next;
                return Some(frame);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of a file: the first one, then chained ones, each of which settles all before it.
    fn frames(payloads: &[&str]) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let mut previous = None;
        let mut settled = 0;
        for payload in payloads {
            let mut frame = Vec::new();
            let sum = match previous {
                None => push(&mut frame, payload.as_bytes()),
                Some(previous) => {
                    let link = Link { previous, settled };
                    push_chained(&mut frame, link, payload.as_bytes())
                }
            };
            previous = Some(sum.expect("short"));
            settled += frame.len() as u64;
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
                Frame::Whole(WholeFrame {
                    payload, sum, next, ..
                }) => {
                    payloads.push(String::from_utf8_lossy(payload).into_owned());
                    frame = read(bytes, next, sum, Layout::Settled);
                }
                Frame::End => return (payloads, None),
                broken => return (payloads, Some(broken)),
            }
        }
    }

    #[test]
    fn frames_round_trip() {
        let payloads = ["{1}", "{22}", "", "{333}"];
        let bytes = frames(&payloads).concat();
        let (read, broken) = read_all(&bytes);
        assert_eq!(
            (read.as_slice(), broken),
            (&payloads.map(str::to_owned)[..], None)
        );
    }

    /// The frames of one append prove nothing about each other, and a mark proves all before it.
    #[test]
    fn broken_frame_is_torn_unless_later_frame_proves_its_sync() {
        let mut header = Vec::new();
        let first = push(&mut header, b"{header}").expect("short");
        let settled = header.len() as u64;
        let mut append = Vec::new();
        let mut ends = Vec::new();
        let mut previous = first;
        for payload in ["{one}", "{two}", "{three}"] {
            let link = Link { previous, settled };
            previous = push_chained(&mut append, link, payload.as_bytes()).expect("short");
            ends.push(header.len() + append.len());
        }
        let unsynced = [header, append].concat();
        let mut mark = Vec::new();
        let link = Link {
            previous,
            settled: unsynced.len() as u64,
        };
        push_chained(&mut mark, link, b"").expect("short");
        let synced = [&unsynced[..], &mark].concat();
        for at in usize::try_from(settled).expect("short")..unsynced.len() {
            let before = ends.iter().filter(|end| **end <= at).count();
            let mut torn = unsynced.clone();
            torn[at] ^= 1;
            let (read, broken) = read_all(&torn);
            assert_eq!(read.len(), 1 + before, "byte {at}");
            assert!(matches!(broken, Some(Frame::Torn { .. })), "byte {at}");
            let mut damaged = synced.clone();
            damaged[at] ^= 1;
            let (read, broken) = read_all(&damaged);
            assert_eq!(read.len(), 1 + before, "byte {at}");
            assert!(matches!(broken, Some(Frame::Damaged { .. })), "byte {at}");
        }
        for length in unsynced.len() + 1..synced.len() {
            let (read, broken) = read_all(&synced[..length]);
            assert_eq!(read.len(), 4, "{length} bytes");
            assert!(matches!(broken, Some(Frame::Torn { .. })), "{length} bytes");
        }
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

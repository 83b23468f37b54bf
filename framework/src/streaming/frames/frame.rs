//! One frame: a length, a kind and a payload, and the decoder of frames that arrive in pieces.

use thiserror::Error;

/// Length and kind.
pub(super) const HEAD_BYTES: usize = 5;
/// Length of the quoted part of invalid bytes.
const SHOWN_BYTES: usize = 40;

/// The kind of a frame, sent as a letter.
///
/// ```
/// use napreduce::streaming::frames::FrameKind;
///
/// assert_eq!(FrameKind::RecordBatch.letter(), b'R');
/// assert_eq!(FrameKind::of(b'O'), Some(FrameKind::Output));
/// assert_eq!(FrameKind::of(b'?'), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// `H`: the greeting; the first frame in both directions.
    Hello,
    /// `R`: records, to a program that maps.
    RecordBatch,
    /// `O`: pairs for the reduces, or lines of a part file.
    Output,
    /// `G`: the key of a new group.
    Group,
    /// `V`: values of the group.
    Values,
    /// `g`: the end of the group.
    GroupEnd,
    /// `C`: increments of counters.
    Counters,
    /// `L`: a line for the log; also counts as progress.
    Log,
    /// `P`: the number of processed records or values.
    Done,
    /// `X`: the program has failed.
    Failure,
    /// `S`: a request for the state.
    Save,
    /// `D`: the state, after all earlier output.
    State,
    /// `d`: there is no state; after all earlier output.
    Stateless,
    /// `E`: the end of input.
    End,
    /// `F`: the end of output.
    Finished,
}

impl FrameKind {
    const ALL: [(u8, FrameKind); 15] = [
        (b'H', FrameKind::Hello),
        (b'R', FrameKind::RecordBatch),
        (b'O', FrameKind::Output),
        (b'G', FrameKind::Group),
        (b'V', FrameKind::Values),
        (b'g', FrameKind::GroupEnd),
        (b'C', FrameKind::Counters),
        (b'L', FrameKind::Log),
        (b'P', FrameKind::Done),
        (b'X', FrameKind::Failure),
        (b'S', FrameKind::Save),
        (b'D', FrameKind::State),
        (b'd', FrameKind::Stateless),
        (b'E', FrameKind::End),
        (b'F', FrameKind::Finished),
    ];

    /// Returns the kind with this letter.
    pub fn of(letter: u8) -> Option<FrameKind> {
        FrameKind::ALL
            .iter()
            .find(|(known, _)| *known == letter)
            .map(|(_, kind)| *kind)
    }

    /// Returns the letter.
    pub fn letter(self) -> u8 {
        FrameKind::ALL
            .iter()
            .find(|(_, kind)| *kind == self)
            .map_or(0, |(letter, _)| *letter)
    }
}

/// A frame, which borrows its payload from the decoder.
///
/// ```
/// use napreduce::streaming::frames::{Frame, FrameKind};
///
/// let end = Frame { kind: FrameKind::End, payload: b"" };
/// assert_eq!(end.encoded().expect("it is short"), [0, 0, 0, 0, b'E']);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The meaning of the payload.
    pub kind: FrameKind,
    /// The bytes after the header.
    pub payload: &'a [u8],
}

impl Frame<'_> {
    /// Returns the bytes of the frame. Fails if its length exceeds 32 bits.
    pub fn encoded(&self) -> Result<Vec<u8>, FrameError> {
        let mut bytes = head(self.kind, self.payload.len())?.to_vec();
        bytes.extend_from_slice(self.payload);
        Ok(bytes)
    }
}

/// Returns the header of a payload of this length.
pub(super) fn head(kind: FrameKind, length: usize) -> Result<[u8; HEAD_BYTES], FrameError> {
    let too_long = FrameError::TooLong {
        kind,
        length: length as u64,
        limit: u64::from(u32::MAX),
    };
    let [a, b, c, d] = u32::try_from(length).map_err(|_| too_long)?.to_be_bytes();
    Ok([a, b, c, d, kind.letter()])
}

/// The error for invalid frames.
///
/// ```
/// use napreduce::streaming::frames::FrameDecoder;
///
/// let mut decoder = FrameDecoder::new(1 << 20);
/// decoder.push(b"Hello, world\n");
/// let error = decoder.next_frame().expect_err("it is text");
/// assert_eq!(error.to_string(), r#""Hello, world\n" where a frame should begin"#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The letter of the kind is unknown.
    #[error("{shown} where a frame should begin")]
    Unknown {
        /// The received bytes, quoted and escaped.
        shown: String,
    },
    /// The length exceeds the limit.
    #[error("a frame {} of {length} bytes (limit {limit})", char::from(.kind.letter()))]
    TooLong {
        /// The kind of the frame.
        kind: FrameKind,
        /// The length of its payload, in bytes.
        length: u64,
        /// The maximum length, in bytes.
        limit: u64,
    },
}

/// Assembles frames from pieces of any length. Memory grows with received bytes, not with the claimed length.
///
/// ```
/// use napreduce::streaming::frames::{Frame, FrameDecoder, FrameKind};
///
/// let frame = Frame { kind: FrameKind::Group, payload: b"key" };
/// let mut decoder = FrameDecoder::new(1 << 20);
/// for byte in frame.encoded()? {
///     assert_eq!(decoder.next_frame()?, None);
///     decoder.push(&[byte]);
/// }
/// assert_eq!(decoder.next_frame()?, Some(frame));
/// assert!(!decoder.is_inside());
/// # Ok::<(), napreduce::streaming::frames::FrameError>(())
/// ```
#[derive(Debug)]
pub struct FrameDecoder {
    bytes: Vec<u8>,
    /// Number of leading bytes whose frames were returned.
    taken: usize,
    limit: usize,
}

impl FrameDecoder {
    /// Creates a decoder of frames with payloads of up to `limit` bytes.
    pub fn new(limit: usize) -> FrameDecoder {
        FrameDecoder {
            bytes: Vec::new(),
            taken: 0,
            limit,
        }
    }

    /// Appends received bytes.
    pub fn push(&mut self, piece: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(piece);
    }

    /// Returns the next frame, if it is complete.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        let rest = &self.bytes[self.taken..];
        let Some((&[a, b, c, d, letter], behind)) = rest.split_first_chunk() else {
            return Ok(None);
        };
        let Some(kind) = FrameKind::of(letter) else {
            let shown = &rest[..rest.len().min(SHOWN_BYTES)];
            return Err(FrameError::Unknown {
                shown: format!("\"{}\"", shown.escape_ascii()),
            });
        };
        let length = u32::from_be_bytes([a, b, c, d]);
        let whole = usize::try_from(length).unwrap_or(usize::MAX);
        if whole > self.limit {
            return Err(FrameError::TooLong {
                kind,
                length: length.into(),
                limit: self.limit as u64,
            });
        }
        let Some(payload) = behind.get(..whole) else {
            return Ok(None);
        };
        self.taken += HEAD_BYTES + whole;
        Ok(Some(Frame { kind, payload }))
    }

    /// Returns whether the received bytes end inside a frame.
    pub fn is_inside(&self) -> bool {
        self.taken < self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(frames: &[(FrameKind, &[u8])]) -> Vec<u8> {
        let encoded = frames.iter().map(|(kind, payload)| {
            Frame {
                kind: *kind,
                payload,
            }
            .encoded()
        });
        encoded
            .collect::<Result<Vec<_>, _>>()
            .expect("they are short")
            .concat()
    }

    #[test]
    fn frames_round_trip_in_pieces_of_any_size() {
        let frames: &[(FrameKind, &[u8])] = &[
            (FrameKind::Hello, b"{}"),
            (FrameKind::Output, &[0; 300]),
            (FrameKind::Finished, b""),
        ];
        let bytes = stream(frames);
        for size in 1..bytes.len() {
            let mut decoder = FrameDecoder::new(300);
            let mut found = Vec::new();
            for piece in bytes.chunks(size) {
                decoder.push(piece);
                while let Some(frame) = decoder.next_frame().expect("it is a frame") {
                    found.push((frame.kind, frame.payload.to_vec()));
                }
            }
            let expected: Vec<_> = frames
                .iter()
                .map(|(kind, payload)| (*kind, payload.to_vec()))
                .collect();
            assert_eq!(found, expected, "in pieces of {size}");
            assert!(!decoder.is_inside());
        }
    }

    #[test]
    fn frame_over_limit_is_rejected_by_its_header() {
        let mut decoder = FrameDecoder::new(299);
        decoder.push(&stream(&[(FrameKind::Output, &[0; 300])])[..HEAD_BYTES]);
        let error = decoder
            .next_frame()
            .expect_err("it is too long")
            .to_string();
        assert_eq!(error, "a frame O of 300 bytes (limit 299)");
        decoder = FrameDecoder::new(usize::MAX);
        decoder.push(&[255, 255, 255, 255, b'O']);
        assert_eq!(decoder.next_frame(), Ok(None));
        assert!(
            decoder.is_inside() && decoder.bytes.capacity() < 1 << 10,
            "memory for a claimed length"
        );
    }

    #[test]
    fn unknown_bytes_are_quoted() {
        let mut decoder = FrameDecoder::new(1 << 20);
        decoder.push(&[b"\x00\xff".as_slice(), &[b'x'; 100]].concat());
        let error = decoder.next_frame().expect_err("it is rubbish").to_string();
        assert_eq!(
            error,
            format!(
                "\"\\x00\\xff{}\" where a frame should begin",
                "x".repeat(38)
            )
        );
    }
}

//! Reads and writes the frames of docs/spark.md: four words and a byte string.

/// A frame with its content.
#[derive(Debug, Clone)]
pub struct Frame {
    pub partition: u32,
    pub map: u32,
    pub number: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    pub fn is_report(&self) -> bool {
        self.partition == u32::MAX
    }

    pub fn is_extent(&self) -> bool {
        !self.is_report() && self.number == 0
    }

    pub fn is_chunk(&self) -> bool {
        !self.is_report() && self.number > 0
    }

    /// Appends the frame to a stream.
    pub fn write(&self, stream: &mut Vec<u8>) {
        for word in [
            self.partition,
            self.map,
            self.number,
            self.payload.len() as u32,
        ] {
            stream.extend_from_slice(&word.to_be_bytes());
        }
        stream.extend_from_slice(&self.payload);
    }
}

/// The frames that a map wrote; the last one is its report.
pub struct Frames<'a> {
    rest: &'a [u8],
}

impl Frames<'_> {
    pub fn of(stream: &[u8]) -> Frames<'_> {
        Frames { rest: stream }
    }
}

impl Iterator for Frames<'_> {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        let (header, rest) = self.rest.split_at_checked(16)?;
        let word =
            |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let (payload, rest) = rest.split_at(word(12) as usize);
        self.rest = rest;
        let frame = Frame {
            partition: word(0),
            map: word(4),
            number: word(8),
            payload: payload.to_vec(),
        };
        assert!(
            frame.is_report() == rest.is_empty(),
            "the report is the last frame, and {frame:?} is not"
        );
        Some(frame)
    }
}

//! The last lines of a log, without reading the rest.

use napreduce_cluster::{ClientError, ClusterClient, LogRead};
use napreduce_engine::AttemptId;
use napreduce_protocol::LogStream;

/// Bytes that are searched first; doubled until enough lines are found.
const PIECE_BYTES: u64 = 64 << 10;

/// Returns the last lines of a log, and its length at that time.
pub fn read(
    attempt: AttemptId,
    stream: LogStream,
    lines: usize,
    client: &mut ClusterClient,
) -> Result<(Vec<u8>, LogRead), ClientError> {
    let mut size = PIECE_BYTES;
    // An offset past the end returns the length only.
    let mut length = client
        .log(attempt, stream, u64::MAX, &mut Vec::new())?
        .length;
    loop {
        let from = length.saturating_sub(size);
        let mut bytes = Vec::new();
        let read = client.log(attempt, stream, from, &mut bytes)?;
        match begin_of_last(&bytes, lines) {
            Some(begin) => return Ok((bytes.split_off(begin), read)),
            None if from == 0 => return Ok((bytes, read)),
            None => (size, length) = (size * 2, read.length),
        }
    }
}

/// Returns the start of the last lines, or `None` if it may be before these bytes.
fn begin_of_last(bytes: &[u8], lines: usize) -> Option<usize> {
    if lines == 0 {
        return Some(bytes.len());
    }
    // A newline at the end does not start a line.
    let before = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let mut ends = before
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, byte)| **byte == b'\n');
    ends.nth(lines - 1).map(|(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begin_of_last_finds_lines_from_end() {
        for (text, lines, expected) in [
            ("a\nb\nc\n", 2, Some("b\nc\n")),
            ("a\nb\nc", 2, Some("b\nc")),
            ("a\nb\nc\n", 3, None),
            ("a\n\n\n", 2, Some("\n\n")),
            ("", 1, None),
            ("a\nb\n", 0, Some("")),
            ("a long line", 1, None),
        ] {
            let begin = begin_of_last(text.as_bytes(), lines);
            assert_eq!(
                begin.map(|begin| &text[begin..]),
                expected,
                "{text:?} {lines}"
            );
        }
    }
}

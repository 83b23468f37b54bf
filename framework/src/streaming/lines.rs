//! Splitting of a command's output into lines, and of a line into key and value.

use std::num::NonZeroU32;

use thiserror::Error;

/// The error for a line longer than the task memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a line longer than {limit} bytes; raise --task-memory")]
pub(super) struct LineTooLong {
    limit: usize,
}

/// Assembles lines from pieces of any length.
#[derive(Debug)]
pub(super) struct OutputLines {
    incomplete: Vec<u8>,
    limit: usize,
}

impl OutputLines {
    pub(super) fn new(limit: usize) -> OutputLines {
        OutputLines {
            incomplete: Vec::new(),
            limit,
        }
    }

    /// Calls `each` for every line that ends in this piece, without its newline.
    pub(super) fn take(
        &mut self,
        piece: &[u8],
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), LineTooLong> {
        let mut rest = piece;
        while let Some(newline) = memchr::memchr(b'\n', rest) {
            let line = &rest[..newline];
            let after = &rest[newline + 1..];
            if self.incomplete.is_empty() {
                self.check(line.len())?;
                each(line);
            } else {
                self.append(line)?;
                each(&self.incomplete);
                self.incomplete.clear();
            }
            rest = after;
        }
        self.append(rest)
    }

    /// Calls `each` for the bytes after the last newline, if there are any.
    pub(super) fn finish(&mut self, mut each: impl FnMut(&[u8])) {
        if !self.incomplete.is_empty() {
            each(&self.incomplete);
            self.incomplete.clear();
        }
    }

    fn append(&mut self, part: &[u8]) -> Result<(), LineTooLong> {
        self.check(self.incomplete.len() + part.len())?;
        self.incomplete.extend_from_slice(part);
        Ok(())
    }

    fn check(&self, length: usize) -> Result<(), LineTooLong> {
        if length > self.limit {
            Err(LineTooLong { limit: self.limit })
        } else {
            Ok(())
        }
    }
}

/// The first fields of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FirstFields {
    pub(super) count: NonZeroU32,
    pub(super) separator: u8,
}

impl FirstFields {
    /// Splits a line after these fields. A line with no more fields is all key.
    pub(super) fn key_and_value(self, line: &[u8]) -> (&[u8], &[u8]) {
        match self.end(line) {
            Some(end) => (&line[..end], &line[end + 1..]),
            None => (line, &[]),
        }
    }

    /// Returns these fields of a key, or the whole key if it has no more.
    pub(super) fn of_key(self, key: &[u8]) -> &[u8] {
        &key[..self.end(key).unwrap_or(key.len())]
    }

    /// Returns the position of the separator that ends the fields.
    #[inline]
    fn end(self, line: &[u8]) -> Option<usize> {
        memchr::memchr_iter(self.separator, line).nth(self.count.get() as usize - 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(pieces: &[&[u8]], limit: usize) -> Result<Vec<Vec<u8>>, LineTooLong> {
        let mut lines = OutputLines::new(limit);
        let mut found = Vec::new();
        for piece in pieces {
            lines.take(piece, |line| found.push(line.to_vec()))?;
        }
        lines.finish(|line| found.push(line.to_vec()));
        Ok(found)
    }

    #[test]
    fn output_without_final_newline_keeps_last_line() {
        let found = lines(&[b"a\n\nb", b"", b"c\n\xFF", b"d"], 10);
        assert_eq!(
            found,
            Ok(vec![
                b"a".to_vec(),
                b"".to_vec(),
                b"bc".to_vec(),
                b"\xFFd".to_vec()
            ])
        );
        assert_eq!(lines(&[b"a\n"], 10), Ok(vec![b"a".to_vec()]));
        assert_eq!(lines(&[], 10), Ok(vec![]));
    }

    #[test]
    fn line_over_limit_is_rejected() {
        assert_eq!(
            lines(&[b"123", b"4\n1234"], 4).map(|lines| lines.len()),
            Ok(2)
        );
        for pieces in [
            &[&b"12345\n"[..]][..],
            &[b"12345"],
            &[b"123", b"45"],
            &[b"123", b"45\n"],
        ] {
            assert_eq!(
                lines(pieces, 4),
                Err(LineTooLong { limit: 4 }),
                "{pieces:?}"
            );
        }
        let text = LineTooLong { limit: 4 }.to_string();
        assert_eq!(text, "a line longer than 4 bytes; raise --task-memory");
    }

    #[test]
    fn line_is_split_after_key_fields() {
        let split = |line: &'static str, fields| {
            let fields = FirstFields {
                count: NonZeroU32::new(fields).expect("not 0"),
                separator: b'\t',
            };
            let (key, value) = fields.key_and_value(line.as_bytes());
            assert_eq!(fields.of_key(line.as_bytes()), key, "{line:?}");
            (
                str::from_utf8(key).expect("text"),
                str::from_utf8(value).expect("text"),
            )
        };
        assert_eq!(split("a\tb\tc", 1), ("a", "b\tc"));
        assert_eq!(split("a\tb\tc", 2), ("a\tb", "c"));
        assert_eq!(split("a\tb\tc", 3), ("a\tb\tc", ""));
        assert_eq!(split("a\tb\tc", u32::MAX), ("a\tb\tc", ""));
        assert_eq!(split("a", 1), ("a", ""));
        assert_eq!(split("\ta", 1), ("", "a"));
        assert_eq!(split("\t\ta", 2), ("\t", "a"));
        assert_eq!(split("", 2), ("", ""));
    }

    proptest! {
        #[test]
        fn pieces_of_any_length_give_same_lines(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'a'), any::<u8>()], 0..200),
            cuts in proptest::collection::vec(0_usize..200, 0..8),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            let mut expected: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            if expected.last().is_some_and(Vec::is_empty) {
                expected.pop();
            }
            prop_assert_eq!(lines(&pieces, 1000), Ok(expected));
        }
    }
}

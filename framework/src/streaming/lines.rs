//! Splitting of a command's output into lines, and of a line into key and value.

use std::num::NonZeroU32;

use thiserror::Error;

/// A line did not end within the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a line of more than {limit} bytes; a line may be as long as --task-memory")]
pub(super) struct LineTooLong {
    limit: usize,
}

/// Makes lines of pieces of any length.
#[derive(Debug)]
pub(super) struct OutputLines {
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
    limit: usize,
}

impl OutputLines {
    pub(super) fn new(limit: usize) -> OutputLines {
        OutputLines { begun: Vec::new(), limit }
    }

    /// Hands out each line that ends in this piece, without its newline.
    pub(super) fn take(&mut self, piece: &[u8], mut each: impl FnMut(&[u8])) -> Result<(), LineTooLong> {
        let mut rest = piece;
        while let Some(newline) = memchr::memchr(b'\n', rest) {
            let (line, after) = (&rest[..newline], &rest[newline + 1..]);
            if self.begun.is_empty() {
                self.check(line.len())?;
                each(line);
            } else {
                self.begin(line)?;
                each(&self.begun);
                self.begun.clear();
            }
            rest = after;
        }
        self.begin(rest)
    }

    /// Hands out what comes after the last newline, if anything does.
    pub(super) fn finish(&mut self, mut each: impl FnMut(&[u8])) {
        if !self.begun.is_empty() {
            each(&self.begun);
            self.begun.clear();
        }
    }

    fn begin(&mut self, part: &[u8]) -> Result<(), LineTooLong> {
        self.check(self.begun.len() + part.len())?;
        self.begun.extend_from_slice(part);
        Ok(())
    }

    fn check(&self, length: usize) -> Result<(), LineTooLong> {
        if length > self.limit { Err(LineTooLong { limit: self.limit }) } else { Ok(()) }
    }
}

/// The first fields of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FirstFields {
    pub(super) count: NonZeroU32,
    pub(super) separator: u8,
}

impl FirstFields {
    /// The fields, and what stands after the separator behind them; a line of no more fields is all key.
    pub(super) fn key_and_value(self, line: &[u8]) -> (&[u8], &[u8]) {
        match self.end(line) {
            Some(end) => (&line[..end], &line[end + 1..]),
            None => (line, &[]),
        }
    }

    /// The fields of a key, or all of it.
    pub(super) fn of_key(self, key: &[u8]) -> &[u8] {
        &key[..self.end(key).unwrap_or(key.len())]
    }

    /// The separator behind the fields.
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
        let (mut lines, mut found) = (OutputLines::new(limit), Vec::new());
        for piece in pieces {
            lines.take(piece, |line| found.push(line.to_vec()))?;
        }
        lines.finish(|line| found.push(line.to_vec()));
        Ok(found)
    }

    #[test]
    fn lines_end_at_newlines_and_the_last_one_needs_none() {
        let found = lines(&[b"a\n\nb", b"", b"c\n\xFF", b"d"], 10);
        assert_eq!(found, Ok(vec![b"a".to_vec(), b"".to_vec(), b"bc".to_vec(), b"\xFFd".to_vec()]));
        assert_eq!(lines(&[b"a\n"], 10), Ok(vec![b"a".to_vec()]));
        assert_eq!(lines(&[], 10), Ok(vec![]));
    }

    #[test]
    fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
        assert_eq!(lines(&[b"123", b"4\n1234"], 4).map(|lines| lines.len()), Ok(2));
        for pieces in [&[&b"12345\n"[..]][..], &[b"12345"], &[b"123", b"45"], &[b"123", b"45\n"]] {
            assert_eq!(lines(pieces, 4), Err(LineTooLong { limit: 4 }), "{pieces:?}");
        }
        let text = LineTooLong { limit: 4 }.to_string();
        assert_eq!(text, "a line of more than 4 bytes; a line may be as long as --task-memory");
    }

    #[test]
    fn the_tab_behind_the_fields_of_the_key_divides_key_and_value() {
        let divided = |line: &'static str, fields| {
            let fields = FirstFields { count: NonZeroU32::new(fields).expect("not 0"), separator: b'\t' };
            let (key, value) = fields.key_and_value(line.as_bytes());
            assert_eq!(fields.of_key(line.as_bytes()), key, "{line:?}");
            (str::from_utf8(key).expect("text"), str::from_utf8(value).expect("text"))
        };
        assert_eq!(divided("a\tb\tc", 1), ("a", "b\tc"));
        assert_eq!(divided("a\tb\tc", 2), ("a\tb", "c"));
        assert_eq!(divided("a\tb\tc", 3), ("a\tb\tc", ""));
        assert_eq!(divided("a\tb\tc", u32::MAX), ("a\tb\tc", ""));
        assert_eq!(divided("a", 1), ("a", ""));
        assert_eq!(divided("\ta", 1), ("", "a"));
        assert_eq!(divided("\t\ta", 2), ("\t", "a"));
        assert_eq!(divided("", 2), ("", ""));
    }

    proptest! {
        #[test]
        fn how_output_is_cut_into_pieces_does_not_matter(
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

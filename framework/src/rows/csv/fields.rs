//! The fields of one csv record.
//!
//! Owns quotes, separators and the ends of records, as RFC 4180 has them: a quote inside quotes is doubled,
//! and anything behind a closing quote belongs to its field. Does not own where the bytes come from.

use memchr::{memchr, memchr2};

const QUOTE: u8 = b'"';

/// A quoted field that nothing closes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unclosed;

/// How much of the bytes a record took, its newline included, and how many fields it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) bytes: usize,
    pub(super) fields: usize,
}

/// Takes one record off the front of `bytes`, and hands each of its fields to `each` with its number. `None`
/// where the record may go on behind `bytes`, which it cannot when they are `all` there is. Quoted fields are
/// put together in `scratch`.
pub(super) fn take_record(
    bytes: &[u8],
    all: bool,
    delimiter: u8,
    scratch: &mut Vec<u8>,
    mut each: impl FnMut(usize, &[u8]),
) -> Result<Option<Taken>, Unclosed> {
    let mut at = 0;
    let mut fields = 0;
    loop {
        let quoted = bytes.get(at) == Some(&QUOTE);
        if quoted {
            scratch.clear();
            match take_quoted(&bytes[at..], all, scratch) {
                Some(taken) => at += taken,
                None if all => return Err(Unclosed),
                None => return Ok(None),
            }
        }
        let rest = &bytes[at..];
        let end = match memchr2(delimiter, b'\n', rest) {
            Some(end) => end,
            None if all => rest.len(),
            None => return Ok(None),
        };
        let ends_line = rest.get(end) != Some(&delimiter);
        let plain = match (&rest[..end], rest.get(end)) {
            ([field @ .., b'\r'], Some(b'\n')) => field,
            (field, _) => field,
        };
        if quoted {
            scratch.extend_from_slice(plain);
            each(fields, scratch);
        } else {
            each(fields, plain);
        }
        fields += 1;
        at += end;
        if ends_line {
            return Ok(Some(Taken { bytes: (at + 1).min(bytes.len()), fields }));
        }
        at += 1;
    }
}

/// What stands in quotes at the front of `bytes`, and how many bytes that takes; `None` where no
/// quote closes it.
fn take_quoted(bytes: &[u8], all: bool, scratch: &mut Vec<u8>) -> Option<usize> {
    let mut at = 1;
    loop {
        let end = at + memchr(QUOTE, &bytes[at..])?;
        scratch.extend_from_slice(&bytes[at..end]);
        at = end + 1;
        match bytes.get(at) {
            Some(&QUOTE) => {
                scratch.push(QUOTE);
                at += 1;
            }
            // The other one of a pair may follow.
            None if !all => return None,
            _ => return Some(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn fields(bytes: &[u8], all: bool) -> Result<Option<(usize, Vec<String>)>, Unclosed> {
        let mut found = Vec::new();
        let taken = take_record(bytes, all, b',', &mut Vec::new(), |number, field| {
            assert_eq!(number, found.len());
            found.push(String::from_utf8_lossy(field).into_owned());
        })?;
        assert!(taken.is_none_or(|taken| taken.fields == found.len()));
        Ok(taken.map(|taken| (taken.bytes, found)))
    }

    fn check(bytes: &str, taken: usize, expected: &[&str]) {
        let expected = expected.iter().map(|field| (*field).to_owned()).collect();
        assert_eq!(fields(bytes.as_bytes(), true), Ok(Some((taken, expected))), "{bytes:?}");
    }

    #[test]
    fn fields_are_taken_apart_as_the_standard_says() {
        check("a,b\nc", 4, &["a", "b"]);
        check("a,,\r\nc", 5, &["a", "", ""]);
        check("\"a,\nb\",\"say \"\"x\"\"\"\r\n", 20, &["a,\nb", "say \"x\""]);
        check("\"\"", 2, &[""]);
        check("a\"b,c", 5, &["a\"b", "c"]);
        check("\"a\"b,c", 6, &["ab", "c"]);
        check("a\rb", 3, &["a\rb"]);
    }

    #[test]
    fn a_record_that_may_go_on_is_none_yet() {
        for start in ["", "a", "a,", "\"a\n", "\"a\"", "a,\"b\"\"", "\"a\",b"] {
            assert_eq!(fields(start.as_bytes(), false), Ok(None), "{start:?}");
        }
        assert_eq!(fields(b"a,\"b\n", true), Err(Unclosed));
    }

    proptest! {
        #[test]
        fn what_the_csv_crate_writes_is_read(rows in vec(vec("[a\"\n\r, ]{0,4}", 2..5), 1..6)) {
            let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
            for row in &rows {
                writer.write_record(row).expect("a Vec takes every write");
            }
            let bytes = writer.into_inner().expect("a Vec takes every write");
            let mut rest = &bytes[..];
            for row in rows {
                let (taken, found) = fields(rest, true).expect("it is closed").expect("it is whole");
                prop_assert_eq!(found, row);
                rest = &rest[taken..];
            }
            prop_assert!(rest.is_empty());
        }
    }
}

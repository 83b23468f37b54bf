//! The fields of one csv record, by RFC 4180: quotes inside quotes are doubled, and data after a closing
//! quote belongs to the field.

use memchr::{memchr, memchr2, memchr3};

/// The special characters.
#[derive(Debug, Clone, Copy)]
pub struct Syntax {
    /// The separator of fields.
    pub delimiter: u8,
    /// The quote around fields.
    pub quote: u8,
    /// Whether a field can be quoted.
    pub quoting: bool,
    /// Inside quotes, makes the next byte literal.
    pub escape: Option<u8>,
    /// Whether two quotes inside quotes mean one.
    pub double_quote: bool,
}

impl Default for Syntax {
    fn default() -> Self {
        Syntax {
            delimiter: b',',
            quote: b'"',
            quoting: true,
            escape: None,
            double_quote: true,
        }
    }
}

/// The error for a quoted field that does not end.
#[derive(Debug, PartialEq, Eq)]
pub struct Unclosed;

/// The size of a taken record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordSize {
    /// Bytes, with the line end.
    pub bytes: usize,
    /// Number of fields.
    pub fields: usize,
}

/// Takes one record from the front of `bytes`, up to `\n`, `\r\n` or `\r`, and passes each field with its
/// number to `each`. Returns `None` if the record may continue after `bytes`; with `all`, there are no
/// further bytes. Quoted fields are assembled in `scratch`.
pub(super) fn take_record(
    bytes: &[u8],
    all: bool,
    syntax: Syntax,
    scratch: &mut Vec<u8>,
    mut each: impl FnMut(usize, &[u8]),
) -> Result<Option<RecordSize>, Unclosed> {
    let mut at = 0;
    let mut fields = 0;
    loop {
        let is_quoted = syntax.quoting && bytes.get(at) == Some(&syntax.quote);
        if is_quoted {
            scratch.clear();
            match take_quoted(&bytes[at..], all, syntax, scratch) {
                Some(taken) => at += taken,
                None if all => return Err(Unclosed),
                None => return Ok(None),
            }
        }
        let rest = &bytes[at..];
        let end = match memchr3(syntax.delimiter, b'\n', b'\r', rest) {
            Some(end) => end,
            None if all => rest.len(),
            None => return Ok(None),
        };
        if is_quoted {
            scratch.extend_from_slice(&rest[..end]);
            each(fields, scratch);
        } else {
            each(fields, &rest[..end]);
        }
        fields += 1;
        at += end;
        let line_end = match &rest[end..] {
            [byte, ..] if *byte == syntax.delimiter => {
                at += 1;
                continue;
            }
            [b'\r', b'\n', ..] => 2,
            // A newline may follow.
            [b'\r'] if !all => return Ok(None),
            [] => 0,
            [_, ..] => 1,
        };
        return Ok(Some(RecordSize {
            bytes: at + line_end,
            fields,
        }));
    }
}

/// Appends the content of a quoted field to `scratch`; returns the number of bytes, or `None` without a
/// closing quote.
fn take_quoted(bytes: &[u8], all: bool, syntax: Syntax, scratch: &mut Vec<u8>) -> Option<usize> {
    let quote = syntax.quote;
    let mut at = 1;
    loop {
        let found = match syntax.escape {
            Some(escape) => memchr2(quote, escape, &bytes[at..]),
            None => memchr(quote, &bytes[at..]),
        };
        let end = at + found?;
        scratch.extend_from_slice(&bytes[at..end]);
        at = end + 1;
        let next = bytes.get(at);
        if syntax.escape == Some(bytes[end]) && bytes[end] != quote {
            scratch.push(*next?);
            at += 1;
        } else if syntax.double_quote && next == Some(&quote) {
            scratch.push(quote);
            at += 1;
        } else if next.is_none() && !all {
            // The second quote of a pair may follow.
            return None;
        } else {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const SYNTAX: Syntax = Syntax {
        delimiter: b',',
        quote: b'"',
        quoting: true,
        escape: None,
        double_quote: true,
    };

    fn fields(bytes: &[u8], all: bool) -> Result<Option<(usize, Vec<String>)>, Unclosed> {
        fields_in(SYNTAX, bytes, all)
    }

    fn fields_in(
        syntax: Syntax,
        bytes: &[u8],
        all: bool,
    ) -> Result<Option<(usize, Vec<String>)>, Unclosed> {
        let mut found = Vec::new();
        let taken = take_record(bytes, all, syntax, &mut Vec::new(), |number, field| {
            assert_eq!(number, found.len());
            found.push(String::from_utf8_lossy(field).into_owned());
        })?;
        assert!(taken.is_none_or(|taken| taken.fields == found.len()));
        Ok(taken.map(|taken| (taken.bytes, found)))
    }

    fn check(bytes: &str, taken: usize, expected: &[&str]) {
        let expected = expected.iter().map(|field| (*field).to_owned()).collect();
        assert_eq!(
            fields(bytes.as_bytes(), true),
            Ok(Some((taken, expected))),
            "{bytes:?}"
        );
    }

    #[test]
    fn rfc_4180_fields_are_parsed() {
        check("a,b\nc", 4, &["a", "b"]);
        check("a,,\r\nc", 5, &["a", "", ""]);
        check(
            "\"a,\nb\",\"say \"\"x\"\"\"\r\n",
            20,
            &["a,\nb", "say \"x\""],
        );
        check("\"\"", 2, &[""]);
        check("a\"b,c", 5, &["a\"b", "c"]);
        check("\"a\"b,c", 6, &["ab", "c"]);
        check("a\rb", 2, &["a"]);
        check("\"a\rb\"\r\n", 7, &["a\rb"]);
    }

    #[test]
    fn incomplete_record_needs_more_input() {
        for start in [
            "",
            "a",
            "a,",
            "\"a\n",
            "\"a\"",
            "a,\"b\"\"",
            "\"a\",b",
            "a\r",
        ] {
            assert_eq!(fields(start.as_bytes(), false), Ok(None), "{start:?}");
        }
        assert_eq!(fields(b"a,\"b\n", true), Err(Unclosed));
    }

    /// Reads with the csv crate.
    fn theirs(syntax: Syntax, bytes: &[u8]) -> Vec<Vec<String>> {
        let mut reader = csv::ReaderBuilder::new();
        reader
            .has_headers(false)
            .flexible(true)
            .quote(syntax.quote)
            .quoting(syntax.quoting);
        reader
            .escape(syntax.escape)
            .double_quote(syntax.double_quote);
        let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
        let records = reader.from_reader(bytes).into_byte_records();
        records
            .map(|record| {
                record
                    .expect("bytes can be read")
                    .iter()
                    .map(text)
                    .collect()
            })
            .collect()
    }

    proptest! {
        #[test]
        fn record_with_any_syntax_equals_the_csv_crate(
            text in "([a\\\\'\"]{0,3}|'[a\\\\',\n\"]{0,4}'|\"[a\\\\',\r\"]{0,4}\")([,\n\r]([a\\\\'\"]{0,3}|'[a,\n]{0,3}')){0,6}",
            quote in prop_oneof![Just(b'"'), Just(b'\'')],
            quoting in any::<bool>(),
            escape in prop_oneof![Just(None), Just(Some(b'\\'))],
            double_quote in any::<bool>(),
        ) {
            let syntax = Syntax { delimiter: b',', quote, quoting, escape, double_quote };
            let mut found = Vec::new();
            let mut rest = text.as_bytes();
            while !rest.is_empty() {
                // The csv crate accepts an open quote.
                let Ok(taken) = fields_in(syntax, rest, true) else { return Ok(()) };
                let (taken, record) = taken.expect("it is whole");
                if !matches!(&rest[..taken], b"\n" | b"\r\n" | b"\r") {
                    found.push(record);
                }
                rest = &rest[taken..];
            }
            prop_assert_eq!(found, theirs(syntax, text.as_bytes()));
        }

        #[test]
        fn csv_crate_output_is_read(rows in vec(vec("[a\"\n\r, ]{0,4}", 2..5), 1..6)) {
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

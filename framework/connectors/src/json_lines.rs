//! Rows that are a JSON value on each line.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Whether a line is a `T`.
pub fn is_row<'l, T: Deserialize<'l>>(line: &'l [u8]) -> bool {
    serde_json::from_slice::<T>(line).is_ok()
}

/// The row in a line. The error says why it is not a `T`. `is_row` is [`is_row`] for the type of any other line.
pub fn parse<'l, T: Deserialize<'l>>(line: &'l [u8], is_row: impl Fn(&[u8]) -> bool) -> Result<T, String> {
    let row = serde_json::from_slice::<T>(line).map_err(|error| reason(&error))?;
    match may_have_wide_integers(line).then(|| inexact_integer(line, is_row)).flatten() {
        Some(integer) => Err(format!(
            "the integer {integer} has more than 64 bits and would be rounded to a double; give its field a type of \
             its own, such as i128 or f64"
        )),
        None => Ok(row),
    }
}

/// Digits of the shortest integer that 64 bits cannot hold.
const WIDE_DIGITS: usize = 19;

/// Whether there are so many digits in a row: then one of every so many bytes is a digit.
#[inline]
fn may_have_wide_integers(line: &[u8]) -> bool {
    let digits_from = |at: usize| {
        let before = line[..at].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        before + line[at..].iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut probes = (WIDE_DIGITS - 1..line.len()).step_by(WIDE_DIGITS);
    probes.any(|at| line[at].is_ascii_digit() && digits_from(at) >= WIDE_DIGITS)
}

/// An integer of a valid line that the row type gets as a double, because it takes any number: serde_json has no
/// other form for it then. A type that asks for a float or for 128 bits gets what it asks for.
#[cold]
fn inexact_integer(line: &[u8], is_row: impl Fn(&[u8]) -> bool) -> Option<&str> {
    let is_row_with = |integer: Range<usize>, other: &[u8]| {
        is_row(&[&line[..integer.start], other, &line[integer.end..]].concat())
    };
    // Whether a type looks at a value at all, a number beyond all doubles tells; whether it takes any, a text.
    let is_inexact = |integer: &Range<usize>| {
        !is_row_with(integer.clone(), b"1e999") && is_row_with(integer.clone(), b"\"\"")
    };
    let inexact = wide_integers(line).into_iter().find(is_inexact)?;
    std::str::from_utf8(&line[inexact]).ok()
}

/// Where the integers of a valid line stand that 64 bits cannot hold.
fn wide_integers(line: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < line.len() {
        let start = at;
        let is_number = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        match line[at] {
            b'"' => {
                at += 1;
                while line.get(at).is_some_and(|byte| *byte != b'"') {
                    at += 1 + usize::from(line[at] == b'\\');
                }
                at += 1;
            }
            b'0'..=b'9' | b'-' => {
                at += line[at..].iter().take_while(is_number).count();
                let number = std::str::from_utf8(&line[start..at]).unwrap_or_default();
                let is_integer = number.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-'));
                if is_integer && number.parse::<u64>().is_err() && number.parse::<i64>().is_err() {
                    found.push(start..at);
                }
            }
            _ => at += 1,
        }
    }
    found
}

/// For serde_json every row is line 1.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.split_once(" at line 1 column ") {
        Some((what, column)) => format!("{what}, at column {column}"),
        None => text,
    }
}

/// Appends a row and its newline to `out`. Fails for a value that JSON has no form for.
pub fn write<T: Serialize + ?Sized>(row: &T, out: &mut Vec<u8>) -> Result<(), String> {
    serde_json::to_writer(&mut *out, row).map_err(|error| error.to_string())?;
    out.push(b'\n');
    Ok(())
}

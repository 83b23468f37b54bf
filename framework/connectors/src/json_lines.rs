//! Rows with one JSON value per line.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::strict;

/// Returns whether a line is a `T`.
pub fn is_row<'l, T: Deserialize<'l>>(line: &'l [u8]) -> bool {
    serde_json::from_slice::<T>(line).is_ok()
}

/// Parses a line; the error is the reason. `is_row` is [`is_row`] for the type of the row, for any other
/// line.
pub fn parse<'l, T: Deserialize<'l>>(
    line: &'l [u8],
    is_row: impl Fn(&[u8]) -> bool,
) -> Result<T, String> {
    let mut json = serde_json::Deserializer::from_slice(line);
    let row = strict::deserialize(&mut json).and_then(|row| json.end().map(|()| row));
    let row = row.map_err(|error| reason(&error))?;
    match may_have_wide_integers(line)
        .then(|| inexact_integer(line, is_row))
        .flatten()
    {
        Some(integer) => Err(format!(
            "the integer {integer} exceeds 64 bits and would be rounded to a double; declare its field with its \
             own type, such as i128 or f64"
        )),
        None => Ok(row),
    }
}

/// Digits of the shortest integer that exceeds 64 bits.
const WIDE_DIGITS: usize = 19;

/// Returns whether a line contains this many consecutive digits: then some byte at a multiple of it is a
/// digit.
#[inline]
fn may_have_wide_integers(line: &[u8]) -> bool {
    let digits_from = |at: usize| {
        let before = line[..at]
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        before
            + line[at..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count()
    };
    let mut probes = (WIDE_DIGITS - 1..line.len()).step_by(WIDE_DIGITS);
    probes.any(|at| line[at].is_ascii_digit() && digits_from(at) >= WIDE_DIGITS)
}

/// Returns an integer that the row type would receive as a rounded double, because it accepts any number:
/// `serde_json` then has no other form for it. Fields of 128 bits or of floats receive their own type.
#[cold]
fn inexact_integer(line: &[u8], is_row: impl Fn(&[u8]) -> bool) -> Option<&str> {
    let is_row_with = |integer: Range<usize>, other: &[u8]| {
        is_row(&[&line[..integer.start], other, &line[integer.end..]].concat())
    };
    // Tests with 1e999 whether the type reads this value, and with a text whether it accepts any value.
    let is_inexact = |integer: &Range<usize>| {
        !is_row_with(integer.clone(), b"1e999") && is_row_with(integer.clone(), b"\"\"")
    };
    let inexact = wide_integers(line).into_iter().find(is_inexact)?;
    std::str::from_utf8(&line[inexact]).ok()
}

/// Returns the ranges of integers over 64 bits in a valid line.
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
                let is_integer = number
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'-'));
                if is_integer && number.parse::<u64>().is_err() && number.parse::<i64>().is_err() {
                    found.push(start..at);
                }
            }
            _ => at += 1,
        }
    }
    found
}

/// Removes the line number, which is always 1.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.split_once(" at line 1 column ") {
        Some((what, column)) => format!("{what}, at column {column}"),
        None => text,
    }
}

/// Appends a row and its newline to `out`. Fails for a value without a JSON form.
pub fn write<T: Serialize + ?Sized>(row: &T, out: &mut Vec<u8>) -> Result<(), String> {
    serde_json::to_writer(&mut *out, row).map_err(|error| error.to_string())?;
    out.push(b'\n');
    Ok(())
}

//! CSV files of results, which people open in spreadsheets. A spreadsheet takes a cell that begins with `=`, `+`, `-`
//! or `@` for a formula, and names of jobs, users and files are texts of other people. Such a text gets an
//! apostrophe in front, so that it is shown as text; numbers stay numbers.

use std::io::{self, Write};

use napreduce_protocol::without_formula;
use serde::Serialize;

/// Rows that are formatted at once.
const ROWS_AT_ONCE: usize = 256;

/// Writes rows with a header (RFC 4180) and returns their number. A text that a spreadsheet would take for a
/// formula gets an apostrophe in front.
///
/// # Errors
/// If a row cannot be written, or has fields that are not single values.
pub fn write_csv<T: Serialize>(
    to: impl Write,
    rows: impl IntoIterator<Item = T>,
) -> io::Result<usize> {
    let mut table = csv::WriterBuilder::new().flexible(true).from_writer(to);
    let mut rows = rows.into_iter();
    let mut count = 0;
    loop {
        let mut formatted = csv::WriterBuilder::new()
            .has_headers(count == 0)
            .from_writer(Vec::new());
        let before = count;
        for row in rows.by_ref().take(ROWS_AT_ONCE) {
            formatted.serialize(row).map_err(io::Error::other)?;
            count += 1;
        }
        let formatted = formatted.into_inner().map_err(|error| error.into_error())?;
        let mut cells = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(&*formatted);
        for record in cells.records() {
            let record = record.map_err(io::Error::other)?;
            table
                .write_record(record.iter().map(|cell| without_formula(cell).into_owned()))
                .map_err(io::Error::other)?;
        }
        if count < before + ROWS_AT_ONCE {
            break;
        }
    }
    table.flush()?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Row<'a> {
        name: &'a str,
        seconds: f64,
        deadline: Option<i64>,
    }

    fn written(names: &[&str]) -> String {
        let rows = names.iter().map(|name| Row {
            name,
            seconds: -1.5,
            deadline: Some(-7),
        });
        let mut bytes = Vec::new();
        assert_eq!(
            write_csv(&mut bytes, rows).expect("it is written"),
            names.len()
        );
        String::from_utf8(bytes).expect("UTF-8")
    }

    #[test]
    fn texts_that_look_like_formulas_get_an_apostrophe_and_numbers_do_not() {
        for (name, cell) in [
            ("=1+1", "'=1+1"),
            (
                "=HYPERLINK(\"http://a\")",
                "\"'=HYPERLINK(\"\"http://a\"\")\"",
            ),
            ("+1+cmd", "'+1+cmd"),
            ("-nightly", "'-nightly"),
            ("@sum(1,2)", "\"'@sum(1,2)\""),
            ("\t=1", "'\t=1"),
            ("\r=1", "\"'\r=1\""),
            ("\n=1", "\"'\n=1\""),
            ("\u{ff1d}1", "'\u{ff1d}1"),
            ("-inf", "'-inf"),
            ("-", "'-"),
            ("--1", "'--1"),
            ("-5", "-5"),
            ("+1.5e-7", "+1.5e-7"),
            ("a=b", "a=b"),
            ("'=1", "'=1"),
            ("", ""),
        ] {
            assert_eq!(
                written(&[name]),
                format!("name,seconds,deadline\n{cell},-1.5,-7\n"),
                "{name:?}"
            );
        }
    }

    #[test]
    fn header_is_written_once_for_any_number_of_rows() {
        for count in [
            1,
            ROWS_AT_ONCE - 1,
            ROWS_AT_ONCE,
            ROWS_AT_ONCE + 1,
            2 * ROWS_AT_ONCE,
        ] {
            let text = written(&vec!["=a"; count]);
            assert_eq!(text.lines().count(), count + 1);
            assert_eq!(text.matches("name").count(), 1);
            assert_eq!(text.matches("\n'=a,").count(), count);
        }
        assert_eq!(written(&[]), "");
    }
}

//! How answers are printed: tables for people, JSON for programs.
//!
//! Owns the two forms and how moments and spans are written. Does not own what is in them.

use std::io::{self, Write};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use comfy_table::{ContentArrangement, Table, presets};
use napreduce_live::one_line;
use serde_json::Value;

/// `--format`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
}

/// The flag of every listing.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct FormatArguments {
    /// How to print
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "table")]
    pub format: Format,
}

impl FormatArguments {
    /// Prints one of the two.
    pub fn print(self, text: impl FnOnce() -> String, json: impl FnOnce() -> Value) -> Result<()> {
        match self.format {
            Format::Table => print(&text()),
            Format::Json => {
                let text = serde_json::to_string_pretty(&json()).context("cannot write JSON")?;
                print(&(text + "\n"))
            }
        }
    }
}

/// Prints to standard output. Somebody who has read enough, such as `head`, is no error.
pub fn print(text: &str) -> Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot print"),
    }
}

/// Columns that one cell may take, and the last one of a row, where sentences stand.
const CELL_COLUMNS_MAX: usize = 48;
const LAST_CELL_COLUMNS_MAX: usize = 200;

/// Rows under headings, in columns as wide as they need to be; what is longer than a cell may be is cut.
pub fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings.iter().copied());
    for row in rows {
        let last = row.len().saturating_sub(1);
        table.add_row(row.into_iter().enumerate().map(|(at, cell)| {
            one_line(&cell, if at == last { LAST_CELL_COLUMNS_MAX } else { CELL_COLUMNS_MAX })
        }));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let lines = table.to_string();
    lines.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A moment in UTC.
pub fn moment(millis: u64) -> String {
    let stamp = i64::try_from(millis).ok().and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
    stamp.map_or_else(|| "?".to_owned(), |stamp| format!("{stamp:.0}"))
}

/// A span in the coarsest terms that still say something.
pub fn span(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0..10 => format!("{}.{} s", seconds, millis % 1000 / 100),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// What is missing in a table.
pub fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let rows = [vec!["a".to_owned(), "b c".to_owned()], vec!["long".to_owned(), String::new()]];
        assert_eq!(table(&["X", "Y"], rows), "X     Y\na     b c\nlong\n");
    }

    #[test]
    fn nothing_in_a_cell_is_more_than_a_cell() {
        let rows = ["a\nfake_0001  row", "\u{1b}[2Jgone", "\u{202e}back", &"wide ".repeat(1_000)];
        let rows = rows.map(|text| vec![text.to_owned(), "b".to_owned()]);
        let text = table(&["X", "Y"], rows);
        assert_eq!(text.lines().count(), 5, "{text}");
        assert!(!text.contains(['\u{1b}', '\u{202e}']) && text.contains("a\\nfake_0001  row"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= CELL_COLUMNS_MAX + 3), "{text}");
        assert!(text.contains('…'), "{text}");
        let last = table(&["X"], [vec!["日".repeat(5_000)]]);
        assert!(last.lines().all(|line| line.chars().count() <= LAST_CELL_COLUMNS_MAX / 2), "{last}");
    }

    #[test]
    fn moments_and_spans_are_readable() {
        assert_eq!(moment(1_790_000_000_123), "2026-09-21T14:13:20Z");
        assert_eq!(moment(u64::MAX), "?");
        assert_eq!(span(1_234), "1.2 s");
        assert_eq!(span(61_000), "1 min 1 s");
        assert_eq!(span(7_260_000), "2 h 1 min");
    }
}

//! Output formats: tables for people, JSON for programs.

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use napreduce_protocol::printing::print;
use serde::Serialize;

use crate::screen::Screen;

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
    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "table")]
    pub format: Format,

    /// Print times in UTC instead of local time
    #[arg(long)]
    pub utc: bool,
}

impl FormatArguments {
    /// Prints the text or the answer as JSON.
    pub fn print<A: Serialize>(
        self,
        text: impl FnOnce(&Screen) -> String,
        answer: impl FnOnce() -> A,
    ) -> Result<()> {
        match self.format {
            Format::Table => print(text(&Screen::of_stdout(self.utc))),
            Format::Json => {
                // Through a `Value`, which sorts fields by name.
                let value = serde_json::to_value(answer()).context("cannot write JSON")?;
                print(format_args!("{value:#}\n"));
            }
        }
        Ok(())
    }
}

/// Formats a table of any width.
pub fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    Screen::plain().table(headings, rows)
}

/// Formats a time in UTC.
pub fn moment(millis: u64) -> String {
    Screen::plain().moment(millis)
}

/// Formats a duration, with two units at most.
pub fn span(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0..10 => format!("{}.{} s", seconds, millis % 1000 / 100),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Returns `-` for a missing cell.
pub fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn span_has_at_most_two_units() {
        assert_eq!(span(1_234), "1.2 s");
        assert_eq!(span(61_000), "1 min 1 s");
        assert_eq!(span(7_260_000), "2 h 1 min");
    }
}

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
    /// How to print
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "table")]
    pub format: Format,

    /// Times in UTC instead of local ones (those of TZ)
    #[arg(long)]
    pub utc: bool,
}

impl FormatArguments {
    /// Prints one of the two.
    pub fn print<A: Serialize>(
        self,
        text: impl FnOnce(&Screen) -> String,
        answer: impl FnOnce() -> A,
    ) -> Result<()> {
        match self.format {
            Format::Table => print(text(&Screen::of_stdout(self.utc))),
            Format::Json => {
                // As a value first: its fields are in the order of the alphabet, whatever they are made from.
                let value = serde_json::to_value(answer()).context("cannot write JSON")?;
                print(format_args!("{value:#}\n"));
            }
        }
        Ok(())
    }
}

/// A table for a file as well as for a person.
pub fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    Screen::plain().table(headings, rows)
}

/// A moment in UTC.
pub fn moment(millis: u64) -> String {
    Screen::plain().moment(millis)
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
    fn spans_are_readable() {
        assert_eq!(span(1_234), "1.2 s");
        assert_eq!(span(61_000), "1 min 1 s");
        assert_eq!(span(7_260_000), "2 h 1 min");
    }
}

//! Reports of experiments: a table for people, JSON for programs, and both as files.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use crate::workspace::write;

/// The report of an experiment.
pub trait Report: Serialize {
    /// The figures as a table, with the conditions above and failures below.
    fn table(&self) -> String;

    /// Decides the exit status.
    fn succeeded(&self) -> bool {
        true
    }

    fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self).context("cannot write the report as JSON")? + "\n")
    }

    /// Writes `report.txt` and `report.json`.
    fn write(&self, folder: &Path) -> Result<()> {
        write(&folder.join("report.txt"), self.table())?;
        write(&folder.join("report.json"), self.json()?)
    }
}

/// A table of text with left-aligned columns first, then right-aligned ones.
pub fn table(left: &[&str], right: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table
        .load_preset(NOTHING)
        .set_header(left.iter().chain(right))
        .add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        let first = index == 0;
        column.set_padding((if first { 0 } else { 1 }, 1));
        if index >= left.len() {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// An empty cell of a table.
pub fn dash() -> String {
    "-".to_owned()
}

/// Seconds, or milliseconds below one second.
pub fn seconds(value: f64) -> String {
    if value < 1.0 {
        format!("{:.1} ms", value * 1_000.0)
    } else {
        format!("{value:.2} s")
    }
}

/// `1 run`, `2 runs`.
pub fn counted(count: usize, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

/// A rounded time: seconds below a minute and a half, otherwise minutes.
pub fn minutes(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds < 90 => format!("{seconds} s"),
        seconds => format!("{} min", (seconds + 30) / 60),
    }
}

//! Owns how figures look as a table in a terminal or a text file.
//! Which figures a report has, and what they mean, belongs to the reports.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

/// A table of text: columns named in `left` come first and read from the left, those in `right` are numbers.
pub fn table(left: &[&str], right: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(left.iter().chain(right)).add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        let first = index == 0;
        column.set_padding((if first { 0 } else { 1 }, 1));
        if index >= left.len() {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// What stands in a table where there is no figure.
pub fn dash() -> String {
    "-".to_owned()
}

/// Seconds with as many digits as mean something.
pub fn seconds(value: f64) -> String {
    if value < 1.0 { format!("{:.1} ms", value * 1_000.0) } else { format!("{value:.2} s") }
}

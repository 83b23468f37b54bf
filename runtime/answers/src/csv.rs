//! Lists as comma-separated values (RFC 4180), for spreadsheets and databases.

use std::collections::{BTreeMap, BTreeSet};

use napreduce_protocol::without_formula;
use serde_json::{Map, Value};

/// Formats rows with a header. Nested objects become columns such as `map.tasks`, lists are JSON.
///
/// `names` are the fields of a row, also if there are no rows; `first` is the leftmost column, the others are sorted.
pub fn csv_of(names: &[String], first: &str, rows: &[Map<String, Value>]) -> String {
    let mut columns = CsvColumns::new(names);
    for row in rows {
        columns.add(row);
    }
    let mut table = columns.into_table(first);
    for row in rows {
        table.push(row);
    }
    table.into_text()
}

/// The columns of a table, which are known after all of its rows: the fields of a nested object, which is null in some
/// rows.
pub struct CsvColumns {
    names: BTreeSet<String>,
}

impl CsvColumns {
    pub fn new(names: &[String]) -> CsvColumns {
        CsvColumns {
            names: names.iter().cloned().collect(),
        }
    }

    pub fn add(&mut self, row: &Map<String, Value>) {
        visit("", row, &mut |name, _| {
            if !self.names.contains(name) {
                self.names.insert(name.to_owned());
            }
        });
    }

    /// A table with these columns and without rows; `first` is the leftmost column.
    pub fn into_table(mut self, first: &str) -> CsvTable {
        // An object that is null in some rows has columns of its own from the others.
        let nested: BTreeSet<String> = self
            .names
            .iter()
            .filter_map(|name| Some(name.rsplit_once('.')?.0.to_owned()))
            .collect();
        self.names.retain(|name| !nested.contains(name));
        let mut columns: Vec<String> = self.names.into_iter().collect();
        columns.sort_by_key(|name| name != first);

        let mut text = String::new();
        push_line(&mut text, columns.iter().map(|name| cell(name)));
        CsvTable { columns, text }
    }
}

/// A table of comma-separated values.
pub struct CsvTable {
    columns: Vec<String>,
    text: String,
}

impl CsvTable {
    pub fn push(&mut self, row: &Map<String, Value>) {
        let mut cells: BTreeMap<String, String> = BTreeMap::new();
        visit("", row, &mut |name, found| {
            cells.insert(name.to_owned(), value(found));
        });
        let in_order = self
            .columns
            .iter()
            .map(|name| cells.remove(name).unwrap_or_default());
        push_line(&mut self.text, in_order);
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

/// Calls `found` with each value of an object that is no object itself, and its name, such as `map.tasks`.
fn visit(prefix: &str, object: &Map<String, Value>, found: &mut impl FnMut(&str, &Value)) {
    for (name, value) in object {
        let name = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}.{name}")
        };
        match value {
            Value::Object(inner) => visit(&name, inner, found),
            other => found(&name, other),
        }
    }
}

fn push_line(csv: &mut String, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.collect();
    csv.push_str(&cells.join(","));
    csv.push_str("\r\n");
}

fn value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => cell(text),
        Value::Array(_) | Value::Object(_) => cell(&value.to_string()),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Formats a text as a cell [without a formula](without_formula), quoted if necessary.
pub fn cell(text: &str) -> String {
    let text = without_formula(text);
    if text.contains(['"', ',', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rows(rows: &[Value]) -> Vec<Map<String, Value>> {
        rows.iter()
            .map(|row| row.as_object().expect("an object").clone())
            .collect()
    }

    #[test]
    fn nested_objects_become_columns() {
        let names = ["job", "left", "map", "name"].map(str::to_owned);
        let rows = rows(&[
            json!({ "job": "job_0002", "name": "a", "map": { "tasks": 3 }, "left": null }),
            json!({ "job": "job_0001", "name": "b", "map": { "tasks": 4 }, "left": { "likely": 7 } }),
        ]);
        let csv = csv_of(&names, "job", &rows);
        assert_eq!(
            csv,
            "job,left.likely,map.tasks,name\r\njob_0002,,3,a\r\njob_0001,7,4,b\r\n"
        );
        assert_eq!(csv_of(&names, "name", &[]), "name,job,left,map\r\n");
    }

    #[test]
    fn texts_are_quoted_and_are_no_formulas() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"x\"\nnow", "\"say \"\"x\"\"\nnow\""),
            (
                "=HYPERLINK(\"http://x\")",
                "\"'=HYPERLINK(\"\"http://x\"\")\"",
            ),
            ("+1+1", "'+1+1"),
            ("-1", "-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "\"'\r=1\""),
            ("＝1", "'＝1"),
            ("", ""),
        ] {
            assert_eq!(cell(text), expected, "{text:?}");
        }
        // Numbers stay numbers.
        let rows = rows(&[json!({ "difference": -7, "list": ["=1", 2] })]);
        assert_eq!(
            csv_of(&[], "difference", &rows),
            "difference,list\r\n-7,\"[\"\"=1\"\",2]\"\r\n"
        );
    }
}

//! Lists as comma-separated values (RFC 4180), for spreadsheets and databases.

use std::collections::BTreeSet;

use napreduce_protocol::without_formula;
use serde_json::{Map, Value};

/// Formats rows with a header. Nested objects become columns such as `map.tasks`, lists are JSON.
///
/// `names` are the fields of a row, also if there are no rows; `first` is the leftmost column, the others are sorted.
pub fn csv_of(names: &[String], first: &str, rows: &[Map<String, Value>]) -> String {
    let mut columns: BTreeSet<String> = names.iter().cloned().collect();
    let mut flat_rows = Vec::new();
    for row in rows {
        let mut cells = Map::new();
        flatten("", row, &mut cells);
        columns.extend(cells.keys().cloned());
        flat_rows.push(cells);
    }
    // An object that is null in some rows has columns of its own from the others.
    let nested: BTreeSet<String> = columns
        .iter()
        .filter_map(|name| Some(name.rsplit_once('.')?.0.to_owned()))
        .collect();
    columns.retain(|name| !nested.contains(name));
    let mut columns: Vec<String> = columns.into_iter().collect();
    columns.sort_by_key(|name| name != first);

    let mut csv = String::new();
    push_line(&mut csv, columns.iter().map(|name| cell(name)));
    for row in &flat_rows {
        push_line(
            &mut csv,
            columns
                .iter()
                .map(|name| row.get(name).map_or_else(String::new, value)),
        );
    }
    csv
}

fn flatten(prefix: &str, object: &Map<String, Value>, cells: &mut Map<String, Value>) {
    for (name, value) in object {
        let name = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}.{name}")
        };
        match value {
            Value::Object(inner) => flatten(&name, inner, cells),
            other => {
                cells.insert(name, other.clone());
            }
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

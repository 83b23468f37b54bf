//! Rows with one JSON value per line.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;

use napreduce::input::Skip;
use napreduce::rows::{JsonLines, JsonRows};
use napreduce::testing::JobTest;
use napreduce::{Emit, Job, borrowed};
use serde::{Deserialize, Serialize};

use super::kit::{TestFile, python, read, refused_or_intact, same_at_every_cut};

#[derive(Debug, Serialize, Deserialize)]
struct Visit<'a> {
    #[serde(borrow)]
    page: Cow<'a, str>,
    millis: Option<u64>,
}

const VISITS: &str = "\u{feff}{\"page\":\"/\",\"millis\":250}\n  \n{\"by\":[{}],\"page\":\"a\\n\\u00e4\"}\r\n{\"millis\":null,\"page\":\"ß\"}";

fn show(visit: Visit<'_>) -> String {
    format!("{:?} {:?}", visit.page, visit.millis)
}

fn visits() -> JsonRows<borrowed!(Visit)> {
    JsonRows::default()
}

#[test]
fn every_cut_gives_each_row_once() {
    let file = TestFile::new("visits.jsonl", VISITS);
    let rows = same_at_every_cut(&visits(), &file, 1..=file.size, show);
    assert_eq!(rows, ["\"/\" Some(250)", "\"a\\nä\" None", "\"ß\" None"]);
}

#[test]
fn reader_is_preemption_safe_at_every_row() {
    let by_page = || {
        Job::json_lines::<borrowed!(Visit)>()
            .map(|visit: Visit, out: &mut Emit<String, u64>| {
                out.emit(&visit.page, visit.millis.unwrap_or(0))
            })
            .output(JsonLines)
            .reduce(|page, millis, out| out.emit(&(page, millis.sum())))
    };
    let test = JobTest::new(by_page)
        .input(format!("{VISITS}\n{{\n"))
        .on_bad_input(Skip::All)
        .split_size(30);
    test.assert_preemption_safe();
    assert_eq!(test.run().text(), "[\"/\",250]\n[\"a\\nä\",0]\n[\"ß\",0]\n");
}

#[test]
fn invalid_row_is_quoted_with_line() {
    let file = TestFile::new("a.jsonl", "{\"page\":\"/\"}\n{\"page\":1}\n");
    let error = read(&visits(), &file.whole(), false, show)
        .expect_err("it is refused")
        .to_string();
    let error = error.replace(&file.path.display().to_string(), "a.jsonl");
    assert_eq!(
        error,
        "a.jsonl has a bad row at line 2: invalid type: integer `1`, expected a string, at column 9; the row is \
         \"{\\\"page\\\":1}\"; fix the row, or pass --bad-input skip to skip bad rows"
    );
}

#[test]
fn truncated_file_gives_prefix_or_error() {
    let intact =
        read(&visits(), &TestFile::new("a", VISITS).whole(), false, show).expect("it is intact");
    for cut in 0..VISITS.len() {
        refused_or_intact(
            &visits(),
            &TestFile::new("a.jsonl", &VISITS.as_bytes()[..cut]),
            &intact,
            show,
        );
    }
    let deep = TestFile::new("a.jsonl", "[".repeat(200_000));
    let message = refused_or_intact(&visits(), &deep, &intact, show).expect("it is refused");
    assert!(
        message.contains("at line 1: invalid") && message.len() < 600,
        "{message}"
    );
}

#[test]
fn polars_files_round_trip() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let script = "import polars; polars.DataFrame({'page': ['/', 'a\\n\"'], 'millis': [1, None]}).write_ndjson('theirs.jsonl')";
    if python(&["polars"], script, folder.path()).is_none() {
        return;
    }
    let theirs = fs::read(folder.path().join("theirs.jsonl")).expect("Python wrote it");
    let file = TestFile::new("theirs.jsonl", &theirs);
    let rows = same_at_every_cut(&visits(), &file, 1..=file.size, show);
    assert_eq!(rows, ["\"/\" Some(1)", "\"a\\n\\\"\" None"]);

    let copy = || {
        Job::json_lines::<borrowed!(Visit)>()
            .map_only_to(JsonLines, |visit: Visit, out| out.emit(&visit))
    };
    fs::write(
        folder.path().join("ours.jsonl"),
        JobTest::new(copy).input(theirs).run().parts.concat(),
    )
    .expect("written");
    let script = "import polars; print(polars.read_ndjson('ours.jsonl').to_dicts())";
    let read = python(&["polars"], script, folder.path()).expect("it was there before");
    assert_eq!(
        read,
        "[{'page': '/', 'millis': 1}, {'page': 'a\\n\"', 'millis': None}]\n"
    );
}

#[derive(Debug, Deserialize)]
#[allow(dead_code)]
struct With<T> {
    id: u64,
    #[serde(flatten)]
    rest: T,
}

/// Parses a line into a row of type `R`, printed with `Debug`.
fn row_of<R: serde::de::DeserializeOwned + std::fmt::Debug + 'static>(
    line: &str,
) -> Result<String, String> {
    let file = TestFile::new("a.jsonl", line);
    let rows = read(&JsonRows::<R>::default(), &file.whole(), false, |row: R| {
        format!("{row:?}")
    });
    rows.map(|rows| rows.concat())
        .map_err(|error| error.to_string())
}

#[test]
fn large_integer_is_not_rounded_for_untyped_number() {
    type Any = With<BTreeMap<String, serde_json::Value>>;
    for integer in [
        "18446744073709551616",
        "-9223372036854775809",
        "123456789012345678901234567890",
    ] {
        for error in [
            row_of::<Any>(&format!(r#"{{"id":1,"a":{integer}}}"#)),
            row_of::<Any>(&format!(
                r#"{{"id":1,"a":[{{"b":"x\"12345678901234567890"}},{integer}]}}"#
            )),
            row_of::<serde_json::Value>(&format!("[{integer}]")),
        ] {
            let error = error.expect_err("digits would be lost");
            assert!(
                error.contains(&format!("the integer {integer} exceeds 64 bits")),
                "{error}"
            );
        }
    }
    // The numbers are in range, are not integers, or belong to fields that are not read.
    for line in [
        r#"{"id":18446744073709551615,"a":-9223372036854775808}"#,
        r#"{"id":1,"a":18446744073709551616.0,"b":1e30,"c":"18446744073709551616"}"#,
        r#"{"id":1,"18446744073709551616":null}"#,
    ] {
        row_of::<Any>(line).expect(line);
    }
    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Only {
        id: u64,
    }
    assert_eq!(
        row_of::<Only>(r#"{"id":1,"a":18446744073709551616}"#),
        Ok("Only { id: 1 }".to_owned())
    );
}

#[test]
fn large_integer_is_read_as_row_type() {
    assert_eq!(
        row_of::<u128>("18446744073709551616"),
        Ok("18446744073709551616".to_owned())
    );
    assert_eq!(
        row_of::<i128>(&i128::MIN.to_string()),
        Ok(i128::MIN.to_string())
    );
    assert_eq!(
        row_of::<f64>("18446744073709551617"),
        Ok("1.8446744073709552e19".to_owned())
    );
    assert_eq!(
        row_of::<With<BTreeMap<String, f64>>>(r#"{"id":1,"a":100000000000000000000}"#),
        Ok(r#"With { id: 1, rest: {"a": 1e20} }"#.to_owned())
    );
    row_of::<u64>("18446744073709551616").expect_err("it does not fit");
}

#[test]
fn json_in_utf_16_is_rejected() {
    let file = TestFile::new("a.jsonl", b"\xff\xfe1\0\n\0");
    let error = read(&visits(), &file.whole(), false, show)
        .expect_err("not UTF-8")
        .to_string();
    assert!(
        error.contains("a.jsonl is UTF-16 text by its byte order mark, but only UTF-8"),
        "{error}"
    );
}

#[test]
fn folds_write_arrays_of_key_and_value() {
    let count = || {
        Job::text()
            .output(JsonLines)
            .flat_map(napreduce::words)
            .count()
    };
    let test = JobTest::new(count).input("to be or\nnot to\n");
    assert_eq!(
        test.run().text(),
        "[\"be\",1]\n[\"not\",1]\n[\"or\",1]\n[\"to\",2]\n"
    );
    test.assert_preemption_safe();
}

#[test]
fn repeated_member_or_list_for_a_struct_is_bad_row() {
    fn bad<R: serde::de::DeserializeOwned + std::fmt::Debug + 'static>(text: &str) -> u64 {
        let job = || Job::json_lines::<R>().map_only(|row, out| out.emit(format!("{row:?}"), ()));
        JobTest::new(job)
            .input(text)
            .on_bad_input(Skip::All)
            .run()
            .counters
            .get("BAD_ROWS")
    }
    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Point {
        x: f64,
    }
    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Open {
        x: f64,
        #[serde(flatten)]
        rest: BTreeMap<String, serde_json::Value>,
    }
    let rows = "{\"x\":1,\"x\":2}\n{\"x\":1,\"y\":{\"a\":1,\"a\":2}}\n{\"x\":1}\n[7.5]\n";
    assert_eq!(bad::<Point>(rows), 2, "the struct has no field y");
    assert_eq!(bad::<Open>(rows), 3);
    assert_eq!(bad::<serde_json::Value>(rows), 2);
    assert_eq!(bad::<BTreeMap<String, serde_json::Value>>(rows), 3);
}

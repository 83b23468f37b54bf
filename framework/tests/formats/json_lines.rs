//! Rows that are JSON values, a line each.
//!
//! Owns cuts, borrowed and owned rows, bad rows and what other programs write. Does not own JSON nor lines.

use std::borrow::Cow;
use std::fs;

use napreduce::input::BadRows;
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
fn a_task_may_be_preempted_before_every_row() {
    let by_page = || {
        Job::json_lines::<borrowed!(Visit)>()
            .map(|visit: Visit, out: &mut Emit<String, u64>| out.emit(&visit.page, visit.millis.unwrap_or(0)))
            .output(JsonLines)
            .reduce(|page, millis, out| out.emit(&(page, millis.sum())))
    };
    let test = JobTest::new(by_page).input(format!("{VISITS}\n{{\n")).bad_rows(BadRows::Skip).split_size(30);
    test.assert_preemption_safe();
    assert_eq!(test.run().text(), "[\"/\",250]\n[\"a\\nä\",0]\n[\"ß\",0]\n");
}

#[test]
fn what_is_no_row_is_quoted_with_its_line() {
    let file = TestFile::new("a.jsonl", "{\"page\":\"/\"}\n{\"page\":1}\n");
    let error = read(&visits(), &file.whole(), false, show).expect_err("it is refused").to_string();
    let error = error.replace(&file.path.display().to_string(), "a.jsonl");
    assert_eq!(
        error,
        "a.jsonl has a bad row at line 2: invalid type: integer `1`, expected a string, at column 9; the row is \
         \"{\\\"page\\\":1}\"; mend it, or pass --bad-rows skip to leave out such rows"
    );
}

#[test]
fn a_file_cut_anywhere_gives_rows_that_are_there_or_is_refused() {
    let intact = read(&visits(), &TestFile::new("a", VISITS).whole(), false, show).expect("it is intact");
    for cut in 0..VISITS.len() {
        refused_or_intact(&visits(), &TestFile::new("a.jsonl", &VISITS.as_bytes()[..cut]), &intact, show);
    }
    let deep = TestFile::new("a.jsonl", "[".repeat(200_000));
    let message = refused_or_intact(&visits(), &deep, &intact, show).expect("it is refused");
    assert!(message.contains("at line 1: invalid") && message.len() < 600, "{message}");
}

#[test]
fn polars_writes_what_is_read_and_reads_what_is_written() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let script = "import polars; polars.DataFrame({'page': ['/', 'a\\n\"'], 'millis': [1, None]}).write_ndjson('theirs.jsonl')";
    if python(&["polars"], script, folder.path()).is_none() {
        return;
    }
    let theirs = fs::read(folder.path().join("theirs.jsonl")).expect("Python wrote it");
    let file = TestFile::new("theirs.jsonl", &theirs);
    let rows = same_at_every_cut(&visits(), &file, 1..=file.size, show);
    assert_eq!(rows, ["\"/\" Some(1)", "\"a\\n\\\"\" None"]);

    let copy =
        || Job::json_lines::<borrowed!(Visit)>().map_only_to(JsonLines, |visit: Visit, out| out.emit(&visit));
    fs::write(folder.path().join("ours.jsonl"), JobTest::new(copy).input(theirs).run().parts.concat())
        .expect("written");
    let script = "import polars; print(polars.read_ndjson('ours.jsonl').to_dicts())";
    let read = python(&["polars"], script, folder.path()).expect("it was there before");
    assert_eq!(read, "[{'page': '/', 'millis': 1}, {'page': 'a\\n\"', 'millis': None}]\n");
}

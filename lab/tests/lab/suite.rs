//! `nap lab suite` with stand-ins for the real programs and for Python: its report, contenders that fail, and
//! usage errors.

use crate::stand_ins::{Ended, Lab, PLAIN_WORDCOUNT};
use serde_json::Value;

/// Sorts the rows of a folder and prints counters.
const TERASORT: &str = r#"#!/bin/sh
mkdir "$3"
cat "$1"/* | LC_ALL=C sort > "$3/part-r-00000"
echo '{"counters": {"MAP_OUTPUT_BYTES": 20000, "REDUCE_SHUFFLE_BYTES": 5000}}'
echo '{"counters": {"MAP_OUTPUT_BYTES": 1}}'
"#;

/// A Python with DuckDB that sorts its input in reverse.
const PYTHON: &str = r#"#!/bin/sh
case "$1 $2" in
  --version*) echo Python ;;
  -c*duckdb*) echo duckdb 9 ;;
  -c*) exit 1 ;;
  *terasort_duckdb.py*) LC_ALL=C sort -r "$2" > "$3" ;;
  *suite_duckdb.py*) echo "$2 of $3" > "$4" ;;
esac
"#;

fn run(lab: &Lab, arguments: &[&str]) -> Ended {
    let python = lab.name("bin/python");
    let rest = ["--size", "10kB", "--repetitions", "2", "--python", &python];
    lab.run(&[&["suite"], arguments, &rest].concat())
}

fn lab(wordcount: &str) -> Lab {
    let lab = Lab::with(wordcount, TERASORT);
    lab.script("python", PYTHON);
    lab
}

#[test]
fn report_has_contenders_and_ratios() {
    let lab = lab(PLAIN_WORDCOUNT);
    let ended = run(&lab, &["--jobs", "terasort", "--format", "json"]);
    assert_eq!(ended.status, 0, "{}", ended.errors);
    assert!(
        ended.errors.contains("polars: left out"),
        "{}",
        ended.errors
    );
    let report: Value = serde_json::from_str(&ended.output).unwrap();
    let job = &report["jobs"][0];
    assert_eq!(
        (job["job"].as_str(), job["input_bytes"].as_u64()),
        (Some("terasort"), Some(10_000))
    );
    assert_eq!(
        (
            job["map_output_ratio"].as_f64(),
            job["shuffle_ratio"].as_f64()
        ),
        (Some(2.0), Some(0.5))
    );
    let contenders = job["contenders"].as_array().unwrap();
    let names: Vec<&str> = contenders
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["napreduce", "duckdb"]);
    let figures = |contender: usize, name: &str| -> Vec<f64> {
        contenders[contender][name]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one.as_f64().unwrap())
            .collect()
    };
    let ours = figures(0, "seconds");
    let theirs = figures(1, "seconds");
    let ratios = figures(1, "ratios");
    assert_eq!((ours.len(), theirs.len(), ratios.len()), (2, 2, 2));
    for ((ours, theirs), ratio) in ours.iter().zip(&theirs).zip(&ratios) {
        assert!(
            (ratio - theirs / ours).abs() < 1e-9,
            "{ratio} of {theirs} and {ours}"
        );
    }
    lab.assert_work_is_empty();
}

#[test]
fn peer_with_different_lines_drops_out() {
    let lab = lab(PLAIN_WORDCOUNT);
    let ended = run(&lab, &["--jobs", "wordcount"]);
    assert_eq!(ended.status, 1, "{}", ended.errors);
    assert!(
        ended
            .output
            .contains("failed: wordcount duckdb: wrong output: 1 lines where ours have "),
        "{}",
        ended.output
    );
    assert!(
        ended.errors.contains("wordcount 2/2 napreduce:"),
        "{}",
        ended.errors
    );
    assert!(
        !ended.errors.contains("wordcount 2/2 duckdb:"),
        "{}",
        ended.errors
    );
    lab.assert_work_is_empty();
}

#[test]
fn our_output_must_equal_that_of_one_slot() {
    // The order of the lines depends on the number of slots.
    let lab = lab(&PLAIN_WORDCOUNT.replace(
        "LC_ALL=C sort |",
        "LC_ALL=C sort $([ \"$5\" = 1 ] || echo -r) |",
    ));
    let ended = run(&lab, &["--jobs", "wordcount", "--slots", "3"]);
    assert_eq!(ended.status, 1, "{}", ended.errors);
    let expected = "failed: wordcount napreduce: wrong output: other bytes than those of the run with one slot";
    assert!(ended.output.contains(expected), "{}", ended.output);
}

#[test]
fn wrong_usage_is_status_2_with_advice() {
    let lab = lab(PLAIN_WORDCOUNT);
    let refused = |arguments: &[&str], part: &str| {
        let ended = run(&lab, arguments);
        assert_eq!(ended.status, 2, "{arguments:?}: {}", ended.errors);
        assert!(
            ended.errors.contains(part),
            "{arguments:?}: {}",
            ended.errors
        );
    };
    refused(
        &["--jobs", "sleep"],
        "possible values: wordcount, term-vector, ",
    );
    refused(
        &["--jobs", "self-join"],
        "cargo build --release -p napreduce-lab",
    );
    refused(
        &["--jobs", "wordcount", "--peers", "sort"],
        "peer sort has no formulation of the suite; choose duckdb or polars",
    );
    refused(
        &["--jobs", "wordcount", "--peers", "polars"],
        "peer polars was asked for and cannot run",
    );
    lab.assert_work_is_empty();
}

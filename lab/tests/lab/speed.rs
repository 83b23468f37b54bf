//! `nap lab speed`, `memory` and `start` with stand-ins for the real programs: reports, exit statuses,
//! cleanup.

use std::fs;
use std::io::Read;
use std::path::Path;

use crate::stand_ins::{HANGING, Lab, PLAIN_TERASORT, PLAIN_WORDCOUNT};
use serde_json::Value;

fn json(lab: &Lab, name: &str) -> Value {
    serde_json::from_slice(&fs::read(lab.path(name)).unwrap()).unwrap()
}

fn contender<'a>(report: &'a Value, measurement: usize, name: &str) -> &'a Value {
    let contenders = report["measurements"][measurement]["contenders"]
        .as_array()
        .unwrap();
    contenders
        .iter()
        .find(|contender| contender["name"] == name)
        .unwrap()
}

#[test]
fn speed_reports_every_contender_and_leaves_nothing_behind() {
    let lab = Lab::with(PLAIN_WORDCOUNT, PLAIN_TERASORT);
    let ended = lab.run(&[
        "speed",
        "--size",
        "100kB,50kB",
        "--runs",
        "3",
        "--json",
        &lab.name("speed.json"),
    ]);
    assert_eq!(ended.status, 0, "{}", ended.errors);
    assert!(
        ended.output.contains("terasort 100000B") && ended.output.contains("sort (GNU coreutils)"),
        "{}",
        ended.output
    );
    assert!(
        ended.errors.contains("wordcount 50000B 3/3 napreduce:"),
        "{}",
        ended.errors
    );
    assert!(
        ended.errors.contains("duckdb: left out"),
        "{}",
        ended.errors
    );
    let report = json(&lab, "speed.json");
    assert_eq!(report["measurements"].as_array().unwrap().len(), 4);
    assert!(report["machine"]["cpus"].as_u64().unwrap() > 0);
    for name in ["napreduce", "sort", "bare"] {
        let contender = contender(&report, 1, name);
        assert_eq!(contender["failure"], Value::Null);
        assert_eq!(contender["runs"].as_array().unwrap().len(), 3);
        assert!(contender["wall_seconds"]["median"].as_f64().unwrap() > 0.0);
        assert!(contender["ratio"].as_f64().unwrap() > 0.0);
        assert!(contender["command"].as_str().unwrap().contains("sort"));
    }
    assert_eq!(
        contender(&report, 1, "napreduce")["task_peak_bytes"],
        1_048_576
    );
    lab.assert_work_is_empty();
}

#[test]
fn our_programs_are_called_by_their_contract() {
    let lab = Lab::with(PLAIN_WORDCOUNT, PLAIN_TERASORT);
    let ended = lab.run(&[
        "speed", "--size", "10kB", "--runs", "1", "--slots", "3", "--format", "json",
    ]);
    let report: Value = serde_json::from_str(&ended.output).unwrap();
    let command = contender(&report, 1, "napreduce")["command"]
        .as_str()
        .unwrap();
    assert!(
        command
            .contains("--slots 3 --task-memory 256MiB --overwrite --progress never --format ascii"),
        "{command}"
    );
}

#[test]
fn wrong_output_drops_its_contender() {
    let unsorted = PLAIN_TERASORT.replace("sort -o", "cp -t");
    let unsorted = unsorted.replace(
        r#""$output/part-r-00000" "$input""#,
        r#""$output" "$input""#,
    );
    let lab = Lab::with(PLAIN_WORDCOUNT, &unsorted);
    let ended = lab.run(&[
        "speed",
        "--size",
        "10kB",
        "--runs",
        "2",
        "--json",
        &lab.name("speed.json"),
    ]);
    assert_eq!(ended.status, 1, "{}", ended.errors);
    assert!(
        ended
            .output
            .contains("failed: terasort 10000B napreduce: wrong output: not in order"),
        "{}",
        ended.output
    );
    let report = json(&lab, "speed.json");
    assert_eq!(
        contender(&report, 1, "napreduce")["wall_seconds"],
        Value::Null
    );
    assert_eq!(
        contender(&report, 1, "sort")["runs"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(contender(&report, 1, "sort")["ratio"], Value::Null);
    lab.assert_work_is_empty();
}

#[test]
fn failed_program_is_reported_with_its_standard_error() {
    let lab = Lab::with("#!/bin/sh\necho no such luck >&2; exit 4\n", PLAIN_TERASORT);
    let ended = lab.run(&["speed", "--size", "10kB", "--runs", "1"]);
    assert_eq!(ended.status, 1);
    assert!(
        ended.output.contains("wordcount failed (exit status: 4)"),
        "{}",
        ended.output
    );
    assert!(ended.output.contains("no such luck"), "{}", ended.output);
}

#[test]
fn wrong_usage_is_status_2_with_advice() {
    let lab = Lab::with(PLAIN_WORDCOUNT, PLAIN_TERASORT);
    let refused = |arguments: &[&str], part: &str| {
        let ended = lab.run(arguments);
        assert_eq!(ended.status, 2, "{arguments:?}: {}", ended.errors);
        assert!(
            ended.errors.contains(part),
            "{arguments:?}: {}",
            ended.errors
        );
    };
    refused(
        &["speed", "--programs", "sleep"],
        "possible values: wordcount, terasort",
    );
    refused(&["speed", "--size", "1 parsec"], "is not a size; write");
    refused(&["speed", "--runs", "0"], "1..=1000");
    refused(
        &["speed", "--size", "10kB", "--peers", "duckdb"],
        "name one with --python",
    );
    refused(
        &["speed", "--size", "10kB", "--python", "/nowhere/python"],
        "--python /nowhere/python: cannot start",
    );
    refused(
        &["speed", "--size", "9999TiB"],
        "choose another folder with --work or a smaller size",
    );
    refused(
        &["speed", "--work", "/nowhere"],
        "cannot make a folder in /nowhere",
    );
    refused(&["memory", "--factor", "0.5"], "choose 1 to 100");
    fs::remove_file(lab.path("bin/wordcount")).unwrap();
    refused(&["speed", "--size", "10kB"], "cargo build --release");
    lab.assert_work_is_empty();
}

#[test]
fn python_without_peers_is_an_error_only_if_they_are_named() {
    let lab = Lab::with(PLAIN_WORDCOUNT, PLAIN_TERASORT);
    lab.script("python", "#!/bin/sh\n[ \"$1\" = --version ]\n");
    let python = lab.name("bin/python");
    let ended = lab.run(&[
        "speed", "--size", "10kB", "--runs", "1", "--python", &python,
    ]);
    assert_eq!(ended.status, 0, "{}", ended.errors);
    assert!(
        ended.errors.contains("polars: left out"),
        "{}",
        ended.errors
    );
    let ended = lab.run(&[
        "speed", "--size", "10kB", "--peers", "polars", "--python", &python,
    ]);
    assert_eq!(ended.status, 2, "{}", ended.errors);
    assert!(
        ended.errors.contains("polars was asked for and cannot run"),
        "{}",
        ended.errors
    );
}

#[test]
fn coreutils_pipeline_counts_words() {
    let lab = Lab::with(PLAIN_WORDCOUNT, PLAIN_TERASORT);
    let arguments = [
        "speed",
        "--size",
        "10kB",
        "--runs",
        "1",
        "--peers",
        "coreutils",
        "--programs",
        "wordcount",
    ];
    let ended = lab.run(&arguments);
    assert_eq!(ended.status, 0, "{}{}", ended.errors, ended.output);
    assert!(ended.output.contains("coreutils"), "{}", ended.output);
}

#[test]
fn memory_beyond_the_bound_fails() {
    let lab = Lab::with(PLAIN_WORDCOUNT, PLAIN_TERASORT);
    let ended = lab.run(&["memory", "--size", "20kB"]);
    assert_eq!(ended.status, 0, "{}", ended.errors);
    assert!(
        ended.output.contains("within bound") && ended.output.contains("bound 333 MiB"),
        "{}",
        ended.output
    );
    let ended = lab.run(&[
        "memory",
        "--size",
        "20kB",
        "--task-memory",
        "512KiB",
        "--programs",
        "terasort",
    ]);
    assert_eq!(ended.status, 1, "{}", ended.errors);
    assert!(ended.output.contains("TOO MUCH"), "{}", ended.output);
    lab.assert_work_is_empty();
}

#[test]
fn start_measures_a_tiny_job_and_one_more_task() {
    let lab = Lab::with(PLAIN_WORDCOUNT, PLAIN_TERASORT);
    let ended = lab.run(&["start", "--runs", "4", "--json", &lab.name("start.json")]);
    assert_eq!(ended.status, 0, "{}", ended.errors);
    let report = json(&lab, "start.json");
    assert_eq!(report["tiny_seconds"].as_array().unwrap().len(), 4);
    assert_eq!(report["more_tasks"], 400);
    assert!(
        report["tiny_p99_seconds"].is_null(),
        "four runs have no 99th percentile: {report}"
    );
    assert!(
        ended.output.contains("one more map task, of 400"),
        "{}",
        ended.output
    );
    lab.assert_work_is_empty();
}

#[test]
fn keep_leaves_the_inputs_and_outputs() {
    let lab = Lab::with(PLAIN_WORDCOUNT, PLAIN_TERASORT);
    let ended = lab.run(&[
        "speed",
        "--size",
        "10kB",
        "--runs",
        "1",
        "--keep",
        "--programs",
        "terasort",
    ]);
    assert_eq!(ended.status, 0, "{}", ended.errors);
    assert!(
        ended.errors.contains("keeping everything in"),
        "{}",
        ended.errors
    );
    let work: Vec<_> = fs::read_dir(lab.path("work"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(work[0].join("terasort-10000B/part-00000").is_file());
    assert!(work[0].join("run-terasort-sort/out/part-r-00000").is_file());
}

#[test]
fn ctrl_c_ends_the_measured_program_and_cleans_up() {
    let lab = Lab::with(HANGING, PLAIN_TERASORT);
    let mut nap = lab
        .command(&["speed", "--size", "10kB", "--runs", "1"])
        .spawn()
        .unwrap();
    // Opening the pipe waits until the stand-in writes its process ID; from then on it hangs.
    let mut id = String::new();
    fs::File::open(lab.path("hanging"))
        .unwrap()
        .read_to_string(&mut id)
        .unwrap();
    let signalled = rustix::process::Pid::from_child(&nap);
    rustix::process::kill_process(signalled, rustix::process::Signal::INT).unwrap();
    let mut errors = String::new();
    nap.stderr
        .take()
        .unwrap()
        .read_to_string(&mut errors)
        .unwrap();
    assert_eq!(nap.wait().unwrap().code(), Some(130), "{errors}");
    assert!(errors.contains("interrupted by signal 2"), "{errors}");
    assert!(
        !Path::new("/proc").join(id.trim()).exists(),
        "process {id} outlives the experiment"
    );
    lab.assert_work_is_empty();
}

//! Commands of `nap` for jobs on a cluster: detach, list, wait, kill, logs, side files.

use std::time::{Duration, Instant};

use napreduce_tests::{Ended, Folder, cluster, counter, joined, program, run, wait_until};
use serde_json::Value;

/// Runs a job of `testjobs` over the file `in`.
fn job(folder: &Folder, name: &str, more: &[&str]) -> Ended {
    let mut command = program("testjobs");
    command
        .current_dir(folder.root())
        .args(["in", "--job", name, "--output", "out", "--quiet"])
        .args(more);
    run(&mut command)
}

/// Submits a job with `--detach`; returns its id.
fn detached(folder: &Folder, name: &str, more: &[&str]) -> String {
    // Other commands need the original job IDs.
    let directory = cluster()
        .expect("these tests have a cluster")
        .display()
        .to_string();
    let mut command = program("testjobs");
    command
        .current_dir(folder.root())
        .args(["in", "--job", name, "--output", "out"])
        .args(more);
    command
        .env_remove("NAPREDUCE_CLUSTER")
        .args(["--cluster", &directory, "--detach"]);
    run(&mut command).succeeded().stdout.trim().to_owned()
}

fn nap(arguments: &[&str]) -> Ended {
    run(program("nap")
        .env_remove("NAPREDUCE_CLUSTER")
        .args(arguments))
}

fn json(arguments: &[&str]) -> Value {
    let said = nap(&[arguments, &["--format", "json"]].concat())
        .succeeded()
        .stdout;
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[test]
fn detached_job_is_listed_explained_and_waited_for() {
    let folder = Folder::new();
    folder.write("in", "b a\n".repeat(200));
    let id = detached(
        &folder,
        "slow",
        &["--number", "5000", "--reduces", "1", "--split-size", "100"],
    );
    assert!(id.starts_with("job_"), "{id}");
    wait_until("a map that runs", || {
        let tasks = json(&["task", "list", &id]);
        tasks
            .as_array()
            .expect("an array")
            .iter()
            .any(|task| task["state"] == "running")
    });
    let why = nap(&["task", "explain", &format!("{id}_r_0000")])
        .succeeded()
        .stdout;
    assert!(why.contains("waiting") && why.contains("maps"), "{why}");
    nap(&["job", "wait", &id]).succeeded();
    assert_eq!(joined(&folder.path("out")), b"a\t200\nb\t200\n");
    let listed = json(&["job", "status", &id]);
    assert_eq!(listed[0]["state"], "succeeded");
    let counters = json(&["job", "counters", &id]);
    assert_eq!(counters[0]["counters"]["MAP_INPUT_RECORDS"], 200);
    let history = json(&["job", "history", &id]);
    let attempts = history[0]["attempts"].as_array().expect("an array");
    assert!(
        attempts.len() >= 9 && attempts.iter().all(|attempt| attempt["end"].is_string()),
        "{attempts:?}"
    );
}

#[test]
fn killed_task_retries_and_killed_job_ends() {
    let folder = Folder::new();
    folder.write("in", "line\n");
    let id = detached(&folder, "endless", &[]);
    let running = folder.path("in.running");
    wait_until("a map that runs", || running.exists());
    std::fs::remove_file(&running).expect("it was there");
    nap(&["task", "kill", &format!("{id}_m_0000")]).succeeded();
    wait_until("its second attempt", || running.exists());
    let said = std::fs::read_to_string(&running).expect("a readable file");
    assert!(said.starts_with(&format!("{id}_m_0000.2 ")), "{said}");
    nap(&["job", "kill", &id]).succeeded();
    nap(&["job", "wait", &id]).failed(1, &["killed"]);
    assert!(!folder.has("out"));
}

#[test]
fn straggler_is_overtaken_by_speculative_attempt() {
    let folder = Folder::new();
    folder.write("in", "b a\n".repeat(60));
    let began = Instant::now();
    let more = ["--number", "600", "--reduces", "1", "--split-size", "40"];
    job(&folder, "straggler", &more).succeeded();
    assert!(
        began.elapsed() < Duration::from_secs(300),
        "it waited for the straggler"
    );
    assert_eq!(joined(&folder.path("out")), b"a\t60\nb\t60\n");
    assert_eq!(
        counter(&folder.path("out"), "MAP_INPUT_RECORDS"),
        60,
        "only one of two attempts counts"
    );
    assert_eq!(counter(&folder.path("out"), "TOTAL_LAUNCHED_MAPS"), 7);
}

#[test]
fn job_of_higher_priority_ends_first() {
    let folder = Folder::new();
    folder.write("in", "b a\n".repeat(1600));
    let more = ["--number", "5000", "--reduces", "1", "--split-size", "100"];
    let low = detached(&folder, "slow", &more);
    let high = [&more[..], &["--priority", "5"]].concat();
    let other = Folder::new();
    other.write("in", "b a\n".repeat(400));
    let high = detached(&other, "slow", &high);
    nap(&["job", "wait", &high, &low]).succeeded();
    let ended = |id: &str| {
        json(&["job", "status", id])[0]["ended_millis"]
            .as_u64()
            .expect("it has ended")
    };
    assert!(
        ended(&high) < ended(&low),
        "the one submitted first was done first"
    );
    assert_eq!(joined(&other.path("out")), b"a\t400\nb\t400\n");
}

#[test]
fn input_missing_on_worker_is_named() {
    let folder = Folder::new();
    folder.write("in", "x\n".repeat(400));
    let id = detached(
        &folder,
        "slow",
        &["--number", "20000", "--reduces", "1", "--split-size", "100"],
    );
    std::fs::remove_file(folder.path("in")).expect("it was there");
    nap(&["job", "wait", &id]).failed(1, &["failed 4 times"]);
    let status = json(&["job", "status", &id]);
    let reason = status[0]["reason"].as_str().expect("a reason");
    assert!(
        reason.contains(&folder.path("in").display().to_string()),
        "{reason}"
    );
    assert!(reason.contains("No such file"), "{reason}");
    let in_state = |state| {
        json(&["task", "list", &id, "--state", state])
            .as_array()
            .expect("an array")
            .clone()
    };
    let failed = in_state("failed");
    assert!(
        failed.iter().any(|task| task["attempts"] == 4),
        "{failed:?}"
    );
    let killed = in_state("killed");
    assert!(
        killed
            .iter()
            .any(|task| task["task"] == format!("{id}_r_0000").as_str()),
        "{killed:?}"
    );
    assert_eq!(in_state("waiting,running"), [Value::Null; 0]);
}

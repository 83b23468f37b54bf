//! The output directory: claims, overwriting, and the files that a failed job leaves. `commit` tests single
//! parts.

use std::fs;

use crate::scenario::{Scenario, names};

#[test]
fn existing_output_is_refused() {
    let job = Scenario::new(&["a"]);
    job.run().assert_success();
    let text = format!(
        "output directory {}/ exists; pass --overwrite or choose another",
        job.output().display()
    );
    job.run().assert_failure(2, &[&text]);
    assert_eq!(job.output_names(), ["_SUCCESS", "part-r-00000"]);
}

#[test]
fn empty_directory_is_usable_and_survives_failure() {
    let job = Scenario::new(&["a"]);
    fs::create_dir(job.output()).unwrap();
    job.run().assert_success();

    let job = Scenario::new(&["BAD"]);
    fs::create_dir(job.output()).unwrap();
    job.run().assert_failure(1, &[]);
    assert!(job.output().is_dir());
    assert_eq!(job.output_names(), [""; 0]);
}

#[test]
fn created_directories_are_removed_on_failure() {
    let job = Scenario::new(&["BAD"]).at("some/where/out");
    job.run().assert_failure(1, &[]);
    assert!(!job.path("some").exists());

    let job = Scenario::new(&["BAD"]).at("some/where/out");
    fs::create_dir(job.path("some")).unwrap();
    job.run().assert_failure(1, &[]);
    assert_eq!(names(&job.path("some")), [""; 0]);
    assert!(job.path("some").exists());
}

#[test]
fn file_in_place_of_output_is_reported() {
    let job = Scenario::new(&["a"]);
    fs::write(job.output(), "mine").unwrap();
    job.run()
        .assert_failure(2, &["out as the output directory: not a directory"]);
    assert_eq!(fs::read_to_string(job.output()).unwrap(), "mine");
}

#[test]
fn overwrite_replaces_parts_and_keeps_other_files() {
    let job = Scenario::new(&["a"]).with("reduces=3");
    job.run().assert_success();
    fs::write(job.output().join("notes.txt"), "mine").unwrap();
    fs::write(job.path("in/0.txt"), "b").unwrap();
    let job = job.with("reduces=1").with("overwrite=yes");
    job.run().assert_success();
    assert_eq!(
        job.output_names(),
        ["_SUCCESS", "notes.txt", "part-r-00000"]
    );
    assert_eq!(job.counts(), "b\t1\n");
}

#[test]
fn overwrite_keeps_old_output_on_failure() {
    let job = Scenario::new(&["a"]);
    job.run().assert_success();
    let before = fs::read_to_string(job.output().join("_SUCCESS")).unwrap();
    fs::write(job.path("in/0.txt"), "BAD").unwrap();
    let job = job.with("overwrite=yes");
    job.run().assert_failure(1, &["bad row"]);
    assert_eq!(job.output_names(), ["_SUCCESS", "part-r-00000"]);
    assert_eq!(job.counts(), "a\t1\n");
    assert_eq!(
        fs::read_to_string(job.output().join("_SUCCESS")).unwrap(),
        before
    );
}

#[test]
fn overwrite_removes_remains_of_killed_run() {
    let job = Scenario::new(&["a"]);
    fs::create_dir_all(job.output().join("_temporary/job_0001/shuffle")).unwrap();
    fs::write(
        job.output().join("_temporary/job_0001/shuffle/old.segment"),
        "old",
    )
    .unwrap();
    job.run()
        .assert_failure(2, &["contains _temporary of an unfinished run"]);
    let job = job.with("overwrite=yes");
    job.run().assert_success();
    assert_eq!(job.output_names(), ["_SUCCESS", "part-r-00000"]);
}

#[test]
fn output_of_running_job_is_refused_with_overwrite() {
    let job = Scenario::new(&["a"])
        .with("overwrite=yes")
        .pause("m_0000.1", "work");
    let first = job.start();
    let moment = first.moment();
    job.run_another()
        .assert_failure(2, &["is being written by another run"]);
    moment.go_on();
    first.end().assert_success();
    assert_eq!(job.counts(), "a\t1\n");
}

#[test]
fn success_file_is_json() {
    let job = Scenario::new(&["a b a"])
        .with("reduces=2")
        .with("extension=tsv");
    let ended = job.run();
    let text = fs::read_to_string(job.output().join("_SUCCESS")).unwrap();
    let said: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(said["version"], 1);
    assert_eq!(said["job"], "job_0001");
    assert_eq!(said["name"], "a test");
    assert_eq!(said["counters"], ended.outcome()["counters"]);
    let parts = serde_json::json!([
        { "name": "part-r-00000.tsv", "records": 2, "bytes": 8, "digest": "0000000000000008" },
        { "name": "part-r-00001.tsv", "records": 0, "bytes": 0, "digest": "0000000000000000" },
    ]);
    assert_eq!(said["parts"], parts);
}

#[test]
fn scratch_of_ended_attempt_is_removed_at_once() {
    let job = Scenario::new(&["a", "b"])
        .rule("m_0000.1 work fail once")
        .rule("keep-scratch");
    let job = job.pause("r_0000.1", "work");
    let running = job.start();
    let moment = running.moment();
    let temporary = job.work();
    assert_eq!(
        names(&temporary),
        ["committed", "job_0001_r_0000.1", "shuffle"]
    );
    let segments = ["job_0001_m_0000.2.segment", "job_0001_m_0001.1.segment"];
    assert_eq!(names(&temporary.join("shuffle")), segments);
    moment.go_on();
    running.end().assert_success();
}

#[test]
fn empty_scratch_directory_is_reused() {
    let job = Scenario::new(&["a", "b", "c"])
        .with("slots=1")
        .pause("r_0000.1", "work");
    let running = job.start();
    let moment = running.moment();
    let temporary = job.work();
    assert_eq!(
        names(&temporary),
        ["committed", "job_0001_r_0000.1", "shuffle"]
    );
    moment.go_on();
    running.end().assert_success();
}

#[test]
fn segment_of_late_failure_is_removed() {
    let job = Scenario::new(&["a"])
        .rule("m_0000.1 written fail too late")
        .pause("r_0000.1", "work");
    let running = job.start();
    let moment = running.moment();
    let shuffle = job.work().join("shuffle");
    assert_eq!(names(&shuffle), ["job_0001_m_0000.2.segment"]);
    moment.go_on();
    running.end().assert_success();
}

#[test]
fn vanished_output_directory_ends_job_at_once() {
    let job = Scenario::new(&["a"]);
    let output = job.output();
    let job = job.rule(&format!(
        "r_0000.1 written remove-output {}",
        output.display()
    ));
    job.run().assert_failure(
        1,
        &[
            "is not retried",
            "was the output directory changed while the job ran?",
        ],
    );
}

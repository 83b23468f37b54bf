//! The commit of attempts: a part is moved into place once, by the attempt with the grant, or not at all.
//! `output` tests the output directory as a whole.

use std::fs;

use crate::scenario::{Scenario, names};

#[test]
fn part_is_committed_after_writing_ends() {
    let job = Scenario::new(&["a"]).pause("r_0000.1", "written");
    let running = job.start();
    let moment = running.moment();
    let temporary = job.work();
    assert_eq!(
        names(&temporary.join("job_0001_r_0000.1")),
        ["part-r-00000"]
    );
    assert_eq!(names(&temporary.join("committed")), [""; 0]);
    moment.go_on();
    running.end().assert_success();
    assert_eq!(job.counts(), "a\t1\n");
}

#[test]
fn parts_stay_in_work_until_job_commits() {
    let job = Scenario::new(&["a"])
        .with("reduces=2")
        .with("slots=1")
        .pause("r_0001.1", "work");
    let running = job.start();
    let moment = running.moment();
    assert_eq!(job.output_names(), ["_temporary"]);
    assert_eq!(names(&job.work().join("committed")), ["part-r-00000.1"]);
    moment.go_on();
    running.end().assert_success();
    assert_eq!(
        job.output_names(),
        ["_SUCCESS", "part-r-00000", "part-r-00001"]
    );
}

#[test]
fn attempt_dead_after_commit_is_replaced() {
    let job = Scenario::new(&["a"]).pause("r_0000.1", "written");
    let running = job.start();
    let moment = running.moment();
    // The state after a kill between the rename and the last message.
    let temporary = job.work();
    fs::write(
        temporary.join("committed/part-r-00000.1"),
        "of the first attempt",
    )
    .unwrap();
    moment.kill();
    running.end().assert_success();
    assert_eq!(job.counts(), "a\t1\n");
    assert_eq!(job.output_names(), ["_SUCCESS", "part-r-00000"]);
}

#[test]
fn blocked_part_fails_job_and_leaves_no_parts() {
    let job = Scenario::new(&["a"])
        .with("reduces=2")
        .pause("r_0001.1", "work");
    let running = job.start();
    let moment = running.moment();
    // A directory blocks the second part.
    fs::create_dir(job.output().join("part-r-00001")).unwrap();
    moment.go_on();
    running
        .end()
        .assert_failure(1, &["cannot move", "part-r-00001"]);
    assert_eq!(job.output_names(), ["part-r-00001"]);
}

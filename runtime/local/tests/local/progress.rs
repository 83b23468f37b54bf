//! The progress lines of a running job on a standard error that is not a terminal.

use crate::scenario::Scenario;

#[test]
fn short_job_prints_no_progress() {
    let job = Scenario::new(&["a"]);
    assert_eq!(job.run().stderr, "");
}

#[test]
fn progress_always_prints_the_completed_job_once() {
    let job = Scenario::new(&["a", "b"])
        .with("progress=always")
        .with("reduces=1");
    let ended = job.run();
    let is_last = |line: &&str| line.ends_with("s: maps 100% 2/2, reduces 100% 1/1, 0 running");
    assert_eq!(
        ended.stderr.lines().filter(is_last).count(),
        1,
        "{}",
        ended.stderr
    );
    assert!(
        ended
            .stderr
            .lines()
            .next_back()
            .is_some_and(|line| is_last(&line)),
        "{}",
        ended.stderr
    );
}

#[test]
fn quiet_overrides_progress() {
    let job = Scenario::new(&["a"])
        .with("progress=always")
        .with("quiet=yes");
    assert_eq!(job.run().stderr, "");
}

#[test]
fn progress_is_printed_while_tasks_run() {
    let job = Scenario::new(&["a", "b"])
        .with("progress=always")
        .with("slots=1")
        .pause("m_0000.1", "work");
    let (running, mut heard) = job.start_heard();
    let moment = running.moment();
    let line = heard.line();
    assert!(
        line.contains(" s: maps 0% 0/2, ") && line.ends_with(", 1 running\n"),
        "{line}"
    );
    moment.go_on();
    running.end().assert_success();
}

//! The progress lines of a running job on a standard error that is not a terminal. Progress bars need a
//! terminal and are not tested here.

use crate::scenario::Scenario;

#[test]
fn a_short_job_says_nothing() {
    let job = Scenario::new(&["a"]);
    assert_eq!(job.run().stderr, "");
}

#[test]
fn progress_that_is_always_wanted_is_one_line_a_phase() {
    let job = Scenario::new(&["a", "b"]).with("progress=always").with("reduces=1");
    let ended = job.run();
    let lines: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("100%")).collect();
    assert_eq!(lines.len(), 2, "{}", ended.stderr);
    assert!(lines[0].starts_with("map    100% 2/2 tasks, 0 running, 2 B"));
    assert!(lines[1].starts_with("reduce 100% 1/1 tasks, "));
}

#[test]
fn quiet_wins() {
    let job = Scenario::new(&["a"]).with("progress=always").with("quiet=yes");
    assert_eq!(job.run().stderr, "");
}

#[test]
fn progress_comes_while_tasks_are_at_work() {
    let job = Scenario::new(&["a", "b"]).with("progress=always").with("slots=1").pause("m_0000.1", "work");
    let (running, mut heard) = job.start_heard();
    let moment = running.moment();
    assert!(heard.line().starts_with("map      0% 0/2 tasks, 1 running"));
    moment.go_on();
    running.end().assert_success();
}

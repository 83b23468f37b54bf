//! The progress lines of a running job on a standard error that is not a terminal. Progress bars need a
//! terminal and are not tested here.

use crate::scenario::Scenario;

#[test]
fn short_job_prints_no_progress() {
    let job = Scenario::new(&["a"]);
    assert_eq!(job.run().stderr, "");
}

#[test]
fn progress_always_prints_a_line_per_phase() {
    let job = Scenario::new(&["a", "b"]).with("progress=always").with("reduces=1");
    let ended = job.run();
    let lines: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("100%")).collect();
    assert_eq!(lines.len(), 2, "{}", ended.stderr);
    assert!(lines[0].starts_with("map    100% 2/2 tasks, 0 running, 2 B"));
    assert!(lines[1].starts_with("reduce 100% 1/1 tasks, "));
}

#[test]
fn quiet_overrides_progress() {
    let job = Scenario::new(&["a"]).with("progress=always").with("quiet=yes");
    assert_eq!(job.run().stderr, "");
}

#[test]
fn progress_is_printed_while_tasks_run() {
    let job = Scenario::new(&["a", "b"]).with("progress=always").with("slots=1").pause("m_0000.1", "work");
    let (running, mut heard) = job.start_heard();
    let moment = running.moment();
    assert!(heard.line().starts_with("map      0% 0/2 tasks, 1 running"));
    moment.go_on();
    running.end().assert_success();
}

//! SIGINT, SIGTERM, SIGHUP and SIGKILL to the job program: no process and no partial output is left.
//! `attempts` tests signals to tasks.

use crate::scenario::{Moment, Running, Scenario, names};
use rustix::process::Signal;

fn two_moments(running: &Running<'_>) -> [Moment; 2] {
    [running.moment(), running.moment()]
}

/// Returns whether SIGHUP is ignored in this process, for example under `nohup`. Then every process that a
/// test starts ignores it as well, as intended.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("the status of this process");
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .expect("its ignored signals");
    let mask = u64::from_str_radix(ignored.trim(), 16).expect("a mask");
    mask >> (Signal::HUP.as_raw() - 1) & 1 == 1
}

fn assert_ends_everything(signal: Signal, status: i32) {
    let job = Scenario::new(&["a", "b"]).pause("*", "work");
    let running = job.start();
    let moments = two_moments(&running);
    running.signal(signal);
    let ended = running.end();
    ended.assert_failure(
        status,
        &["interrupted by signal", "the job left no files in"],
    );
    for moment in &moments {
        moment.assert_gone();
    }
    assert!(!job.output().exists());
    assert_eq!(
        names(&job.path("")),
        ["first.stderr", "first.stdout", "in", "moments"]
    );
}

#[test]
fn interrupt_ends_all_tasks_and_leaves_nothing() {
    assert_ends_everything(Signal::INT, 130);
    assert_ends_everything(Signal::TERM, 143);
}

#[test]
fn hangup_ends_all_tasks_and_leaves_nothing() {
    if hangup_is_ignored() {
        println!("skipped: SIGHUP is ignored here");
        return;
    }
    assert_ends_everything(Signal::HUP, 129);
}

#[test]
fn interrupt_ends_children_of_tasks() {
    let job = Scenario::new(&["a"]);
    let socket = job.path("moments");
    let job = job.rule(&format!("* work child {}", socket.display()));
    let running = job.start();
    let grandchild = running.moment();
    running.signal(Signal::INT);
    running.end().assert_failure(130, &[]);
    grandchild.assert_gone();
}

#[test]
fn children_of_finished_task_are_ended() {
    let job = Scenario::new(&["a"]);
    let socket = job.path("moments");
    let job = job.rule(&format!("m_0000.1 work child {}", socket.display()));
    let running = job.start();
    let grandchild = running.moment();
    let watched = grandchild.watch();
    grandchild.go_on();
    watched.assert_gone();
    running.end().assert_success();
}

#[test]
fn old_output_survives_interrupt() {
    let job = Scenario::new(&["a"]);
    job.run().assert_success();
    let job = job.with("overwrite=yes").pause("*", "work");
    let running = job.start();
    let moment = running.moment();
    running.signal(Signal::INT);
    running.end().assert_failure(130, &[]);
    moment.assert_gone();
    assert_eq!(job.counts(), "a\t1\n");
    assert_eq!(job.output_names(), ["_SUCCESS", "part-r-00000"]);
}

#[test]
fn tasks_die_with_killed_job_program() {
    let job = Scenario::new(&["a", "b"]).pause("*", "work");
    let running = job.start();
    let moments = two_moments(&running);
    running.signal(Signal::KILL);
    running.end().assert_killed_by(Signal::KILL);
    for moment in &moments {
        moment.assert_gone();
    }

    // The next job removes the remains.
    let next = job.start();
    let again = two_moments(&next);
    assert_eq!(job.output_names(), ["_temporary"]);
    next.signal(Signal::INT);
    next.end().assert_failure(130, &[]);
    again.iter().for_each(Moment::assert_gone);
    assert!(!job.output().exists(), "neither left any files");
}

#[test]
fn second_signal_ends_program_at_once() {
    let job = Scenario::new(&["a"]).pause("*", "work");
    let running = job.start();
    let moment = running.moment();
    // Both signals are delivered together when the program continues, before it can react to the first.
    running.signal(Signal::STOP);
    running.wait_until_stopped();
    running.signal(Signal::INT);
    running.signal(Signal::TERM);
    running.signal(Signal::CONT);
    let status = running.end().status_code();
    assert!(status == Some(130) || status == Some(143), "{status:?}");
    moment.assert_gone();
    assert_eq!(job.output_names(), ["_temporary"]);
}

#[test]
fn signal_at_end_of_job_is_not_lost() {
    let job = Scenario::new(&["a"])
        .with("jobs=2")
        .with("overwrite=yes")
        .pause("r_0000.1", "written");
    let running = job.start();
    let moment = running.moment();
    running.signal(Signal::STOP);
    running.wait_until_stopped();
    moment.go_on();
    running.signal(Signal::INT);
    running.signal(Signal::CONT);
    running
        .end()
        .assert_failure(130, &["interrupted by signal 2"]);
}

#[test]
fn signal_between_jobs_has_default_effect() {
    let job = Scenario::new(&["a"]).with("jobs=2").with("between=stop");
    let running = job.start();
    running.wait_until_stopped();
    running.signal(Signal::TERM);
    running.signal(Signal::CONT);
    running.end().assert_killed_by(Signal::TERM);
}

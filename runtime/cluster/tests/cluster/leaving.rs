//! A daemon that receives SIGTERM with a grace period: it continues to work until the coordinator releases it
//! or the grace is over. `ends` tests daemons that leave at once.

use std::time::{Duration, Instant};

use napreduce_engine::{Order, Report};
use napreduce_protocol::ToWorker;
use rustix::process::Signal;

use super::line::Line;
use super::processes::{Daemon, Moment};
use super::script::*;

/// A map attempt with work to save.
async fn working(options: &[&str]) -> (Script, Daemon, Line, Moment) {
    let mut script = Script::new().await;
    let daemon = script.start(options);
    let mut line = script.join().await;
    line.define(script.job("* work tame SOCKET")).await;
    line.launch(map(1), script.map_work()).await;
    let moment = script.moment().await;
    line.assert_happened(1, map(1), Report::Started).await;
    (script, daemon, line, moment)
}

#[tokio::test(flavor = "current_thread")]
async fn draining_worker_follows_orders_until_it_may_leave() {
    let (_script, mut daemon, mut line, moment) = working(&["leave_millis=60000"]).await;
    daemon.signal(Signal::TERM);
    assert_eq!(line.report().await, (2, leaving(60_000, "SIGTERM")));
    line.order(Order::Suspend { attempt: map(1) }).await;
    line.preempted(map(1), Report::Suspended).await;
    line.order(Order::Resume { attempt: map(1) }).await;
    line.preempted(map(1), Report::Resumed).await;
    assert!(!moment.process.is_gone());
    line.order(Order::Kill { attempt: map(1) }).await;
    line.preempted(map(1), Report::Killed).await;
    line.tell(|number| ToWorker::Leave { number }).await;
    assert_eq!(daemon.end().await.code(), Some(0));
}

#[tokio::test(flavor = "current_thread")]
async fn worker_and_tasks_end_when_grace_expires() {
    let (_script, mut daemon, mut line, moment) = working(&["leave_millis=700"]).await;
    let began = Instant::now();
    daemon.signal(Signal::TERM);
    assert_eq!(line.report().await, (2, leaving(700, "SIGTERM")));
    assert_eq!(daemon.end().await.code(), Some(0));
    assert!(
        began.elapsed() >= Duration::from_millis(700),
        "it exited after {:?}",
        began.elapsed()
    );
    moment.process.assert_gone().await;
    assert!(
        daemon.log().contains("did not release this worker in time"),
        "{}",
        daemon.log()
    );
}

#[tokio::test(flavor = "current_thread")]
async fn ctrl_c_during_grace_ends_worker_at_once() {
    let (_script, mut daemon, mut line, moment) = working(&["leave_millis=60000"]).await;
    daemon.signal(Signal::TERM);
    assert_eq!(line.report().await, (2, leaving(60_000, "SIGTERM")));
    daemon.signal(Signal::INT);
    assert_eq!(daemon.end().await.code(), Some(128 + 2));
    moment.process.assert_gone().await;
}

#[tokio::test(flavor = "current_thread")]
async fn draining_worker_waits_for_coordinator_to_take_work() {
    let (mut script, mut daemon, line, moment) = working(&["leave_millis=60000"]).await;
    script.stop_listening();
    drop(line);
    until("the worker's notice of the loss", || {
        daemon.log().contains("lost the coordinator")
    })
    .await;
    daemon.signal(Signal::TERM);
    until("the log line about leaving", || {
        daemon.log().contains("stopping (SIGTERM)")
    })
    .await;
    assert!(!moment.process.is_gone());
    script.listen().await;
    let mut line = script.hello().await;
    line.welcome(1, 1).await;
    assert_eq!(line.report().await, (2, leaving(60_000, "SIGTERM")));
    line.tell(|number| ToWorker::Leave { number }).await;
    assert_eq!(daemon.end().await.code(), Some(0));
}

#[tokio::test(flavor = "current_thread")]
async fn worker_without_work_does_not_wait_for_coordinator() {
    let mut script = Script::new().await;
    let mut daemon = script.start(&["leave_millis=600000"]);
    let line = script.join().await;
    script.stop_listening();
    drop(line);
    until("the worker's notice of the loss", || {
        daemon.log().contains("lost the coordinator")
    })
    .await;
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().await.code(), Some(0));
}

#[tokio::test(flavor = "current_thread")]
async fn wait_for_coordinator_ends_with_grace() {
    let (mut script, mut daemon, line, moment) = working(&["leave_millis=500"]).await;
    script.stop_listening();
    drop(line);
    until("the worker's notice of the loss", || {
        daemon.log().contains("lost the coordinator")
    })
    .await;
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().await.code(), Some(0));
    moment.process.assert_gone().await;
}

#[tokio::test(flavor = "current_thread")]
async fn worker_forgotten_by_coordinator_leaves_at_once() {
    let (mut script, mut daemon, line, moment) = working(&["leave_millis=60000"]).await;
    script.stop_listening();
    drop(line);
    until("the worker's notice of the loss", || {
        daemon.log().contains("lost the coordinator")
    })
    .await;
    daemon.signal(Signal::TERM);
    until("the log line about leaving", || {
        daemon.log().contains("stopping (SIGTERM)")
    })
    .await;
    script.listen().await;
    let mut line = script.hello().await;
    line.welcome(2, 0).await;
    assert_eq!(
        line.report().await,
        (1, leaving(0, "it was stopped before it joined"))
    );
    moment.process.assert_gone().await;
    line.tell(|number| ToWorker::Leave { number }).await;
    assert_eq!(daemon.end().await.code(), Some(0));
}

#[tokio::test(flavor = "current_thread")]
async fn worker_drains_before_time_limit_or_on_interrupt() {
    let mut script = Script::new().await;
    let daemon = script.start(&["leave_millis=30000", "limit_millis=32500"]);
    let mut line = script.join().await;
    assert_eq!(
        line.report().await,
        (1, leaving(30_000, "its time limit is near"))
    );
    daemon.signal(Signal::TERM);
    line.hear_nothing_for(Duration::from_millis(300)).await;
    drop(daemon);
    let mut daemon_of_another =
        script.start_as("two", &["leave_millis=30000", "limit_millis=32500"]);
    let mut line = script.join().await;
    assert_eq!(
        line.report().await,
        (1, leaving(30_000, "its time limit is near"))
    );
    daemon_of_another.signal(Signal::INT);
    assert_eq!(line.report().await, (2, leaving(0, "SIGINT")));
    line.tell(|number| ToWorker::Leave { number }).await;
    assert_eq!(daemon_of_another.end().await.code(), Some(0));
}

#[tokio::test(flavor = "current_thread")]
async fn task_survives_sigterm_but_its_children_do_not() {
    let (_script, _daemon, mut line, mut moment) = working(&[]).await;
    moment.process.signal(Signal::TERM);
    line.hear_nothing_for(Duration::from_millis(300)).await;
    moment.let_go().await;
    line.assert_ends_well(map(1)).await;

    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    line.define(script.job("* work child SOCKET")).await;
    line.launch(map(1), script.map_work()).await;
    line.assert_happened(1, map(1), Report::Started).await;
    let child = script.moment().await;
    child.process.signal(Signal::TERM);
    child.process.assert_gone().await;
    assert!(child.go_on().await.is_gone());
    line.assert_ends_well(map(1)).await;
}

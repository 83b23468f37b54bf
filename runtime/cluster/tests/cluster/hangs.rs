//! Attempts that hang: stopped by a signal, or running without progress. Their processes are killed. `hang`
//! tests the time limits.

use std::time::Duration;

use napreduce_engine::{FailureClass, Order, Report};
use rustix::process::Signal;

use super::script::*;

#[tokio::test(flavor = "current_thread")]
async fn stopped_task_is_killed_as_hung() {
    let mut script = Script::new().await;
    let _daemon = script.start(&["silence_millis=1500"]);
    let mut line = script.join().await;
    line.define(script.job("* work pause SOCKET")).await;
    line.launch(map(1), script.map_work()).await;
    let moment = script.moment().await;
    moment.process.signal(Signal::STOP);
    let (class, reason) = line.failure().await;
    assert_eq!(class, FailureClass::Retryable);
    assert!(
        reason.starts_with("the task process was silent for 1500 ms"),
        "{reason}"
    );
    assert!(moment.process.is_gone());
}

#[tokio::test(flavor = "current_thread")]
async fn task_without_progress_is_killed() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    let mut job = script.job("* work pause SOCKET");
    job.task_timeout_millis = 300;
    line.define(job).await;
    line.launch(map(1), script.map_work()).await;
    let moment = script.moment().await;
    let (class, reason) = line.failure().await;
    assert_eq!(class, FailureClass::Retryable);
    assert!(
        reason.starts_with("no progress for 300 ms, at byte 5 of 5 of its input; "),
        "{reason}"
    );
    assert!(moment.process.is_gone());
}

#[tokio::test(flavor = "current_thread")]
async fn waiting_task_is_not_hung() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    let mut job = script.job("");
    job.task_timeout_millis = 500;
    line.define(job).await;
    // No input yet; then the commit grant is delayed.
    line.launch_reduce(reduce(1), &[]).await;
    line.assert_happened(1, reduce(1), Report::Started).await;
    line.hear_nothing_for(Duration::from_millis(1_500)).await;
    line.launch(map(1), script.map_work()).await;
    line.assert_happened(2, map(1), Report::Started).await;
    line.assert_finished(3, map(1)).await;
    line.more_inputs(reduce(1), map(1)).await;
    line.assert_happened(4, reduce(1), Report::CommitRequested)
        .await;
    line.hear_nothing_for(Duration::from_millis(1_500)).await;
    line.order(Order::Commit { attempt: reduce(1) }).await;
    line.assert_finished(5, reduce(1)).await;
}

#[tokio::test(flavor = "current_thread")]
async fn attempts_are_not_hung_after_daemon_was_stopped() {
    let mut script = Script::new().await;
    let daemon = script.start(&["silence_millis=1500"]);
    let mut line = script.join().await;
    line.define(script.job("* work pause SOCKET")).await;
    line.launch(map(1), script.map_work()).await;
    let moment = script.moment().await;
    line.assert_happened(1, map(1), Report::Started).await;
    daemon.signal(Signal::STOP);
    tokio::time::sleep(Duration::from_secs(4)).await;
    daemon.signal(Signal::CONT);
    // A heartbeat shows that the worker has checked all attempts again.
    while !matches!(
        line.next().await,
        Some(napreduce_protocol::FromWorker::Heartbeat { .. })
    ) {}
    moment.go_on().await;
    line.assert_finished(2, map(1)).await;
}

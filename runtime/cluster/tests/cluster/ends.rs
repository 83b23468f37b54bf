//! How a worker daemon ends (released, told to stop, killed) and why it may fail to start. No task process
//! outlives it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;

use napreduce_engine::{Order, Report};
use napreduce_protocol::ToWorker;
use rustix::process::Signal;

use super::script::*;

#[tokio::test(flavor = "current_thread")]
async fn worker_allowed_to_leave_exits_successfully() {
    let mut script = Script::new().await;
    let mut daemon = script.start(&[]);
    let mut line = script.join().await;
    line.tell(|number| ToWorker::Leave { number }).await;
    line.assert_received(1).await;
    assert_eq!(daemon.end().await.code(), Some(0));
}

#[tokio::test(flavor = "current_thread")]
async fn stopped_worker_returns_its_attempts() {
    let mut script = Script::new().await;
    let mut daemon = script.start(&["on_terminate=leave"]);
    let mut line = script.join().await;
    line.define(script.job("* work pause SOCKET")).await;
    line.launch(map(1), script.map_work()).await;
    let moment = script.moment().await;
    line.assert_happened(1, map(1), Report::Started).await;
    daemon.signal(Signal::TERM);
    assert_eq!(line.report().await, (2, leaving(0, "SIGTERM")));
    line.order(Order::Kill { attempt: map(1) }).await;
    line.preempted(map(1), Report::Killed).await;
    assert!(moment.process.is_gone());
    line.tell(|number| ToWorker::Leave { number }).await;
    assert_eq!(daemon.end().await.code(), Some(0));
    assert_eq!(fs::read_dir(script.own("jobs")).unwrap().count(), 0);
}

#[tokio::test(flavor = "current_thread")]
async fn stopped_worker_without_coordinator_exits_at_once() {
    let mut script = Script::new().await;
    let mut daemon = script.start(&[]);
    let mut line = script.join().await;
    line.define(script.job("* work pause SOCKET")).await;
    line.launch(map(1), script.map_work()).await;
    let moment = script.moment().await;
    script.stop_listening();
    drop(line);
    until("the worker's notice of the loss", || {
        daemon.log().contains("lost the coordinator")
    })
    .await;
    daemon.signal(Signal::INT);
    assert_eq!(daemon.end().await.code(), Some(0));
    assert!(moment.process.is_gone());
}

#[tokio::test(flavor = "current_thread")]
async fn second_signal_kills_worker_and_tasks() {
    let mut script = Script::new().await;
    let mut daemon = script.start(&[]);
    let mut line = script.join().await;
    line.define(script.job("* work pause SOCKET")).await;
    line.launch(map(1), script.map_work()).await;
    let moment = script.moment().await;
    line.assert_happened(1, map(1), Report::Started).await;
    daemon.signal(Signal::TERM);
    assert_eq!(line.report().await, (2, leaving(25_000, "SIGTERM")));
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().await.code(), Some(128 + 15));
    moment.process.assert_gone().await;
}

#[tokio::test(flavor = "current_thread")]
async fn killed_worker_leaves_no_processes_or_job_files() {
    let mut script = Script::new().await;
    let mut daemon = script.start(&[]);
    let mut line = script.join().await;
    line.define(script.job("* work pause SOCKET")).await;
    line.launch(map(1), script.map_work()).await;
    let moment = script.moment().await;
    let first = line.hello.incarnation;
    daemon.signal(Signal::KILL);
    assert_eq!(daemon.end().await.signal(), Some(9));
    moment.process.assert_gone().await;
    let _next = script.start(&[]);
    let line = script.join().await;
    assert_ne!(line.hello.incarnation, first);
    assert!(!script.own("jobs/job_0001").exists());
}

#[tokio::test(flavor = "current_thread")]
async fn second_worker_in_directory_is_refused() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let _line = script.join().await;
    let mut second = script.start(&[]);
    assert_eq!(second.end().await.code(), Some(1));
    let log = second.log();
    assert!(
        log.contains("another worker is running in ") && log.contains("workers/one"),
        "{log}"
    );
    let _third = script.start_as("two", &[]);
    assert_eq!(script.hello().await.hello.name, "two");
}

#[tokio::test(flavor = "current_thread")]
async fn worker_with_wrong_secret_reports_reason() {
    let script = Script::new().await;
    let secret = script.path("other-secret");
    fs::write(&secret, format!("{}\n", "5".repeat(64))).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let mut daemon = script.start_with(&[
        &format!(
            "cluster={}",
            script.cluster().coordinator_address().unwrap()
        ),
        &format!("secret_file={}", secret.display()),
        &format!("directory={}", script.path("own").display()),
    ]);
    assert_eq!(daemon.end().await.code(), Some(1));
    let log = daemon.log();
    assert!(
        log.contains("rejected this worker: ") && log.contains("secret"),
        "{log}"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn processes_in_new_session_end_with_attempt() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    let mut other = script.job("m_0000.1 work outcast SOCKET;m_0000.2 work outcast SOCKET");
    other.reduces = 1;
    line.define(other).await;
    line.launch(map(1), script.map_work()).await;
    line.assert_happened(1, map(1), Report::Started).await;
    let outcast = script.moment().await;
    line.launch(map(2), script.map_work()).await;
    line.assert_happened(2, map(2), Report::Started).await;
    let another = script.moment().await;
    let outcast = outcast.go_on().await;
    line.assert_finished(3, map(1)).await;
    outcast.assert_gone().await;
    assert!(
        !another.process.is_gone(),
        "processes of a running attempt are kept"
    );
    let another = another.go_on().await;
    line.assert_finished(4, map(2)).await;
    another.assert_gone().await;
}

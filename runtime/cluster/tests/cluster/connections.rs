//! Broken connections, and coordinators that were absent or have another journal: the worker repeats nothing
//! and loses nothing.

use std::fs::{self, File};
use std::time::Duration;

use napreduce_engine::{JobId, Order, Report, Start};
use napreduce_protocol::{FromWorker, JobDescription, ToWorker};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::script::*;

#[tokio::test(flavor = "current_thread")]
async fn hello_identifies_worker_and_heartbeats_follow() {
    let mut script = Script::new().await;
    let daemon = script.start(&[]);
    let mut line = script.join().await;
    assert_eq!(
        (line.hello.name.as_str(), line.hello.process),
        ("one", daemon.id())
    );
    assert_eq!(line.hello.architecture, std::env::consts::ARCH);
    assert!(
        line.hello.data_address.starts_with("127.0.0.1:"),
        "{}",
        line.hello.data_address
    );
    assert_eq!(line.hello.directory, script.own(""));
    let incarnation = fs::read_to_string(script.own("incarnation")).unwrap();
    assert_eq!(
        incarnation.trim(),
        format!("{:016x}", line.hello.incarnation)
    );
    for _ in 0..5 {
        let beat = line.next().await;
        let is_calm = matches!(&beat, Some(FromWorker::Heartbeat { progress, memory })
            if progress.is_empty() && memory.suspended.is_empty());
        assert!(is_calm, "{beat:?}");
    }
    let threads = fs::read_dir(format!("/proc/{}/task", daemon.id()))
        .unwrap()
        .count();
    // One thread for the connection, one for the attempts, and for a while one that removes files of earlier
    // jobs.
    assert!(threads <= 4, "an idle worker has {threads} threads");
}

#[tokio::test(flavor = "current_thread")]
async fn repeated_order_is_carried_out_once() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    let description = Box::new(script.job("* work pause SOCKET"));
    let define = ToWorker::Define {
        number: 1,
        description,
    };
    let order = Order::Launch {
        attempt: map(1),
        from: Start::Fresh,
        inputs: Vec::new(),
    };
    let work = Some(script.map_work());
    let launch = ToWorker::Ordered {
        number: 2,
        order,
        work,
    };
    let messages = [&define, &launch, &define, &launch];
    for message in messages {
        line.send(message.clone()).await;
    }
    let moment = script.moment().await;
    line.assert_happened(1, map(1), Report::Started).await;
    drop(line);
    let mut line = script.hello().await;
    assert_eq!(line.hello.received, 2);
    line.welcome(1, 1).await;
    for message in messages {
        line.send(message.clone()).await;
    }
    moment.go_on().await;
    line.assert_finished(2, map(1)).await;
    assert_eq!(
        fs::read_dir(script.own("logs/job_0001/running"))
            .unwrap()
            .count(),
        3,
        "one was started"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn order_with_number_gap_closes_connection() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    line.send(ToWorker::Forget {
        number: 2,
        job: JOB,
    })
    .await;
    line.assert_closed().await;
    assert_eq!(script.hello().await.hello.received, 0);
}

#[tokio::test(flavor = "current_thread")]
async fn reports_are_resent_after_reconnect() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    line.define(script.job("")).await;
    line.launch(map(1), script.map_work()).await;
    line.assert_happened(1, map(1), Report::Started).await;
    line.assert_finished(2, map(1)).await;
    for received in [0, 1] {
        drop(line);
        line = script.hello().await;
        assert_eq!(
            (line.hello.before, line.hello.received),
            (Some((JOURNAL, napreduce_engine::WorkerId(1))), 2)
        );
        line.welcome(1, received).await;
        if received == 0 {
            line.assert_happened(1, map(1), Report::Started).await;
        }
        line.assert_finished(2, map(1)).await;
    }
}

#[tokio::test(flavor = "current_thread")]
async fn attempts_run_on_without_coordinator() {
    let mut script = Script::new().await;
    let daemon = script.start(&[]);
    let mut line = script.join().await;
    line.define(script.job("* work pause SOCKET")).await;
    line.launch(map(1), script.map_work()).await;
    let moment = script.moment().await;
    line.assert_happened(1, map(1), Report::Started).await;
    script.stop_listening();
    drop(line);
    let process = moment.go_on().await;
    process.assert_gone().await;
    until("the worker's notice of the loss", || {
        daemon.log().contains("lost the coordinator")
    })
    .await;
    // The worker tries to connect many times, without logging a line.
    tokio::time::sleep(Duration::from_millis(500)).await;
    script.listen().await;
    let mut line = script.hello().await;
    line.welcome(1, 1).await;
    line.assert_finished(2, map(1)).await;
    let log = daemon.log();
    assert_eq!(log.matches("lost the coordinator").count(), 1, "{log}");
    assert_eq!(
        log.matches("connected to the coordinator").count(),
        2,
        "{log}"
    );
    assert_eq!(log.lines().count(), 4, "{log}");
}

#[tokio::test(flavor = "current_thread")]
async fn superseded_registration_ends_before_the_next() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    let job = script.job("* work pause SOCKET");
    line.define(job.clone()).await;
    line.launch(map(1), script.map_work()).await;
    let before = script.moment().await;
    mark(&script.own("jobs/job_0001/shuffle/marker"));
    drop(line);
    let mut line = script.hello().await;
    line.hello.received = 0;
    line.welcome(2, 0).await;
    line.define(job).await;
    line.launch(map(2), script.map_work()).await;
    let after = script.moment().await;
    assert!(before.process.is_gone());
    assert!(!script.own("jobs/job_0001/shuffle/marker").exists());
    assert_eq!(after.attempt, map(2).to_string());
    after.go_on().await;
    line.assert_happened(1, map(2), Report::Started).await;
    line.assert_finished(2, map(2)).await;
}

#[tokio::test(flavor = "current_thread")]
async fn silent_coordinator_is_disconnected() {
    let mut script = Script::new().await;
    let daemon = script.start(&[]);
    let mut line = script.join().await;
    line.silent = true;
    line.assert_closed().await;
    script.hello().await.welcome(1, 0).await;
    assert!(
        daemon
            .log()
            .contains("lost the coordinator: the coordinator was silent"),
        "{}",
        daemon.log()
    );
}

#[tokio::test(flavor = "current_thread")]
async fn refused_worker_reconnects() {
    let mut script = Script::new().await;
    let daemon = script.start(&[]);
    for _ in 0..3 {
        let mut line = script.hello().await;
        line.send(ToWorker::Refused {
            reason: "not now".into(),
            name_free_in_millis: None,
        })
        .await;
    }
    script.join().await;
    assert_eq!(
        daemon.log().matches("refuses this worker: not now").count(),
        1,
        "{}",
        daemon.log()
    );
}

/// An attempt prints to a pipe without a reader, which blocks like a disk that does not answer.
#[tokio::test(flavor = "current_thread")]
async fn hanging_disk_does_not_stop_heartbeats() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    line.define(script.job("")).await;
    line.launch(map(1), script.map_work()).await;
    line.assert_happened(1, map(1), Report::Started).await;
    line.assert_finished(2, map(1)).await;
    let running = script.own("logs/job_0002/running");
    fs::create_dir_all(&running).unwrap();
    let pipe = running.join("0.attempt");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    line.define(JobDescription {
        job: JobId(2),
        ..script.job("")
    })
    .await;
    let mut stuck = map(1);
    stuck.task.job = JobId(2);
    line.launch(stuck, script.map_work()).await;
    let mut beats = 0;
    while beats < 20 {
        match line.next().await {
            Some(FromWorker::Heartbeat { .. }) => beats += 1,
            Some(FromWorker::Received { .. }) => {}
            other => panic!("{other:?} from a worker with a hanging disk"),
        }
    }
    let reader = File::open(&pipe).unwrap();
    let (_, reason) = line.failure().await;
    assert!(
        reason.contains("cannot create the logs of job_0002_m_0000.1"),
        "{reason}"
    );
    drop(reader);
}

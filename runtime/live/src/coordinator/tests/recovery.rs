//! Coordinators that are killed, and what the next one makes of it.
//!
//! Owns the promise that nothing journaled is lost or done twice. Damage to the files is tested with
//! the journal.

use std::fs;
use std::path::PathBuf;

use napreduce_core::{Order, Report, TaskKind};
use napreduce_protocol::{FromWorker, JobEnd, ToWorker, WorkerPhase};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use tokio::task::spawn_blocking;

use super::{Scene, Worker, attempt};

/// Does a whole job with a coordinator that is killed after each step.
async fn job_with_a_kill_at_every_step(scene: &Scene) {
    let coordinator = scene.start();
    let worker = Worker::join(&coordinator, "w", 1).await;
    let job = coordinator.submit(scene.submission(1, 2, 1)).await;
    coordinator.kill().await;

    let coordinator = scene.start();
    let mut worker = worker.reconnect(&coordinator).await;
    let first = worker.launched().await;
    assert_eq!(first, attempt(1, TaskKind::Map, 0, 1), "the order was never sent, and is now");
    worker.started(first);
    coordinator.kill().await;

    let coordinator = scene.start();
    // Whether the report was journaled nobody knows; the worker says it again.
    worker.reported = 0;
    let mut worker = worker.reconnect(&coordinator).await;
    worker.do_map(first);
    let second = worker.launched().await;
    assert_eq!(second, attempt(1, TaskKind::Map, 1, 1), "the first map is not done again");
    coordinator.kill().await;

    let coordinator = scene.start();
    let mut worker = worker.reconnect(&coordinator).await;
    worker.do_map(second);
    let reduce = worker.launched().await;
    worker.started(reduce);
    worker.happened(reduce, Report::CommitRequested);
    assert_eq!(worker.order().await, Order::Commit { attempt: reduce });
    coordinator.kill().await;

    let coordinator = scene.start();
    let mut worker = worker.reconnect(&coordinator).await;
    worker.promote(scene, reduce);
    let end = coordinator.end_of(job).await;
    let JobEnd::Succeeded(report) = end else { panic!("{end:?}") };
    assert_eq!(report.parts.len(), 1);
    assert_eq!(fs::read_to_string(scene.path("out/part-r-00000")).expect("a part"), "done\n");
    coordinator.kill().await;

    let coordinator = scene.start();
    let detail = coordinator.job(job).await.expect("in history");
    assert_eq!(detail.attempts.len(), 3, "no attempt was made twice: {:?}", detail.attempts);
    coordinator.stop().await;
}

#[tokio::test]
async fn a_job_survives_a_kill_of_the_coordinator_at_every_step() {
    job_with_a_kill_at_every_step(&Scene::new()).await;
}

#[tokio::test]
async fn a_job_survives_kills_also_when_every_step_is_followed_by_a_snapshot() {
    let mut scene = Scene::new();
    scene.configuration.journal_bytes_max = 1;
    job_with_a_kill_at_every_step(&scene).await;
    let names: Vec<String> = fs::read_dir(scene.configuration.directory.coordinator_directory())
        .expect("listed")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("snapshot"))
        .collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[tokio::test]
async fn a_worker_of_another_journal_is_new() {
    let (scene, other) = (Scene::new(), Scene::new());
    let coordinator = scene.start();
    let mut worker = Worker::join(&coordinator, "w", 1).await;
    coordinator.submit(scene.submission(1, 1, 0)).await;
    worker.launched().await;
    coordinator.stop().await;
    let coordinator = other.start();
    let mut worker = worker.reconnect(&coordinator).await;
    coordinator.submit(other.submission(2, 1, 0)).await;
    let (number, order) = worker.numbered().await;
    assert!(number == 1 && matches!(order, ToWorker::Define { .. }), "numbers begin anew");
    coordinator.stop().await;
}

#[tokio::test]
async fn a_worker_that_knows_more_than_the_journal_is_superseded() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let mut worker = Worker::join(&coordinator, "w", 1).await;
    coordinator.submit(scene.submission(1, 1, 0)).await;
    worker.launched().await;
    // As after a crash of the machine that took the end of the journal: an order was received that
    // was never given.
    worker.hello.received = 99;
    let before = worker.id;
    let worker = worker.reconnect(&coordinator).await;
    assert_ne!(worker.id, before);
    coordinator.stop().await;
}

#[tokio::test]
async fn an_acknowledgement_of_what_was_never_sent_loses_the_worker() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let mut worker = Worker::join(&coordinator, "w", 1).await;
    worker.say(FromWorker::Received { through: 5 });
    while worker.messages.recv().await.is_some() {}
    let workers = coordinator.workers().await.expect("a list");
    let [gone] = workers.as_slice() else { panic!("{workers:?}") };
    assert_eq!((gone.state, gone.name.as_str()), (WorkerPhase::Lost, "w"));
    coordinator.stop().await;
}

#[tokio::test]
async fn other_settings_count_from_the_restart_on() {
    let mut scene = Scene::new();
    let coordinator = scene.start();
    let mut worker = Worker::join(&coordinator, "w", 1).await;
    let job = coordinator.submit(scene.submission(1, 1, 1)).await;
    let map = worker.launched().await;
    worker.started(map);
    coordinator.kill().await;
    scene.configuration.speculation = None;
    let coordinator = scene.start();
    worker.reported = 0;
    let mut worker = worker.reconnect(&coordinator).await;
    worker.do_map(map);
    let reduce = worker.launched().await;
    worker.do_reduce(&scene, reduce).await;
    assert!(matches!(coordinator.end_of(job).await, JobEnd::Succeeded(_)));
    coordinator.stop().await;
}

#[tokio::test]
async fn a_worker_whose_earlier_life_has_left_keeps_its_number_over_a_restart() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let mut first = Worker::join(&coordinator, "w", 1).await;
    let (worker, hand_back) = (first.id, true);
    coordinator
        .done(napreduce_protocol::ToCoordinator::Drain { worker, hand_back, reason: String::new() })
        .await
        .expect("drained");
    assert!(matches!(first.numbered().await.1, ToWorker::Leave { .. }));
    first.disconnect();
    let mut second = Worker::join(&coordinator, "w", 1).await;
    coordinator.submit(scene.submission(1, 1, 0)).await;
    let map = second.launched().await;
    coordinator.kill().await;
    let coordinator = scene.start();
    let before = second.id;
    second.reported = 0;
    let mut second = second.reconnect(&coordinator).await;
    assert_eq!(second.id, before);
    second.started(map);
    coordinator.stop().await;
}

#[tokio::test]
async fn a_directory_whose_journal_was_removed_says_so_and_numbers_go_on() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let mut worker = Worker::join(&coordinator, "w", 1).await;
    let job = coordinator.submit(scene.submission(1, 1, 0)).await;
    let map = worker.launched().await;
    worker.do_reduce(&scene, map).await;
    coordinator.end_of(job).await;
    coordinator.kill().await;
    let directory = scene.configuration.directory.coordinator_directory();
    for file in fs::read_dir(&directory).expect("listed") {
        let path = file.expect("an entry").path();
        if path.is_file() {
            fs::remove_file(path).expect("removed");
        }
    }
    let log = scene.recovered().expect("it begins anew").state.notices;
    let expected =
        format!("there is no journal in {}, though there is a history up to job_0001", directory.display());
    assert!(log.iter().any(|line| line.contains(&expected)), "{log:?}");
    let coordinator = scene.start();
    let next = coordinator.submit(scene.submission(2, 1, 0)).await;
    assert_eq!(next.0, 2);
    coordinator.kill().await;
}

#[tokio::test]
async fn a_directory_whose_snapshot_is_missing_is_refused_and_left_as_it_is() {
    let mut scene = Scene::new();
    scene.configuration.journal_bytes_max = 1;
    let coordinator = scene.start();
    let _worker = Worker::join(&coordinator, "w", 1).await;
    coordinator.submit(scene.submission(1, 1, 0)).await;
    coordinator.stop().await;
    let directory = scene.configuration.directory.coordinator_directory();
    let listed = || {
        let names =
            fs::read_dir(&directory).expect("listed").map(|entry| entry.expect("an entry").file_name());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    let snapshot = listed().into_iter().find(|name| name.to_string_lossy().starts_with("snapshot-"));
    fs::remove_file(directory.join(snapshot.expect("a snapshot"))).expect("removed");
    let before = listed();
    let refused = scene.recovered().err().expect("it is refused").to_string();
    assert!(
        refused.contains("is missing, and ") && refused.contains("to begin anew without these jobs"),
        "{refused}"
    );
    assert_eq!(listed(), before);
}

/// Something stands where a snapshot is to be written, and in the way of tidying up.
#[tokio::test]
async fn a_snapshot_that_cannot_be_written_is_done_without() {
    let mut scene = Scene::new();
    scene.configuration.journal_bytes_max = 1;
    let directory = scene.configuration.directory.coordinator_directory();
    let obstacle = directory.join("snapshot-00000002.unfinished");
    let coordinator = scene.start_changed(|_| fs::create_dir(&obstacle).expect("an obstacle"));
    let mut worker = Worker::join(&coordinator, "w", 1).await;
    let job = coordinator.submit(scene.submission(1, 1, 1)).await;
    let map = worker.launched().await;
    worker.do_map(map);
    let reduce = worker.launched().await;
    worker.started(reduce);
    coordinator.kill().await;
    fs::remove_dir(&obstacle).expect("it is still there");
    let coordinator = scene.start();
    // Whether the last report was journaled nobody knows; the worker says all of them again.
    worker.reported = 0;
    let mut worker = worker.reconnect(&coordinator).await;
    worker.do_map(map);
    worker.started(reduce);
    worker.happened(reduce, Report::CommitRequested);
    assert_eq!(worker.order().await, Order::Commit { attempt: reduce });
    worker.promote(&scene, reduce);
    coordinator.end_of(job).await;
    coordinator.stop().await;
}

/// The first snapshot goes into a pipe that nobody reads until the job is done.
#[tokio::test]
async fn nothing_waits_for_a_snapshot_that_is_being_written() {
    let mut scene = Scene::new();
    scene.configuration.journal_bytes_max = 1;
    let directory = scene.configuration.directory.coordinator_directory();
    let pipe = Pipe(directory.join("snapshot-00000002.unfinished"));
    let coordinator = scene.start_changed(|_| pipe.make());
    let mut worker = Worker::join(&coordinator, "w", 1).await;
    let job = coordinator.submit(scene.submission(1, 1, 1)).await;
    let map = worker.launched().await;
    worker.do_map(map);
    let reduce = worker.launched().await;
    worker.started(reduce);
    worker.happened(reduce, Report::CommitRequested);
    assert_eq!(worker.order().await, Order::Commit { attempt: reduce });
    worker.promote(&scene, reduce);
    coordinator.end_of(job).await;
    assert!(!directory.join("snapshot-00000002.msgpack").exists());
    // A pipe cannot be forced to the disk, so the snapshot fails after all, and the last one takes its place.
    let path = pipe.0.clone();
    let read = spawn_blocking(move || fs::read(path).expect("the pipe")).await.expect("read");
    assert!(!read.is_empty());
    coordinator.stop().await;
    let coordinator = scene.start();
    assert!(matches!(coordinator.end_of(job).await, JobEnd::Succeeded(_)));
    coordinator.stop().await;
}

/// A pipe by name.
struct Pipe(PathBuf);

impl Pipe {
    fn make(&self) {
        mknodat(CWD, &self.0, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    }
}

impl Drop for Pipe {
    /// Who waits for a reader, should this test fail, waits no longer.
    fn drop(&mut self) {
        let _ = open(&self.0, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty());
    }
}

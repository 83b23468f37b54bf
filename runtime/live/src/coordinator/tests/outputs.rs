//! Outputs over coordinators that are killed, while storage is away, and when somebody else takes
//! the directory.
//!
//! Owns what the coordinator makes of it: what is settled, held, told and given up. Does not own the steps of
//! a commit, which the output module tests one by one.

use std::fs;

use napreduce_core::{AttemptId, FailureClass, FaultPlace, JobId, Order, Report};
use napreduce_protocol::{FromCoordinator, JobEnd, Submission, ToCoordinator};

use super::{DEADLINE, Running, Scene, Worker};
use crate::output::{DiskScript, Owner};

/// Polls until a job is explained with these words.
async fn explained(coordinator: &Running, job: JobId, words: &str) {
    let mut said = Vec::new();
    let asked = async {
        loop {
            said = coordinator.explain(job, None).await.expect("a known job");
            if said.iter().any(|line| line.contains(words)) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(DEADLINE, asked).await.is_err() {
        panic!("{words:?} is not said in: {said:?}");
    }
}

/// The next attempt that a worker is given when its job is not held any more.
async fn launched_after_a_hold(worker: &mut Worker) -> AttemptId {
    loop {
        match worker.order().await {
            Order::Launch { attempt, .. } => return attempt,
            Order::Resume { attempt } => worker.happened(attempt, Report::Resumed),
            Order::Suspend { attempt } => worker.happened(attempt, Report::Suspended),
            Order::Kill { attempt } => worker.happened(attempt, Report::Killed),
            _ => {}
        }
    }
}

/// A job of one map and one reduce whose reduce may commit.
async fn all_but_done(scene: &Scene, coordinator: &Running) -> (Worker, JobId, AttemptId) {
    let mut worker = Worker::join(coordinator, "w", 1).await;
    let job = coordinator.submit(scene.submission(1, 1, 1)).await;
    let map = worker.launched().await;
    worker.do_map(map);
    let reduce = worker.launched().await;
    worker.started(reduce);
    worker.happened(reduce, Report::CommitRequested);
    assert_eq!(worker.order().await, Order::Commit { attempt: reduce });
    (worker, job, reduce)
}

/// A job whose parts are written while its output is away.
async fn held_at_its_commit(scene: &Scene) -> (Running, JobId) {
    let coordinator = scene.start();
    let (mut worker, job, reduce) = all_but_done(scene, &coordinator).await;
    worker.write_part(scene, reduce);
    fs::rename(scene.path("out"), scene.path("away")).expect("moved");
    worker.finish_part(reduce);
    (coordinator, job)
}

async fn done_job(scene: &Scene, coordinator: &Running) -> JobId {
    let (mut worker, job, reduce) = all_but_done(scene, coordinator).await;
    worker.promote(scene, reduce);
    let JobEnd::Succeeded(_) = coordinator.end_of(job).await else { panic!("no success") };
    job
}

#[tokio::test]
async fn a_settled_job_is_not_ended_again_though_it_left_the_history() {
    for snapshots in [false, true] {
        let mut scene = Scene::new();
        if snapshots {
            scene.configuration.journal_bytes_max = 1;
        }
        let coordinator = scene.start();
        let job = done_job(&scene, &coordinator).await;
        coordinator.kill().await;
        let history = scene.configuration.directory.coordinator_directory().join("history/job_0001.json");
        fs::remove_file(&history).expect("it was in history");
        // A newer output of somebody else.
        for (name, text) in [("_SUCCESS", "{}"), ("part-r-00000", "newer")] {
            fs::write(scene.path("out").join(name), text).expect("written");
        }
        let coordinator = scene.start();
        let refused = coordinator.job(job).await;
        assert!(refused.is_err(), "nothing is known of it any more");
        coordinator.stop().await;
        let read = |name| fs::read_to_string(scene.path("out").join(name)).expect("a file");
        assert_eq!((read("_SUCCESS").as_str(), read("part-r-00000").as_str()), ("{}", "newer"));
        assert!(!history.exists());
    }
}

#[tokio::test]
async fn a_commit_is_held_while_storage_is_away_also_over_a_restart() {
    let scene = Scene::new();
    let (coordinator, job) = held_at_its_commit(&scene).await;
    explained(&coordinator, job, "it is held and tried again").await;
    let listed = coordinator.asked(ToCoordinator::Jobs { limit: 1 }).await.expect("a list");
    let FromCoordinator::Jobs(listed) = listed else { panic!("no list: {listed:?}") };
    assert!(listed[0].reason.as_ref().is_some_and(|why| why.contains("No such file")), "{listed:?}");
    assert!(!scene.path("out").exists(), "it is not made again");
    coordinator.kill().await;
    let coordinator = scene.start();
    explained(&coordinator, job, "it is held and tried again").await;
    fs::rename(scene.path("away"), scene.path("out")).expect("it is back");
    let JobEnd::Succeeded(report) = coordinator.end_of(job).await else { panic!("no success") };
    assert_eq!(report.parts.len(), 1);
    assert!(scene.path("out/_SUCCESS").exists() && !scene.path("out/_temporary").exists());
    coordinator.stop().await;
}

#[tokio::test]
async fn a_held_job_can_be_killed() {
    let scene = Scene::new();
    let (coordinator, job) = held_at_its_commit(&scene).await;
    explained(&coordinator, job, "nap job kill job_0001").await;
    let reason = "by ada".to_owned();
    coordinator.kill_job(job, reason).await.expect("it is killed");
    let JobEnd::Killed { reason, .. } = coordinator.end_of(job).await else { panic!("it was killed") };
    assert!(reason.starts_with("by ada; its output was not committed"), "{reason}");
    coordinator.stop().await;
}

#[tokio::test]
async fn a_job_is_held_while_its_storage_is_away_at_a_restart() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let worker = Worker::join(&coordinator, "w", 1).await;
    let job = coordinator.submit(scene.submission(1, 1, 1)).await;
    coordinator.kill().await;
    fs::rename(scene.path("out"), scene.path("away")).expect("moved");
    let coordinator = scene.start();
    explained(&coordinator, job, "its output directory is out of reach").await;
    // An empty mount point is not the directory that was claimed.
    fs::create_dir(scene.path("out")).expect("made");
    let mut worker = worker.reconnect(&coordinator).await;
    fs::remove_dir(scene.path("out")).expect("nothing was put into it");
    fs::rename(scene.path("away"), scene.path("out")).expect("it is back");
    let map = launched_after_a_hold(&mut worker).await;
    assert_eq!(map.task.job, job);
    coordinator.stop().await;
}

async fn map_at_work(scene: &Scene, submission: Box<Submission>) -> (Running, Worker, AttemptId) {
    map_at_work_under(scene.start(), submission).await
}

async fn map_at_work_under(
    coordinator: Running,
    submission: Box<Submission>,
) -> (Running, Worker, AttemptId) {
    let mut worker = Worker::join(&coordinator, "w", 1).await;
    coordinator.submit(submission).await;
    let map = worker.launched().await;
    worker.started(map);
    (coordinator, worker, map)
}

/// What an attempt says that finds nothing in its output directory.
fn out_of_output() -> Report {
    let reason = "cannot create out/part: No such file or directory".to_owned();
    let (class, place) = (FailureClass::Retryable, FaultPlace::SharedStorage);
    Report::Failed { class, place, reason, lost_outputs: Vec::new() }
}

#[tokio::test]
async fn storage_that_is_away_while_a_task_runs_holds_its_job_and_is_not_held_against_it() {
    let scene = Scene::new();
    let mut submission = scene.submission(1, 1, 1);
    submission.plan.attempts_max = 1;
    let (coordinator, mut worker, map) = map_at_work(&scene, submission).await;
    let job = map.task.job;
    fs::rename(scene.path("out"), scene.path("away")).expect("moved");
    worker.happened(map, out_of_output());
    explained(&coordinator, job, "its output directory is out of reach").await;
    explained(&coordinator, job, "it goes on by itself when that is back").await;
    fs::rename(scene.path("away"), scene.path("out")).expect("it is back");
    let again = launched_after_a_hold(&mut worker).await;
    assert_eq!((again.task, again.number), (map.task, map.number + 1));
    coordinator.stop().await;
}

#[tokio::test]
async fn storage_that_does_not_answer_holds_its_job_and_nobody_else() {
    let scene = Scene::new();
    let (disk, script) = DiskScript::disk(&scene.path("out"), None);
    let coordinator = scene.start_changed(|coordinator| coordinator.disk = disk);
    let (coordinator, mut worker, map) = map_at_work_under(coordinator, scene.submission(1, 1, 1)).await;
    let job = map.task.job;
    let stalled = script.stall();
    worker.happened(map, out_of_output());
    explained(&coordinator, job, "it did not answer for 250 ms").await;
    drop(stalled);
    let again = launched_after_a_hold(&mut worker).await;
    assert_eq!((again.task, again.number), (map.task, map.number + 1));
    coordinator.stop().await;
}

#[tokio::test]
async fn a_job_whose_output_is_removed_while_a_task_runs_fails_at_once() {
    let scene = Scene::new();
    let (coordinator, mut worker, map) = map_at_work(&scene, scene.submission(1, 1, 1)).await;
    let job = map.task.job;
    fs::remove_dir_all(scene.path("out")).expect("removed");
    worker.happened(map, out_of_output());
    let JobEnd::Failed { reason, .. } = coordinator.end_of(job).await else { panic!("it has no output") };
    assert!(reason.contains("was removed while the job ran"), "{reason}");
    coordinator.stop().await;
}

#[tokio::test]
async fn an_output_that_one_host_alone_cannot_reach_is_tried_on_another() {
    let scene = Scene::new();
    let (coordinator, mut worker, map) = map_at_work(&scene, scene.submission(1, 1, 1)).await;
    let job = map.task.job;
    let mut other = Worker::join(&coordinator, "v", 1).await;
    worker.happened(map, out_of_output());
    let again = other.launched().await;
    assert_eq!(again.task, map.task);
    let said = coordinator.explain(job, None).await;
    assert!(!said.expect("a known job").iter().any(|line| line.contains("out of reach")));
    coordinator.stop().await;
}

#[tokio::test]
async fn a_resumed_job_whose_output_was_taken_touches_nothing_and_says_by_whom() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let job = coordinator.submit(scene.submission(1, 1, 1)).await;
    coordinator.kill().await;
    let other = scene.claim(70, 9, Owner::Program);
    let coordinator = scene.start();
    let JobEnd::Killed { reason, .. } = coordinator.end_of(job).await else { panic!("it has no output") };
    assert!(reason.contains("was taken by job_0070 of process "), "{reason}");
    coordinator.stop().await;
    other.discard().expect("it still has all that is its own");
}

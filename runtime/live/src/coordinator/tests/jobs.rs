//! Jobs from submission to history.
//!
//! Owns what clients are told. Workers here do as they are told.

use std::fs;
use std::time::Duration;

use napreduce_core::{Event, FailureClass, FaultPlace, JobId, Order, Report, TaskId, TaskKind};
use napreduce_protocol::{
    CounterValues, JobDetail, JobEnd, JobPhase, JobReport, TaskCommand, TaskPhase, ToWorker, WorkerReport,
};

use super::{Scene, Worker, attempt};
use crate::coordinator::replay::{Recording, ReplayedBatch};
use crate::output::Owner;

#[tokio::test]
async fn a_job_runs_to_its_end_and_into_history() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let mut worker = Worker::join(&coordinator, "w", 2).await;
    let job = coordinator.submit(scene.submission(1, 1, 1)).await;
    let map = worker.launched().await;
    assert_eq!(map, attempt(1, TaskKind::Map, 0, 1));
    worker.do_map(map);
    let reduce = worker.launched().await;
    worker.do_reduce(&scene, reduce).await;
    let JobEnd::Succeeded(JobReport { parts, .. }) = coordinator.end_of(job).await else {
        panic!("no success")
    };
    assert_eq!(parts[0].name, "part-r-00000");
    assert_eq!(fs::read_to_string(scene.path("out/part-r-00000")).expect("a part"), "done\n");
    assert!(scene.path("out/_SUCCESS").exists() && !scene.path("out/_temporary").exists());
    assert!(matches!(worker.numbered().await.1, ToWorker::Forget { job: forgotten, .. } if forgotten == job));
    let detail = coordinator.job(job).await.expect("in history");
    assert_eq!(detail.summary.phase, JobPhase::Succeeded);
    let ends: Vec<_> = detail.attempts.iter().map(|one| (one.attempt, one.end.as_deref())).collect();
    assert_eq!(ends, [(map, Some("done")), (reduce, Some("done"))]);
    let tasks = coordinator.tasks(Some(job)).await.expect("known");
    assert!(tasks.iter().all(|task| task.state == TaskPhase::Done) && tasks.len() == 2);
    coordinator.stop().await;
}

/// The coordinator began before the machine's clock was set by a day, back or forth.
#[tokio::test]
async fn a_job_takes_as_long_as_it_took_whatever_the_clock_says() {
    const DAY_MICROS: u64 = 86_400_000_000;
    for set in [u64::wrapping_sub as fn(u64, u64) -> u64, u64::wrapping_add] {
        let scene = Scene::new();
        let coordinator = scene.start_changed(|coordinator| {
            coordinator.state.epoch_micros = set(coordinator.state.epoch_micros, DAY_MICROS);
        });
        let mut worker = Worker::join(&coordinator, "w", 2).await;
        let job = coordinator.submit(scene.submission(1, 1, 1)).await;
        let map = worker.launched().await;
        worker.do_map(map);
        let reduce = worker.launched().await;
        worker.do_reduce(&scene, reduce).await;
        let JobEnd::Succeeded(JobReport { wall, .. }) = coordinator.end_of(job).await else {
            panic!("no success")
        };
        assert!(wall > Duration::ZERO && wall < Duration::from_secs(3_600), "{wall:?}");
        let JobDetail { summary, attempts, .. } = *coordinator.job(job).await.expect("in history");
        let (began, ended) = (summary.submitted_millis, summary.ended_millis.expect("it has ended"));
        assert!(Duration::from_millis(ended - began).abs_diff(wall) <= Duration::from_millis(1));
        for one in attempts {
            let there = one.launched_millis..=one.ended_millis.expect("it has ended");
            assert!(began <= *there.start() && there.start() <= there.end() && *there.end() <= ended + 1);
        }
        coordinator.stop().await;
    }
}

#[tokio::test]
async fn a_submission_handed_in_twice_is_one_job() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let job = coordinator.submit(scene.submission(u128::MAX - 5, 1, 0)).await;
    assert_eq!(coordinator.submit(scene.submission(u128::MAX - 5, 1, 0)).await, job);
    coordinator.kill().await;
    let coordinator = scene.start();
    assert_eq!(coordinator.submit(scene.submission(u128::MAX - 5, 1, 0)).await, job, "also after a restart");
    let reason = "no more".to_owned();
    coordinator.kill_job(job, reason).await.expect("killed");
    coordinator.end_of(job).await;
    assert_eq!(
        coordinator.submit(scene.submission(u128::MAX - 5, 1, 0)).await,
        job,
        "also when it has ended"
    );
    coordinator.stop().await;
}

#[tokio::test]
async fn what_a_lost_try_of_the_same_submission_left_is_no_obstacle() {
    let scene = Scene::new();
    drop(scene.claim(1, u128::MAX - 5, Owner::Cluster));
    let coordinator = scene.start();
    let (submission, other) = (scene.submission(u128::MAX - 5, 1, 0), scene.submission(6, 1, 0));
    let refused = coordinator.try_submit(other).await;
    let refused = refused.expect_err("not its own");
    assert!(
        refused.status == 2 && refused.reason.contains("_temporary of a run that did not end"),
        "{refused:?}"
    );
    coordinator.submit(submission).await;
    coordinator.stop().await;
}

#[tokio::test]
async fn an_output_that_is_in_use_is_refused() {
    let scene = Scene::new();
    let coordinator = scene.start();
    coordinator.submit(scene.submission(1, 1, 0)).await;
    let submission = scene.submission(2, 1, 0);
    let refused = coordinator.try_submit(submission).await;
    let refused = refused.expect_err("in use");
    assert!(refused.status == 2 && refused.reason.contains("is being written by another run"), "{refused:?}");
    coordinator.stop().await;
}

#[tokio::test]
async fn a_killed_job_leaves_nothing_and_says_why() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let mut worker = Worker::join(&coordinator, "w", 1).await;
    let job = coordinator.submit(scene.submission(1, 2, 0)).await;
    let map = worker.launched().await;
    worker.started(map);
    let reason = "ada asked".to_owned();
    coordinator.kill_job(job, reason).await.expect("killed");
    assert_eq!(worker.order().await, Order::Kill { attempt: map });
    worker.happened(map, Report::Killed);
    let end = coordinator.end_of(job).await;
    assert_eq!(end, JobEnd::Killed { job, reason: "ada asked".to_owned() });
    assert!(!scene.path("out").exists());
    let again = "again".to_owned();
    let refused = coordinator.kill_job(job, again).await;
    assert_eq!(refused.expect_err("over").reason, "job_0001 has ended");
    coordinator.stop().await;
}

#[tokio::test]
async fn a_killed_attempt_is_tried_again_and_no_failure() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let mut worker = Worker::join(&coordinator, "w", 1).await;
    let job = coordinator.submit(scene.submission(1, 1, 0)).await;
    let map = worker.launched().await;
    worker.started(map);
    let (task, reason) = (map.task, "too slow".to_owned());
    let command = TaskCommand::Kill;
    let killed = coordinator.command_task(task, None, command, reason).await;
    assert_eq!(killed.expect("killed"), [map]);
    assert_eq!(worker.order().await, Order::Kill { attempt: map });
    worker.happened(map, Report::Killed);
    assert_eq!(worker.launched().await, attempt(1, TaskKind::Map, 0, 2));
    let detail = coordinator.job(job).await.expect("known");
    let end = detail.attempts[0].end.as_deref().expect("it ended");
    assert!(end.contains("too slow"), "{end}");
    coordinator.stop().await;
}

#[tokio::test]
async fn a_job_that_fails_says_why() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let mut worker = Worker::join(&coordinator, "w", 1).await;
    let job = coordinator.submit(scene.submission(1, 1, 0)).await;
    for number in 1..=4 {
        let map = worker.launched().await;
        assert_eq!(map.number, number);
        worker.started(map);
        let reason = "bad row".to_owned();
        worker.happened(
            map,
            Report::Failed {
                class: FailureClass::Task,
                place: FaultPlace::UserCode,
                reason,
                lost_outputs: Vec::new(),
            },
        );
    }
    let JobEnd::Failed { reason, .. } = coordinator.end_of(job).await else { panic!("not failed") };
    assert!(reason.contains("job_0001_m_0000 failed 4 times; last: bad row"), "{reason}");
    coordinator.stop().await;
}

#[tokio::test]
async fn what_is_not_there_is_refused_by_name() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let job = JobId(9);
    let refused = coordinator.job(job).await.expect_err("unknown");
    assert_eq!((refused.status, refused.reason.as_str()), (2, "there is no job_0009; see: nap job list"));
    let job = coordinator.submit(scene.submission(1, 1, 0)).await;
    let task = Some(TaskId { job, kind: TaskKind::Reduce, index: 3 });
    let refused = coordinator.explain(job, task).await;
    assert_eq!(refused.expect_err("no such task").reason, "job_0001 has no task job_0001_r_0003");
    coordinator.stop().await;
}

#[tokio::test]
async fn explain_says_why_nothing_runs() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let job = coordinator.submit(scene.submission(1, 1, 0)).await;
    let task = Some(TaskId { job, kind: TaskKind::Map, index: 0 });
    let lines = coordinator.explain(job, task).await.expect("known");
    assert_eq!(lines[0], "job_0001_m_0000 is pending");
    assert!(lines[1..].iter().any(|line| line.contains("no worker")), "{lines:?}");
    coordinator.stop().await;
}

#[tokio::test]
async fn attempts_of_one_job_that_end_together_all_count_in_one_decision() {
    let scene = Scene::new();
    let recording = Recording::default();
    let coordinator = scene.start_recorded(Some(Recording::clone(&recording)));
    let mut worker = Worker::join(&coordinator, "w", 2).await;
    let job = coordinator.submit(scene.submission(1, 2, 1)).await;
    let maps = [worker.launched().await, worker.launched().await];
    for (map, records) in maps.into_iter().zip([3, 4]) {
        worker.started(map);
        let mut counters = CounterValues::default();
        counters.add("MAP_INPUT_RECORDS", records);
        worker.report(WorkerReport::Finished { attempt: map, counters, part: None });
    }
    worker.launched().await;
    let detail = coordinator.job(job).await.expect("it runs");
    assert_eq!(detail.counters.get("MAP_INPUT_RECORDS"), 7);
    let is_done = |event: &&Event| matches!(event, Event::Reported { report: Report::Done { .. }, .. });
    let ends = |batch: &ReplayedBatch| batch.events.iter().filter(is_done).count();
    let most = recording.lock().expect("nobody panicked").iter().map(ends).max();
    assert_eq!(most, Some(2), "what has arrived together is decided about together");
    coordinator.stop().await;
}

#[tokio::test]
async fn progress_counts_what_is_done_and_not_what_was_lost_again() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let mut worker = Worker::join(&coordinator, "w", 2).await;
    let job = coordinator.submit(scene.submission(1, 2, 1)).await;
    let maps = [worker.launched().await, worker.launched().await];
    let progress = async || {
        let map = coordinator.job(job).await.expect("it runs").summary.progress.map;
        (map.done, map.bytes_done, map.bytes_total)
    };
    assert_eq!(progress().await, (0, 0, 20));
    worker.do_map(maps[0]);
    wait_for("one map to count", async || progress().await == (1, 10, 20)).await;
    worker.do_map(maps[1]);
    let reduce = worker.launched().await;
    assert_eq!(progress().await, (2, 20, 20));
    worker.started(reduce);
    let (outputs, place, reason) = (vec![maps[0]], FaultPlace::Peer, "it is damaged".to_owned());
    worker.happened(reduce, Report::InputsLost { outputs, place, reason });
    let again = worker.launched().await;
    assert_eq!(progress().await, (1, 10, 20));
    worker.do_map(again);
    wait_for("the map to count again", async || progress().await == (2, 20, 20)).await;
    coordinator.stop().await;
}

/// Asks until the answer is yes.
async fn wait_for(what: &str, come: impl AsyncFn() -> bool) {
    let asked = async {
        while !come().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), asked).await.unwrap_or_else(|_| panic!("{what}: never"));
}

//! Jobs that have ended: what is answered about them, from which files, and after which restarts.
//!
//! Owns the way from the loop to the history and back. The files themselves are `napreduce-history`'s.

use std::fs;
use std::path::{Path, PathBuf};

use napreduce_core::{JobId, TaskKind};
use napreduce_history::{HistoryFolder, WorkerGroup};
use napreduce_protocol::{
    CommandOutcome, FromCoordinator, JobDetail, JobEnd, TaskCommand, TaskPhase, ToCoordinator,
};

use tokio::time::timeout;

use super::{DEADLINE, Running, Scene, Worker, attempt};
use crate::coordinator::requests::{LogHolder, Request};

impl Scene {
    fn history(&self, name: &str) -> PathBuf {
        self.configuration.directory.coordinator_directory().join("history").join(name)
    }
}

impl Running {
    async fn listed(&self) -> Vec<JobId> {
        let answer = self.asked(ToCoordinator::Jobs { limit: 99 }).await.expect("a list");
        let FromCoordinator::Jobs(jobs) = answer else { panic!("{answer:?}") };
        jobs.into_iter().map(|job| job.job).collect()
    }
}

/// A map and a reduce, done on the worker `w`.
async fn done_job(scene: &Scene, coordinator: &Running) -> (Worker, JobDetail) {
    let mut worker = Worker::join(coordinator, "w", 1).await;
    let job = coordinator.submit(scene.submission(1, 1, 1)).await;
    let map = worker.launched().await;
    worker.do_map(map);
    let reduce = worker.launched().await;
    worker.do_reduce(scene, reduce).await;
    let JobEnd::Succeeded(_) = coordinator.end_of(job).await else { panic!("no success") };
    (worker, *coordinator.job(job).await.expect("in history"))
}

/// What is asked about the job that `done_job` did.
async fn check_answers(coordinator: &Running, detail: &JobDetail) {
    let job = detail.summary.job;
    let (map, reduce) = (attempt(job.0, TaskKind::Map, 0, 1), attempt(job.0, TaskKind::Reduce, 0, 1));
    assert_eq!(&*coordinator.job(job).await.expect("in history"), detail);
    assert_eq!(coordinator.listed().await, [job]);
    let tasks = coordinator.tasks(Some(job)).await.expect("known");
    let states: Vec<_> = tasks.iter().map(|task| (task.task, task.state, task.attempts)).collect();
    assert_eq!(states, [(map.task, TaskPhase::Done, 1), (reduce.task, TaskPhase::Done, 1)]);
    assert_eq!(coordinator.explain(job, None).await.expect("known"), ["job_0001 has ended, succeeded"]);
    let asked = ToCoordinator::Outcomes { job, attempts: vec![map], command: TaskCommand::Kill };
    let answer = coordinator.asked(asked).await.expect("known");
    let FromCoordinator::Outcomes(outcomes) = answer else { panic!("{answer:?}") };
    assert_eq!(outcomes, [(map, CommandOutcome::Done)]);
    let JobEnd::Succeeded(report) = coordinator.end_of(job).await else { panic!("no success") };
    assert_eq!((&report.parts, &report.counters), (&detail.parts, &detail.counters));
}

#[tokio::test]
async fn answers_about_an_ended_job_are_the_same_after_a_restart_and_without_the_index() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let (worker, detail) = done_job(&scene, &coordinator).await;
    let reduce = detail.attempts[1].attempt;
    let holder = |attempt| move |reply| Request::LogHolder { attempt, reply };
    let found = coordinator.ask(holder(reduce)).await.expect("it is there");
    assert_eq!(found, LogHolder { address: "127.0.0.1:1".to_owned(), has_ended: true });
    let other = attempt(1, TaskKind::Map, 7, 1);
    let refused = coordinator.ask(holder(other)).await.expect_err("there was none");
    assert_eq!(refused.reason, "there was no job_0001_m_0007.1");
    check_answers(&coordinator, &detail).await;
    worker.disconnect();
    coordinator.kill().await;
    let coordinator = scene.start();
    check_answers(&coordinator, &detail).await;
    let unknown = coordinator.job(JobId(2)).await.expect_err("there is none");
    assert_eq!(unknown.reason, "there is no job_0002; see: nap job list");
    coordinator.stop().await;
    fs::write(scene.history("index.redb"), "damaged").expect("written");
    let coordinator = scene.start();
    check_answers(&coordinator, &detail).await;
    coordinator.stop().await;
}

#[tokio::test]
async fn an_ended_job_says_which_policy_it_had_on_which_workers_and_who_did_its_tasks() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let (_worker, detail) = done_job(&scene, &coordinator).await;
    let folder = HistoryFolder::open(&scene.configuration.directory.coordinator_directory());
    let ended = folder.expect("a history").read(JobId(1)).expect("readable").expect("there");
    let cluster = ended.cluster.expect("recorded");
    assert_eq!((cluster.scheduler.as_str(), cluster.tables), ("fifo", Some(serde_json::json!({}))));
    let preemption = serde_json::to_value(scene.configuration.preemption).expect("plain data");
    assert_eq!(cluster.preemption, preemption);
    assert_eq!(cluster.workers, [WorkerGroup { workers: 1, map_slots: 1, reduce_slots: 1 }]);
    let mut done: Vec<_> = ended.tasks.iter().map(|task| task.attempt).collect();
    done.sort_unstable();
    assert_eq!(done, detail.attempts.iter().map(|attempt| attempt.attempt).collect::<Vec<_>>());
    coordinator.stop().await;
}

#[tokio::test]
async fn a_job_of_version_1_is_answered_as_before() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let (_worker, detail) = done_job(&scene, &coordinator).await;
    let end = coordinator.end_of(JobId(1)).await;
    coordinator.stop().await;
    fs::remove_file(scene.history("job_0001.napt")).expect("removed");
    let head = serde_json::json!({ "version": 1, "token": 1, "end": end, "detail": detail });
    fs::write(scene.history("job_0001.json"), head.to_string()).expect("written");
    let coordinator = scene.start();
    check_answers(&coordinator, &detail).await;
    assert_eq!(coordinator.submit(scene.submission(1, 1, 1)).await, JobId(1), "its token is known");
    coordinator.stop().await;
}

#[tokio::test]
async fn a_recording_that_is_lost_is_said_in_the_events() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let (_worker, detail) = done_job(&scene, &coordinator).await;
    fs::remove_file(scene.history("job_0001.napt")).expect("removed");
    for _ in 0..2 {
        let read = coordinator.job(JobId(1)).await.expect("its head is there");
        assert_eq!((&read.summary, &read.parts, read.attempts.len()), (&detail.summary, &detail.parts, 0));
        let said: Vec<_> = read.events.iter().map(|line| line.text.as_str()).collect();
        assert!(said.iter().all(|line| line.starts_with("job_0001.napt: ")), "{said:?}");
        assert!(said.concat().contains("2 of 2 attempts"), "{said:?}");
    }
    coordinator.stop().await;
}

/// The coordinator is killed when the files of the job are written, and its end is not in the journal.
#[tokio::test]
async fn a_job_whose_end_is_in_the_history_alone_ends_again_and_is_there_once() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let (_worker, before) = done_job(&scene, &coordinator).await;
    coordinator.kill().await;
    forget_settling(&scene.configuration.directory.coordinator_directory());
    let coordinator = scene.start();
    assert_eq!(coordinator.listed().await, [JobId(1)]);
    let JobEnd::Succeeded(_) = coordinator.end_of(JobId(1)).await else { panic!("no success") };
    assert_eq!(coordinator.listed().await, [JobId(1)]);
    let after = *coordinator.job(JobId(1)).await.expect("in history");
    assert_eq!((after.attempts, after.parts), (before.attempts, before.parts));
    coordinator.stop().await;
}

/// Cuts the journal before the entry that says that a job is settled.
fn forget_settling(directory: &Path) {
    let entries = fs::read_dir(directory).expect("listed").map(|entry| entry.expect("an entry").path());
    let journal = entries.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "log"));
    let journal = journal.expect("a journal");
    let mut bytes = fs::read(&journal).expect("read");
    let mut at = 0;
    while at < bytes.len() {
        let length = bytes[at..at + 4].try_into().expect("four bytes");
        let behind = at + 8 + u32::from_le_bytes(length) as usize;
        if String::from_utf8_lossy(&bytes[at..behind]).contains("\"Settled\"") {
            bytes.truncate(at);
            return fs::write(journal, bytes).expect("written");
        }
        at = behind;
    }
    panic!("no job was settled");
}

#[tokio::test]
async fn the_history_has_no_more_bytes_than_it_may() {
    let mut scene = Scene::new();
    scene.configuration.history_bytes_max = 10;
    let coordinator = scene.start();
    let mut worker = Worker::join(&coordinator, "w", 1).await;
    let job = coordinator.submit(scene.submission(1, 1, 0)).await;
    let map = worker.launched().await;
    let following = coordinator.ask(|reply| Request::Follow { job, reply }).await.expect("it runs");
    worker.do_reduce(&scene, map).await;
    let mut end = following.end;
    timeout(DEADLINE, end.wait_for(Option::is_some)).await.expect("in time").expect("an end");
    assert!(coordinator.job(job).await.is_err());
    assert!(!scene.history("job_0001.json").exists() && !scene.history("job_0001.napt").exists());
    assert_eq!(coordinator.listed().await, []);
    coordinator.stop().await;
}

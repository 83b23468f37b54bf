//! Jobs that operators hold and change, workers that they drain and have back: over restarts, too.
//!
//! Owns what listings and histories say of it, and what is refused in which words. Does not own what the
//! engine makes of it.

use std::fs;

use napreduce_core::{JobChange, JobId, TaskKind};
use napreduce_protocol::{
    FromCoordinator, JobCommand, QueueListing, SlotsWanted, ToCoordinator, WorkerPhase,
};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};

use super::{Running, Scene, Worker, attempt};
use crate::coordinator::{Refusal, check_journal};

impl Running {
    async fn change(&self, job: JobId, priority: Option<i32>, queue: Option<&str>) -> Result<(), Refusal> {
        let change = JobChange { priority, queue: queue.map(str::to_owned) };
        self.done(ToCoordinator::ChangeJob { job, change, reason: "ada waits".to_owned() }).await
    }

    async fn queues(&self) -> QueueListing {
        match self.asked(ToCoordinator::Queues).await.expect("an answer") {
            FromCoordinator::Queues(queues) => queues,
            other => panic!("{other:?}"),
        }
    }
}

fn under(scheduler: SchedulerName) -> Scene {
    let mut scene = Scene::new();
    scene.configuration.scheduler = SchedulerConfiguration::named(scheduler);
    scene
}

#[tokio::test]
async fn a_job_of_another_priority_and_queue_stays_so_over_restarts() {
    for journal_bytes_max in [1, 1 << 20] {
        let mut scene = under(SchedulerName::Fair);
        scene.configuration.journal_bytes_max = journal_bytes_max;
        let coordinator = scene.start();
        coordinator.submit(scene.submission(1, 2, 0)).await;
        let job = JobId(1);
        coordinator.change(job, Some(7), Some("nightly")).await.expect("fair has both");
        let again = coordinator.change(job, Some(7), None).await.expect_err("it has that");
        assert_eq!(
            again.reason,
            "job_0001 cannot have priority 7 under the scheduler fair: it has priority 7 already"
        );
        let mut coordinator = coordinator;
        for restart in 0..2 {
            let detail = coordinator.detail(job).await;
            assert_eq!((detail.summary.priority, detail.summary.queue.as_str()), (7, "nightly"), "{restart}");
            let said = detail
                .events
                .iter()
                .any(|event| event.text == "it has priority 7, queue nightly from now on: ada waits");
            assert!(said, "{:?}", detail.events);
            let queues = coordinator.queues().await.queues.expect("fair has pools");
            let nightly = queues.iter().find(|queue| queue.name == "nightly").expect("its pool was made");
            assert_eq!((nightly.waiting, nightly.map.wanted), (1, 2));
            coordinator.kill().await;
            coordinator = scene.start();
        }
        coordinator.stop().await;
    }
}

#[tokio::test]
async fn what_a_scheduler_does_not_have_is_refused_in_its_words() {
    let scene = under(SchedulerName::Fifo);
    let coordinator = scene.start();
    coordinator.submit(scene.submission(1, 1, 0)).await;
    let refused = coordinator.change(JobId(1), None, Some("nightly")).await.expect_err("fifo has no queues");
    assert_eq!(refused.status, 2);
    assert!(
        refused.reason.starts_with("there is no queue nightly under the scheduler fifo"),
        "{}",
        refused.reason
    );
    coordinator.change(JobId(1), Some(-3), None).await.expect("fifo goes by priority");
    let unknown = coordinator.change(JobId(9), Some(1), None).await.expect_err("no such job");
    assert_eq!(unknown.reason, "there is no job_0009; see: nap job list");
    assert_eq!(
        coordinator.queues().await,
        QueueListing {
            scheduler: "fifo".to_owned(),
            queues: None,
            wanted: SlotsWanted { map: 1, reduce: 0 }
        }
    );
    coordinator.stop().await;
    let scene = under(SchedulerName::Hfsp);
    let coordinator = scene.start();
    coordinator.submit(scene.submission(1, 1, 0)).await;
    let refused = coordinator.change(JobId(1), Some(5), None).await.expect_err("hfsp goes by size");
    let words = "job_0001 cannot have priority 5 under the scheduler hfsp: hfsp goes by the size of a job";
    assert!(refused.reason.starts_with(words), "{}", refused.reason);
    coordinator.stop().await;
}

#[tokio::test]
async fn a_held_job_is_held_over_restarts_until_it_is_released() {
    for journal_bytes_max in [1, 1 << 20] {
        let mut scene = Scene::new();
        scene.configuration.journal_bytes_max = journal_bytes_max;
        let coordinator = scene.start();
        let mut worker = Worker::join(&coordinator, "w", 1).await;
        coordinator.submit(scene.submission(1, 2, 1)).await;
        let map = worker.launched().await;
        worker.started(map);
        coordinator.until(map, "running").await;
        let job = JobId(1);
        coordinator.command_job(job, JobCommand::Hold).await.expect("it can be held");
        let again = coordinator.command_job(job, JobCommand::Hold).await.expect_err("once is enough");
        assert_eq!(again.reason, "cannot hold job_0001: it is held already");
        coordinator.kill().await;
        let coordinator = scene.start();
        let mut worker = worker.reconnect(&coordinator).await;
        let summary = coordinator.detail(job).await.summary;
        assert_eq!(summary.reason.as_deref(), Some("at night"));
        let lines = coordinator.explain(job, None).await.expect("it is known");
        assert!(lines.iter().any(|line| line == "let it go on with: nap job release job_0001"), "{lines:?}");
        // What runs is let finish, and nothing follows it.
        worker.finished(map, None);
        coordinator.command_job(job, JobCommand::Release).await.expect("it is held");
        let released = coordinator.command_job(job, JobCommand::Release).await.expect_err("it is not");
        assert_eq!(released.reason, "cannot release job_0001: it is not held");
        assert_eq!(worker.launched().await, attempt(1, TaskKind::Map, 1, 1));
        let events = coordinator.detail(job).await.events;
        assert!(events.iter().any(|event| event.text == "held: at night"), "{events:?}");
        coordinator.stop().await;
    }
}

#[tokio::test]
async fn a_worker_that_drains_says_why_and_can_be_had_back_over_restarts() {
    for journal_bytes_max in [1, 1 << 20] {
        let mut scene = Scene::new();
        scene.configuration.journal_bytes_max = journal_bytes_max;
        let coordinator = scene.start();
        let mut worker = Worker::join(&coordinator, "w", 1).await;
        coordinator.submit(scene.submission(1, 2, 0)).await;
        let map = worker.launched().await;
        worker.started(map);
        let id = worker.id;
        let reason = || "a new disk".to_owned();
        coordinator
            .done(ToCoordinator::Drain { worker: id, hand_back: false, reason: reason() })
            .await
            .expect("there");
        coordinator.kill().await;
        let coordinator = scene.start();
        let worker = worker.reconnect(&coordinator).await;
        let listed = coordinator.workers().await.expect("a list");
        assert_eq!(
            (listed[0].state, listed[0].reason.as_deref()),
            (WorkerPhase::Draining, Some("a new disk"))
        );
        coordinator.done(ToCoordinator::Undrain { worker: id, reason: reason() }).await.expect("it drains");
        let listed = coordinator.workers().await.expect("a list");
        assert_eq!((listed[0].state, &listed[0].reason), (WorkerPhase::Up, &None));
        let refused = coordinator.done(ToCoordinator::Undrain { worker: id, reason: reason() }).await;
        assert_eq!(refused.expect_err("it is up").reason, "cannot undrain worker_0001: it does not drain");
        drop(worker);
        coordinator.stop().await;
    }
}

#[tokio::test]
async fn a_journal_is_read_to_its_end_and_left_as_it_is() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let worker = Worker::join(&coordinator, "w", 1).await;
    coordinator.submit(scene.submission(1, 2, 0)).await;
    coordinator.kill().await;
    drop(worker);
    let directory = scene.configuration.directory.coordinator_directory();
    let check = check_journal(&directory).expect("it is whole");
    assert_eq!((check.workers, check.jobs.len(), check.remarks.len()), (1, 1, 0));
    assert!(check.entries >= 2 && check.last_millis >= check.begun_millis, "{check:?}");
    let file = directory.join("journal-00000001.log");
    let whole = fs::read(&file).expect("the journal");
    fs::write(&file, &whole[..whole.len() - 3]).expect("written");
    let torn = check_journal(&directory).expect("a torn end is no damage");
    assert_eq!(torn.entries, check.entries - 1);
    assert!(torn.remarks[0].contains("ended in the middle of an entry"), "{:?}", torn.remarks);
    assert_eq!(fs::read(&file).expect("there").len(), whole.len() - 3, "nothing is changed");
    let mut damaged = whole.clone();
    damaged[20] ^= 1;
    fs::write(&file, &damaged).expect("written");
    let error = check_journal(&directory).expect_err("it is damaged").to_string();
    assert!(error.contains("is damaged at byte 0"), "{error}");
    assert_eq!(fs::read(&file).expect("there"), damaged);
    let none = check_journal(&directory.join("nowhere")).expect_err("there is none").to_string();
    assert!(none.contains("holds no journal of a coordinator"), "{none}");
}

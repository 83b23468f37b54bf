//! Suspended and checkpointed attempts when coordinators are killed and workers are lost.
//!
//! Owns what of them is still there afterwards. Does not own how they came to be (`preemption`).

use napreduce_core::{AttemptState, Slots, TaskKind};
use napreduce_protocol::{PreemptionEnd, TaskCommand, TaskPhase};

use super::preemption::{JOB, running};
use super::{Scene, Worker, attempt};

/// Suspends, restarts, resumes, checkpoints, restarts, restores: with a coordinator that is killed
/// after each step.
async fn preempted_with_a_kill_at_every_step(scene: &Scene) {
    let (coordinator, worker, map) = running(scene).await;
    coordinator.until(map, "running").await;
    coordinator.kill().await;

    let coordinator = scene.start();
    let worker = worker.reconnect(&coordinator).await;
    coordinator.command(map, TaskCommand::Suspend).await.expect("ordered");
    coordinator.kill().await;

    let coordinator = scene.start();
    let mut worker = worker.reconnect(&coordinator).await;
    worker.suspends(map, 40).await;
    let other = worker.launched().await;
    worker.started(other);
    coordinator.until(other, "running").await;
    coordinator.kill().await;

    let coordinator = scene.start();
    let mut worker = worker.reconnect(&coordinator).await;
    let listed = coordinator.task(map).await;
    assert_eq!((listed.state, listed.live[0].state), (TaskPhase::Suspended, AttemptState::Suspended));
    coordinator.command(map, TaskCommand::Resume).await.expect("still there");
    worker.finished(other, None);
    worker.resumes(map, 5).await;
    coordinator.until(map, "running").await;
    coordinator.kill().await;

    let coordinator = scene.start();
    let mut worker = worker.reconnect(&coordinator).await;
    coordinator.command(map, TaskCommand::Checkpoint).await.expect("it runs");
    worker.checkpoints(map, 70).await;
    let restored = attempt(1, TaskKind::Map, 0, 2);
    coordinator.until(restored, "launching").await;
    coordinator.kill().await;

    let coordinator = scene.start();
    let mut worker = worker.reconnect(&coordinator).await;
    assert_eq!(worker.restores().await, (restored, Some(map)));
    let detail = coordinator.detail(JOB).await;
    assert_eq!((detail.preemptions.len(), detail.resumes.len(), detail.restores.len()), (2, 1, 1));
    assert_eq!(detail.restores[0].work_saved_millis, 70);
    let ends: Vec<_> = detail.preemptions.iter().filter_map(|known| known.end).collect();
    assert_eq!(ends, [PreemptionEnd::Suspended, PreemptionEnd::Checkpointed]);
    coordinator.stop().await;
}

#[tokio::test]
async fn preempted_attempts_survive_a_kill_of_the_coordinator_at_every_step() {
    preempted_with_a_kill_at_every_step(&Scene::new()).await;
}

#[tokio::test]
async fn preempted_attempts_survive_kills_also_when_every_step_is_followed_by_a_snapshot() {
    let mut scene = Scene::new();
    scene.configuration.journal_bytes_max = 1;
    preempted_with_a_kill_at_every_step(&scene).await;
}

#[tokio::test]
async fn a_suspended_attempt_is_lost_with_its_worker_and_a_checkpoint_is_not() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let mut worker = Worker::join(&coordinator, "w", 2).await;
    coordinator.submit(scene.submission(1, 2, 1)).await;
    let (first, second) = (worker.launched().await, worker.launched().await);
    worker.started(first);
    worker.started(second);
    // Nothing of the job may take up again what was checkpointed before its worker is gone.
    coordinator.command(first, TaskCommand::Suspend).await.expect("ordered");
    worker.suspends(first, 800).await;
    coordinator.command(second, TaskCommand::Checkpoint).await.expect("ordered");
    worker.checkpoints(second, 500).await;
    assert_eq!(worker.restores().await.1, Some(second));
    // A later start of the same worker takes its place when its process has died.
    worker.disconnect();
    let slots = Slots { map: 2, reduce: 2 };
    let mut hello = worker.hello.clone();
    (hello.incarnation, hello.before, hello.received, hello.slots) = (2, None, 0, slots);
    let mut later = Worker::connect(&coordinator, hello, 0).await;
    assert_eq!(later.restores().await, (attempt(1, TaskKind::Map, 1, 3), Some(second)));
    // What an operator suspended waits for an operator, though there is nothing left of it.
    coordinator.command(first, TaskCommand::Resume).await.expect("a task that is held");
    assert_eq!(later.restores().await, (attempt(1, TaskKind::Map, 0, 2), None));
    let detail = coordinator.detail(JOB).await;
    let stop = detail.preemptions.iter().find(|known| known.attempt == first).expect("it was suspended");
    assert_eq!((stop.end, stop.work_lost_millis), (Some(PreemptionEnd::Suspended), 800));
    assert_eq!(detail.counters.get("WORK_LOST_MILLIS"), 800);
    coordinator.stop().await;
}

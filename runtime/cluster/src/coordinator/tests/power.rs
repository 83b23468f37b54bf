//! A coordinator whose machine loses power at every call to the disk of its cluster directory.

use std::sync::Arc;
use std::time::Duration;

use napreduce_engine::JobId;
use napreduce_local::world::disk::{CallFault, Disk, SimDisk};
use napreduce_protocol::requests::KillJob;
use napreduce_protocol::{Answer, JobEnd};
use tokio::time::timeout;

use super::{DEADLINE, LoopRequest, Reply, Running, Scene};
use crate::cluster_directory::ClusterDirectory;
use crate::journal::FsyncPolicy;

const TOKENS: [u128; 2] = [1, 2];

/// A scene whose cluster directory is on a simulated disk.
pub(super) fn scene_on_simulated_disk(seed: u64) -> (Scene, SimDisk) {
    let mut scene = Scene::new();
    let disk = SimDisk::new(seed);
    disk.make_directories(scene.folder.path(), 0o700)
        .expect("made");
    for directory in scene.folder.path().ancestors() {
        disk.sync_directory(directory).expect("synced");
    }
    let path = scene.path("cluster");
    scene.configuration.directory = ClusterDirectory::on_disk(Arc::new(disk.clone()), path);
    scene.configuration.fsync = FsyncPolicy::Always;
    (scene, disk)
}

/// Submits a job; `None` if the coordinator ends before it answers.
async fn submit(coordinator: &Running, scene: &Scene, token: u128) -> Option<JobId> {
    let mut submission = scene.submission(token, 1, 0);
    submission.plan.output = scene.path(&format!("out-{token}"));
    let (reply, answer) = Reply::channel();
    let request = LoopRequest::Message((*submission).into(), reply);
    coordinator.requests.send(request).ok()?;
    let answer = timeout(DEADLINE, answer).await.expect("an end in time");
    let answer = answer.ok()?.expect("an accepted job");
    Some(JobId::from_message(answer).expect("a job"))
}

/// Runs a coordinator until its machine ends; returns the jobs that it has accepted.
async fn run(scene: &Scene) -> Vec<(u128, JobId)> {
    let mut accepted = Vec::new();
    if scene.configuration.directory.create().is_err() {
        return accepted;
    }
    let Ok(coordinator) = scene.try_start(|_| {}) else {
        return accepted;
    };
    for token in TOKENS {
        if let Some(job) = submit(&coordinator, scene, token).await {
            accepted.push((token, job));
        }
    }
    coordinator.task.abort();
    // It was aborted, or has ended after an error.
    let _ = coordinator.task.await;
    coordinator.helper.await.expect("no panic");
    accepted
}

#[tokio::test]
async fn accepted_job_survives_power_loss_at_every_call() {
    let calls = {
        let (scene, disk) = scene_on_simulated_disk(0);
        let before = disk.calls();
        assert_eq!(run(&scene).await.len(), TOKENS.len());
        before..disk.calls() + 1
    };
    for call in calls {
        for seed in 0..4 {
            let (scene, disk) = scene_on_simulated_disk(seed);
            disk.fail_call(call, CallFault::LastCall);
            let accepted = run(&scene).await;
            disk.lose_power();
            scene.configuration.directory.create().expect("created");
            let coordinator = scene.start();
            for (token, job) in accepted {
                let known = coordinator.job(job).await;
                assert!(
                    known.is_ok(),
                    "power lost at {call}, seed {seed}: {known:?}"
                );
                let again = submit(&coordinator, &scene, token).await;
                assert_eq!(again, Some(job), "power lost at {call}, seed {seed}");
            }
            coordinator.kill().await;
        }
    }
}

/// The removal of its output must not outlive the kill: the job would continue without its directory.
#[tokio::test]
async fn killed_job_stays_killed_after_power_loss() {
    let (mut scene, disk) = scene_on_simulated_disk(0);
    scene.configuration.directory.create().expect("created");
    scene.configuration.fsync = FsyncPolicy::Interval(Duration::from_secs(3_600));
    let coordinator = scene.start();
    let job = coordinator.submit(scene.submission(1, 1, 0)).await;
    // The end of a coordinator syncs its journal.
    coordinator.stop().await;
    let coordinator = scene.start();
    let reason = "the test wants it".to_owned();
    let kill = coordinator.asked(KillJob { job, reason });
    kill.await.expect("a live job");
    assert!(matches!(
        coordinator.end_of(job).await,
        JobEnd::Killed { .. }
    ));
    coordinator.kill().await;
    disk.lose_power();
    scene.configuration.directory.create().expect("created");
    let coordinator = scene.start();
    let end = coordinator.end_of(job).await;
    assert!(matches!(end, JobEnd::Killed { .. }), "{end:?}");
    coordinator.stop().await;
}

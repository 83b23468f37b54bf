//! Output directories when coordinators are killed, storage is unavailable, or another process takes the
//! directory.

use std::fs::File;
use std::time::{Duration, Instant, SystemTime};

use napreduce_engine::{FaultPlace, JobId, Order};
use napreduce_local::output::{DiskScript, Owner};
use napreduce_protocol::{JobPhase, TaskError, ToWorker, WorkerReport};

use super::script::{Stage, check, check_also_with_snapshots};
use super::{Scene, Worker};

/// A job whose output directory is moved away before its commit.
const HELD_AT_ITS_COMMIT: &str = "
    worker w 1
    submit 1 maps 1 reduces 1       > launch m0.1 on w
    does m0.1                       > launch r0.1 on w
    started r0.1
    commits r0.1                    > commit r0.1
    writes r0.1
    move out away
    done r0.1
    until why 1                     > ...
                                    > ...it is held and retried...
                                    > ...
";

const MAP_AT_WORK: &str = "
    worker w 1
    submit 1 maps 1 reduces 1       > launch m0.1 on w
    started m0.1
";

/// The error for a missing file in the output directory.
const OUT_OF_OUTPUT: &str =
    "failed m0.1 retryable at shared-storage: cannot create out/part: No such file or directory";

/// A newer output of another owner stays unchanged.
#[test]
fn settled_job_without_history_is_not_ended_again() {
    check_also_with_snapshots(
        "worker w 1
         submit 1 maps 1 reduces 1
         finish 1 on w
         kill coordinator
         remove cluster/coordinator/history/job_0001.json
         write out/_SUCCESS: {}
         write out/part-r-00000: newer
         start
         ask job 1                       > refused: there is no job_0001; see: nap job list
         stop coordinator
         ask file out/_SUCCESS           > {}
         ask file out/part-r-00000       > newer
         ask file cluster/coordinator/history/job_0001.json
             > none",
    );
}

/// Another host could take an output whose lease is older than a minute.
#[tokio::test(start_paused = true)]
async fn lease_of_running_job_is_renewed() {
    let mut stage = Stage::new();
    stage.play(MAP_AT_WORK).await;
    let claim = stage.scene.path("out/_temporary/claim.json");
    let file = File::options().write(true).open(&claim).expect("a claim");
    file.set_modified(SystemTime::UNIX_EPOCH).expect("set");
    let is_old = || {
        let modified = file.metadata().and_then(|found| found.modified());
        modified.expect("a time") == SystemTime::UNIX_EPOCH
    };
    let began = tokio::time::Instant::now();
    while is_old() && began.elapsed() < Duration::from_secs(60) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(!is_old());
    stage.end().await;
}

#[test]
fn commit_waits_for_unreachable_storage() {
    check(&format!(
        "{HELD_AT_ITS_COMMIT}
         ask jobs                        > 1 ...No such file...
         ask files out                   > none
         restart
         until why 1                     > ...
                                         > ...it is held and retried...
                                         > ...
         move away out
         ask end 1                       > succeeded: part-r-00000
         ask files out                   > _SUCCESS
                                         > part-r-00000"
    ));
}

#[test]
fn job_waiting_for_storage_can_be_killed() {
    check(&format!(
        "{HELD_AT_ITS_COMMIT}
         ask why 1                       > ...
                                         > ...nap job kill job_0001...
                                         > ...
         kill 1: by ada
         ask end 1                       > killed: by ada; its output was not committed..."
    ));
}

/// An empty mount point is not the claimed directory.
#[test]
fn restart_holds_job_with_unreachable_storage() {
    check(
        "worker w 1
         submit 1 maps 1 reduces 1
         kill coordinator
         move out away
         start
         until why 1                     > ...
                                         > ...its output directory is unreachable...
                                         > ...
         make out
         reconnect w
         ask files out                   > nothing
         remove out
         move away out                   > launch m0.1 on w",
    );
}

#[test]
fn unreachable_storage_holds_job_uncounted() {
    check(&format!(
        "worker w 1
         submit 1 maps 1 reduces 1 attempts 1
             > launch m0.1 on w
         started m0.1
         move out away
         {OUT_OF_OUTPUT}                 > suspend m0.1
         ask why 1
             > ...
             > ...its output directory is unreachable...
             > ...
             > it continues when the directory is reachable; end it with: nap job kill job_0001
         move away out                   > launch m0.2 on w"
    ));
}

#[tokio::test]
async fn hanging_storage_holds_only_its_job() {
    let mut stage = Stage::new();
    let (disk, script) = DiskScript::disk(&stage.scene.path("out"), None);
    stage.running = Some(
        stage
            .scene
            .start_changed(|coordinator| coordinator.local.set_disk(disk)),
    );
    stage.play(MAP_AT_WORK).await;
    let stalled = script.stall();
    stage.play(OUT_OF_OUTPUT).await;
    stage
        .play("until why 1 > ... > ...no response within 250 ms... > ...")
        .await;
    drop(stalled);
    stage.play("heard > suspend m0.1 > launch m0.2 on w").await;
    stage.end().await;
}

/// A check takes a quarter of a second if the storage does not answer.
#[tokio::test]
async fn hanging_storage_of_twenty_jobs_delays_answers_by_less_than_a_second() {
    const JOBS: u32 = 20;
    let scene = Scene::new();
    let (disk, script) = DiskScript::disk(&scene.path("out"), None);
    let coordinator = scene.start_changed(|coordinator| coordinator.local.set_disk(disk));
    let mut worker = Worker::join(&coordinator, "w", JOBS).await;
    for number in 1..=JOBS {
        let mut submission = scene.submission(u128::from(number), 1, 0);
        submission.plan.output = scene.path(&format!("out-{number}"));
        coordinator.submit(submission).await;
    }
    let mut attempts = Vec::new();
    while attempts.len() < JOBS as usize {
        if let ToWorker::Ordered {
            order: Order::Launch { attempt, .. },
            ..
        } = worker.next().await
        {
            worker.started(attempt);
            attempts.push(attempt);
        }
    }
    let stalled = script.stall();
    for attempt in attempts {
        let error = TaskError::retryable("cannot create its part").at(FaultPlace::SharedStorage);
        worker.report(WorkerReport::Failed { attempt, error });
    }
    let began = Instant::now();
    // The coordinator reads its messages in order, so it has read the reports before.
    let other = Worker::join(&coordinator, "other", 1).await;
    let job = coordinator.job(JobId(1)).await.expect("a known job");
    let delay = began.elapsed();
    assert!(delay < Duration::from_secs(1), "{delay:?}");
    assert_eq!(job.summary.phase, JobPhase::Running);
    // The reports are applied when the checks have timed out: every job waits for its storage.
    worker.is_heard().await;
    for number in 1..=JOBS {
        let job = coordinator.job(JobId(number)).await.expect("a known job");
        let why = job.summary.reason.expect("a reason");
        assert!(why.contains("no response within 250 ms"), "{why}");
    }
    drop(stalled);
    drop((worker, other));
    coordinator.stop().await;
}

#[test]
fn removed_output_fails_job_immediately() {
    check(&format!(
        "{MAP_AT_WORK}
         remove out
         {OUT_OF_OUTPUT}
         ask end 1                       > failed: ...was removed while the job ran..."
    ));
}

#[test]
fn output_unreachable_from_one_host_is_retried() {
    check(&format!(
        "{MAP_AT_WORK}
         worker v 1
         {OUT_OF_OUTPUT}                 > launch m0.2 on v
         ask why 1
             > job_0001 is running
             > 0 of 1 map tasks are done; 1 running, 0 suspended, 0 waiting
             > 0 of 1 reduce tasks are done; 0 running, 0 suspended, 1 waiting
             > it waits for maps: 1 of 1 must be done (slow-start), 0 are"
    ));
}

#[tokio::test]
async fn job_whose_output_was_taken_touches_nothing() {
    let mut stage = Stage::new();
    stage
        .play("submit 1 maps 1 reduces 1 \n kill coordinator")
        .await;
    let other = stage.scene.claim(70, 9, Owner::Program);
    stage
        .play("start \n ask end 1 > killed: ...was taken by job_0070 of process ...")
        .await;
    stage.end().await;
    other.discard().expect("it still has all that is its own");
}

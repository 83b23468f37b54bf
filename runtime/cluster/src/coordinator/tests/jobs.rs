//! Jobs from submission to history.

use std::sync::Arc;
use std::time::Duration;

use napreduce_engine::{Event, JobId, Ratio, Report};
use napreduce_local::coordinator::{Recording, ReplayedBatch};
use napreduce_local::output::Owner;
use napreduce_protocol::{JobDetail, JobEnd, JobReport};

use napreduce_schedulers::capacity::QueueConfiguration;
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};

use super::script::{Stage, check};

#[test]
fn job_completes_and_enters_history() {
    check(
        "worker w 2
         submit 1 maps 1 reduces 1       > launch m0.1 on w
         does m0.1                       > launch r0.1 on w
         does r0.1
         ask end 1                       > succeeded: part-r-00000
                                         > w: forget 1
         ask file out/part-r-00000       > done
         ask files out                   > _SUCCESS
                                         > part-r-00000
         ask job 1                       > succeeded, priority 0, queue default
         ask attempts 1                  > m0.1 succeeded
                                         > r0.1 succeeded
         ask tasks 1                     > m0 succeeded
                                         > r0 succeeded",
    );
}

/// A token that needs all 128 bits.
const TOKEN: u128 = u128::MAX - 5;

/// The system clock is set back or forward by a day while the coordinator runs.
#[tokio::test]
async fn wall_time_ignores_changes_of_system_clock() {
    const DAY_MICROS: u64 = 86_400_000_000;
    for set in [u64::wrapping_sub as fn(u64, u64) -> u64, u64::wrapping_add] {
        let mut stage = Stage::new();
        stage.running = Some(stage.scene.start_changed(|coordinator| {
            let state = coordinator.local.state_mut();
            state.set_epoch_micros(set(state.epoch_micros(), DAY_MICROS));
        }));
        stage
            .play("worker w 2 \n submit 1 maps 1 reduces 1 \n finish 1 on w")
            .await;
        let JobEnd::Succeeded(JobReport { wall, .. }) = stage.running().end_of(JobId(1)).await
        else {
            panic!("no success")
        };
        assert!(
            wall > Duration::ZERO && wall < Duration::from_secs(3_600),
            "{wall:?}"
        );
        let JobDetail {
            summary, attempts, ..
        } = stage.running().job(JobId(1)).await.expect("in history");
        let began = summary.submitted_millis;
        let ended = summary.ended_millis.expect("it has ended");
        assert!(Duration::from_millis(ended - began).abs_diff(wall) <= Duration::from_millis(1));
        for one in attempts {
            let there = one.launched_millis..=one.ended_millis.expect("it has ended");
            assert!(
                began <= *there.start()
                    && there.start() <= there.end()
                    && *there.end() <= ended + 1
            );
        }
        stage.end().await;
    }
}

#[test]
fn repeated_submission_is_one_job() {
    check(&format!(
        "submit {TOKEN} maps 1           > is job 1
         submit {TOKEN} maps 1           > is job 1
         restart
         submit {TOKEN} maps 1           > is job 1
         kill 1: no more
         ask end 1                       > killed: no more
         submit {TOKEN} maps 1           > is job 1"
    ));
}

#[tokio::test]
async fn leftovers_of_same_submission_are_replaced() {
    let mut stage = Stage::new();
    drop(stage.scene.claim(1, TOKEN, Owner::Cluster));
    let script = format!(
        "submit 6 maps 1
             > refused: output directory ...out/ contains _temporary of an unfinished run; ...
         submit {TOKEN} maps 1           > is job 1"
    );
    stage.play(&script).await;
    stage.end().await;
}

#[test]
fn output_in_use_is_refused() {
    check(
        "submit 1 maps 1
         submit 2 maps 1
             > refused: output directory ...out/ is being written by another run; wait for it or choose another",
    );
}

#[test]
fn killed_job_removes_output_and_reports_reason() {
    check(
        "worker w 1
         submit 1 maps 2                 > launch m0.1 on w
         started m0.1
         kill 1: ada asked               > kill m0.1
         killed m0.1
         ask end 1                       > killed: ada asked
         ask files out                   > none
         kill 1: again                   > refused: job_0001 has ended",
    );
}

#[test]
fn killed_attempt_is_retried_uncounted() {
    check(
        "worker w 1
         submit 1 maps 1                 > launch m0.1 on w
         started m0.1
         kill m0: too slow               > m0.1
                                         > kill m0.1
         killed m0.1                     > launch m0.2 on w
         ask attempts 1                  > m0.1 ...too slow...
                                         > m0.2 is live",
    );
}

#[test]
fn failed_job_reports_reason() {
    check(
        "worker w 1
         submit 1 maps 1                 > launch m0.1 on w
         started m0.1
         failed m0.1 task: bad row       > launch m0.2 on w
         started m0.2
         failed m0.2 task: bad row       > launch m0.3 on w
         started m0.3
         failed m0.3 task: bad row       > launch m0.4 on w
         started m0.4
         failed m0.4 task: bad row
         ask end 1                       > failed: job_0001_m_0000 failed 4 times; last: bad row",
    );
}

#[test]
fn task_that_failed_its_job_is_known_after_restart() {
    check(
        "worker w 2
         submit 1 maps 2 reduces 1 attempts 1
                                         > launch m0.1 on w > launch m1.1 on w
         started m0.1
         started m1.1
         failed m1.1 task: bad row       > kill m0.1
         ask tasks 1                     > m0 running, m0.1 killing
                                         > m1 waiting
                                         > r0 waiting
         restart
         killed m0.1
         ask failure 1                   > m1.1 user code: bad row
         kill coordinator
         start
         ask tasks 1                     > m0 killed
                                         > m1 failed
                                         > r0 killed
         ask failure 1                   > m1.1 user code: bad row",
    );
}

#[test]
fn unknown_names_are_refused() {
    check(
        "ask job 9                       > refused: there is no job_0009; see: nap job list
         submit 1 maps 1
         ask why r3                      > refused: job_0001 has no task job_0001_r_0003",
    );
}

#[test]
fn explain_reports_why_nothing_runs() {
    check(
        "submit 1 maps 1
         ask why m0                      > job_0001_m_0000 is waiting
                                         > no worker is up; start one",
    );
}

#[tokio::test]
async fn limit_on_running_jobs_is_explained_first() {
    let mut stage = Stage::new();
    let queue = QueueConfiguration::new("default", Ratio::whole(100));
    let mut scheduler = SchedulerConfiguration::named(SchedulerName::Capacity);
    scheduler.tables.capacity.queue = vec![QueueConfiguration {
        max_running_jobs: Some(1),
        ..queue
    }];
    stage.scene.configuration.scheduler = Arc::new(scheduler);
    stage
        .play(
            "worker w 2
             submit 1 maps 1                 > launch m0.1 on w
             submit 2 maps 1 to other
             ask why 2
                 > job_0002 is waiting
                 > 0 of 1 map tasks are done; 0 running, 0 suspended, 1 waiting
                 > it waits: queue default runs 1 job, its limit
             ask why 2:m0
                 > job_0002_m_0000 is waiting
                 > it waits: queue default runs 1 job, its limit",
        )
        .await;
    stage.end().await;
}

#[tokio::test]
async fn simultaneous_ends_count_in_one_decision() {
    let mut stage = Stage::new();
    let recording = Recording::default();
    stage.running = Some(
        stage
            .scene
            .start_recorded(Some(Recording::clone(&recording))),
    );
    stage
        .play(
            "worker w 2
             submit 1 maps 2 reduces 1       > launch m0.1 on w
                                             > launch m1.1 on w
             started m0.1
             done m0.1 counting MAP_INPUT_RECORDS 3
             started m1.1
             done m1.1 counting MAP_INPUT_RECORDS 4
                 > launch r0.1 on w
             ask counters 1 MAP_INPUT_RECORDS
                 > MAP_INPUT_RECORDS 7",
        )
        .await;
    let is_done = |event: &&Event| {
        matches!(
            event,
            Event::Reported {
                report: Report::Done { .. },
                ..
            }
        )
    };
    let ends = |batch: &ReplayedBatch| batch.events.iter().filter(is_done).count();
    let most = recording
        .lock()
        .expect("nobody panicked")
        .iter()
        .map(ends)
        .max();
    assert_eq!(
        most,
        Some(2),
        "what has arrived together is decided about together"
    );
    stage.end().await;
}

#[test]
fn progress_excludes_lost_tasks() {
    check(
        "worker w 2
         submit 1 maps 2 reduces 1       > launch m0.1 on w
                                         > launch m1.1 on w
         ask progress 1                  > 0/2, 0/20 bytes
         does m0.1
         ask progress 1                  > 1/2, 10/20 bytes
         does m1.1                       > launch r0.1 on w
         ask progress 1                  > 2/2, 20/20 bytes
         started r0.1
         lacks r0.1 m0.1: it is damaged  > launch m0.2 on w
         ask progress 1                  > 1/2, 10/20 bytes
         does m0.2
         ask progress 1                  > 2/2, 20/20 bytes",
    );
}

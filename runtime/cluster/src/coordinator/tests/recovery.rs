//! Restarts after a killed coordinator: journaled events are neither lost nor repeated.

use std::fs;
use std::path::PathBuf;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use tokio::task::spawn_blocking;

use super::script::{Stage, check};

/// A whole job whose coordinator is killed after each step. The first report may or may not have been
/// journaled, so the worker repeats it.
const KILLED_AT_EVERY_STEP: &str = "
    worker w 1
    submit 1 maps 2 reduces 1
    restart                         > launch m0.1 on w
    started m0.1
    kill coordinator
    start
    repeats w
    reconnect w
    does m0.1                       > launch m1.1 on w
    restart
    does m1.1                       > launch r0.1 on w
    started r0.1
    commits r0.1                    > commit r0.1
    restart
    writes r0.1
    done r0.1
    ask end 1                       > succeeded: part-r-00000
    ask file out/part-r-00000       > done
    restart
    ask attempts 1                  > m0.1 succeeded
                                    > m1.1 succeeded
                                    > r0.1 succeeded
";

#[test]
fn job_survives_coordinator_kill_at_every_step() {
    check(KILLED_AT_EVERY_STEP);
}

/// The digest of a map's first output, which a reduce has used, outlives the coordinator.
const MAP_WRITES_OTHER_RECORDS: &str = "
    worker w 1
    submit 1 maps 1 reduces 2       > launch m0.1 on w
    started m0.1
    done m0.1 wrote 7               > launch r0.1 on w
    does r0.1                       > launch r1.1 on w
    started r1.1
    lacks r1.1 m0.1: it is damaged  > launch m0.2 on w
    restart
    started m0.2
    done m0.2 wrote 8               > kill r1.1
    killed r1.1
    ask end 1
        > failed: job_0001_m_0000 is not deterministic: job_0001_m_0000.2 wrote other records than ...
";

#[test]
fn map_output_that_changes_across_restart_fails_job() {
    check(MAP_WRITES_OTHER_RECORDS);
}

#[test]
fn map_output_that_changes_after_snapshot_fails_job() {
    check(&format!("set snapshots {MAP_WRITES_OTHER_RECORDS}"));
}

#[test]
fn job_survives_kills_with_snapshot_at_every_step() {
    check(&format!(
        "set snapshots
         {KILLED_AT_EVERY_STEP}
         stop coordinator
         ask files cluster/coordinator   > blobs
                                         > definitions
                                         > history
                                         > journal-...log
                                         > snapshot-...json"
    ));
}

#[tokio::test]
async fn worker_of_other_journal_gets_new_numbers() {
    let mut stage = Stage::new();
    let mut other = Stage::new();
    stage
        .play("worker w 1 \n submit 1 maps 1 > launch m0.1 on w \n stop coordinator")
        .await;
    other.workers.append(&mut stage.workers);
    other
        .play("start \n reconnect w \n submit 1 maps 1 > w: define 1")
        .await;
    other.end().await;
}

/// As after a power failure that truncated the journal: the worker has received an order that the coordinator
/// does not know.
#[test]
fn worker_ahead_of_journal_is_superseded() {
    check(
        "worker w 1
         submit 1 maps 1                 > launch m0.1 on w
         received w 99
         reconnect w                     > w is worker 2 now",
    );
}

#[test]
fn acknowledgement_of_unsent_message_loses_worker() {
    check(
        "worker w 1
         acknowledges w 5                > w: closed
         ask workers                     > 1 w lost: acknowledgement of message 5, but only 0 were sent; ...",
    );
}

#[test]
fn changed_settings_apply_after_restart() {
    check(
        "worker w 1
         submit 1 maps 1 reduces 1       > launch m0.1 on w
         started m0.1
         kill coordinator
         set no-speculation
         start
         repeats w
         reconnect w
         does m0.1
         finish 1 on w",
    );
}

#[test]
fn restarted_worker_keeps_number_after_drain() {
    check(
        "worker w 1
         drain w now                     > w: leave
         disconnect w
         worker w 1                      > w is worker 2 now
         submit 1 maps 1                 > launch m0.1 on w
         kill coordinator
         start
         repeats w
         reconnect w
         started m0.1",
    );
}

#[tokio::test]
async fn removed_journal_is_reported_and_numbers_continue() {
    let mut stage = Stage::new();
    let script = "worker w 1
                  submit 1 maps 1
                  finish 1 on w
                  kill coordinator";
    stage.play(script).await;
    let directory = stage.scene.configuration.directory.coordinator_directory();
    for file in fs::read_dir(&directory).expect("listed") {
        let path = file.expect("an entry").path();
        if path.is_file() {
            fs::remove_file(path).expect("removed");
        }
    }
    let log = stage
        .scene
        .recovered()
        .expect("it begins anew")
        .local
        .state_mut()
        .take_notices();
    let expected = format!(
        "the journal in {} is missing, but there is a history up to job_0001",
        directory.display()
    );
    assert!(log.iter().any(|line| line.contains(&expected)), "{log:?}");
    stage
        .play("start \n submit 2 maps 1 to other \n kill coordinator")
        .await;
}

#[tokio::test]
async fn missing_snapshot_refuses_start() {
    let mut stage = Stage::new();
    stage
        .play("set snapshots \n worker w 1 \n submit 1 maps 1 \n stop coordinator")
        .await;
    let directory = stage.scene.configuration.directory.coordinator_directory();
    let listed = || {
        let names = fs::read_dir(&directory)
            .expect("listed")
            .map(|entry| entry.expect("an entry").file_name());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    let snapshot = listed()
        .into_iter()
        .find(|name| name.to_string_lossy().starts_with("snapshot-"));
    fs::remove_file(directory.join(snapshot.expect("a snapshot"))).expect("removed");
    let before = listed();
    let refused = stage
        .scene
        .recovered()
        .err()
        .expect("it is refused")
        .to_string();
    assert!(
        refused.contains("is missing, but ") && refused.contains("`nap journal repair`"),
        "{refused}"
    );
    assert_eq!(listed(), before);
}

/// A directory blocks the path of the snapshot, and cleanup. The last report may or may not have been
/// journaled, so the worker repeats all reports.
#[tokio::test]
async fn unwritable_snapshot_is_skipped() {
    let mut stage = Stage::new();
    stage.play("set snapshots").await;
    let directory = stage.scene.configuration.directory.coordinator_directory();
    let obstacle = directory.join("snapshot-00000002.unfinished");
    stage.running = Some(
        stage
            .scene
            .start_changed(|_| fs::create_dir(&obstacle).expect("an obstacle")),
    );
    let begun = "worker w 1
                 submit 1 maps 1 reduces 1       > launch m0.1 on w
                 does m0.1                       > launch r0.1 on w
                 started r0.1
                 kill coordinator";
    stage.play(begun).await;
    fs::remove_dir(&obstacle).expect("it is still there");
    let again = "start
                 repeats w
                 reconnect w
                 does m0.1
                 does r0.1
                 ask end 1                       > succeeded: part-r-00000";
    stage.play(again).await;
    stage.end().await;
}

/// The first snapshot is written to a named pipe, which has no reader until the job is done.
#[tokio::test]
async fn snapshot_is_written_in_background() {
    let mut stage = Stage::new();
    stage.play("set snapshots").await;
    let directory = stage.scene.configuration.directory.coordinator_directory();
    let pipe = Pipe(directory.join("snapshot-00000002.unfinished"));
    stage.running = Some(stage.scene.start_changed(|_| pipe.make()));
    let done = "worker w 1
                submit 1 maps 1 reduces 1
                finish 1 on w";
    stage.play(done).await;
    assert!(!directory.join("snapshot-00000002.json").exists());
    // A pipe cannot be synced, so the snapshot fails, and the next one replaces it.
    let path = pipe.0.clone();
    let read = spawn_blocking(move || fs::read(path).expect("the pipe"))
        .await
        .expect("read");
    assert!(!read.is_empty());
    stage
        .play("stop coordinator \n start \n ask end 1 > succeeded: part-r-00000")
        .await;
    stage.end().await;
}

/// A named pipe.
struct Pipe(PathBuf);

impl Pipe {
    fn make(&self) {
        mknodat(CWD, &self.0, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    }
}

impl Drop for Pipe {
    /// Opens the pipe, so that a writer does not block forever if the test fails.
    fn drop(&mut self) {
        let _ = open(&self.0, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty());
    }
}

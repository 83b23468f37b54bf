//! Ended jobs: answers about them, the files that these come from, and restarts.

use std::fs;
use std::path::Path;

use napreduce_engine::JobId;
use napreduce_history::{HistoryFolder, WorkerGroup};
use napreduce_protocol::requests::ListJobs;
use napreduce_protocol::{JobDetail, JobEnd};
use tokio::time::timeout;

use super::DEADLINE;
use super::script::Stage;
use crate::coordinator::requests::LoopRequest;

/// A job of one map and one reduce that ran on worker `w`.
const DONE: &str = "
    worker w 1
    submit 1 maps 1 reduces 1
    finish 1 on w
";

/// Questions about this job, with the expected answers.
const ANSWERS: &str = "
    ask jobs                        > 1 succeeded
    ask tasks 1                     > m0 succeeded
                                    > r0 succeeded
    ask why 1                       > job_0001 has ended, succeeded
    ask outcomes kill m0.1          > m0.1 done
";

impl Stage {
    async fn detail(&self) -> JobDetail {
        self.running().job(JobId(1)).await.expect("in history")
    }

    /// Checks the answers about the job, whose detail is given.
    async fn check_answers(&mut self, detail: &JobDetail) {
        self.play(ANSWERS).await;
        assert_eq!(self.detail().await, *detail);
        let JobEnd::Succeeded(report) = self.running().end_of(JobId(1)).await else {
            panic!("no success")
        };
        assert_eq!(
            (&report.parts, &report.counters),
            (&detail.parts, &detail.counters)
        );
    }
}

#[tokio::test]
async fn ended_job_is_answered_equally_without_index() {
    let mut stage = Stage::new();
    stage.play(DONE).await;
    let logs = "ask log r0.1                    > 127.0.0.1:1 has it, and it grows no more
                ask log m7.1                    > refused: job_0001_m_0007.1 does not exist";
    stage.play(logs).await;
    let detail = stage.detail().await;
    stage.check_answers(&detail).await;
    stage.play("disconnect w \n restart").await;
    stage.check_answers(&detail).await;
    let damaged =
        "ask job 2                       > refused: there is no job_0002; see: nap job list
                   stop coordinator
                   write cluster/coordinator/history/index.jsonl: damaged
                   start";
    stage.play(damaged).await;
    stage.check_answers(&detail).await;
    stage.end().await;
}

/// As if the disk of the history were full.
#[tokio::test]
async fn job_that_the_history_cannot_take_stays_in_lists_with_the_reason() {
    for first in ["", "set snapshots"] {
        let mut stage = Stage::new();
        let full = "
            worker w 1
            submit 1 maps 1 reduces 1
            move cluster/coordinator/history moved
            write cluster/coordinator/history: it is no directory
            finish 1 on w
            until jobs                      > 1 succeeded
            ask job 1
                > refused with 1: job_0001 has succeeded, but is missing from the history: ...
            remove cluster/coordinator/history
            move moved cluster/coordinator/history
            disconnect w
        ";
        stage.play(&format!("{first}\n{full}")).await;
        for _ in 0..2 {
            let jobs = stage
                .running()
                .asked(ListJobs { limit: 99 })
                .await
                .expect("jobs");
            let missing: Vec<(u32, bool)> = jobs
                .iter()
                .map(|job| (job.job.0, job.unrecorded.is_some()))
                .collect();
            assert_eq!(missing, [(1, true)]);
            let newest = stage
                .running()
                .asked(ListJobs { limit: 1 })
                .await
                .expect("jobs");
            assert_eq!(newest.len(), 1);
            stage.play("restart").await;
        }
        stage.end().await;
    }
}

/// A map that printed to stderr before it failed.
const FAILED: &str = "
    worker w 1
    submit 1 maps 1                 > launch m0.1 on w
    started m0.1
    printed m0.1: it panicked
    failed m0.1 fatal: bad row
    ask end 1                       > failed: ...bad row
";

#[tokio::test]
async fn stderr_of_failed_attempt_survives_worker() {
    let mut stage = Stage::new();
    stage.play(FAILED).await;
    let there = "ask log m0.1                    > 127.0.0.1:1 has it, and it grows no more
                                                 > kept: it panicked";
    stage.play(there).await;
    let silent = 2 * stage.scene.configuration.liveness;
    stage.worker("w").heard.move_back(silent);
    // The coordinator drops the connection of a lost worker.
    while stage.worker("w").messages.recv().await.is_some() {}
    stage.play("ask log m0.1 > kept: it panicked \n kill coordinator \n start \n ask log m0.1 > kept: it panicked").await;
    stage.end().await;
}

#[tokio::test]
async fn twenty_logs_of_failed_attempts_are_kept() {
    let printed = |number| format!("\n    printed m0.1: {number}");
    let many = FAILED.replace(
        "\n    printed m0.1: it panicked",
        &(0..21).map(printed).collect::<String>(),
    );
    for (set, kept) in [("", 20), ("set no-failed-logs", 0)] {
        let mut stage = Stage::new();
        stage.play(&format!("{set}{many}")).await;
        let folder =
            HistoryFolder::open(&stage.scene.configuration.directory.coordinator_directory());
        let ended = folder
            .expect("a history")
            .read(JobId(1))
            .expect("readable")
            .expect("there");
        assert_eq!(ended.logs.len(), kept);
        stage.end().await;
    }
}

#[tokio::test]
async fn ended_job_records_policy_and_workers() {
    let mut stage = Stage::new();
    stage.play(DONE).await;
    let folder = HistoryFolder::open(&stage.scene.configuration.directory.coordinator_directory());
    let ended = folder
        .expect("a history")
        .read(JobId(1))
        .expect("readable")
        .expect("there");
    let cluster = ended.cluster.expect("recorded");
    assert_eq!(
        (cluster.scheduler.as_str(), cluster.tables),
        ("fifo", Some(serde_json::json!({})))
    );
    let preemption =
        serde_json::to_value(stage.scene.configuration.preemption).expect("plain data");
    assert_eq!(cluster.preemption, preemption);
    assert_eq!(
        cluster.workers,
        [WorkerGroup {
            workers: 1,
            map_slots: 1,
            reduce_slots: 1
        }]
    );
    let attempts = stage.detail().await.attempts;
    assert_eq!(ended.detail.attempts, attempts);
    assert!(
        attempts.iter().all(|attempt| attempt.figures.is_some()),
        "{attempts:?}"
    );
    stage.end().await;
}

#[tokio::test]
async fn head_of_version_1_is_readable() {
    let mut stage = Stage::new();
    stage.play(DONE).await;
    let detail = stage.detail().await;
    let end = stage.running().end_of(JobId(1)).await;
    let head = serde_json::json!({ "version": 1, "token": 1, "end": end, "detail": detail });
    let rewritten = format!(
        "stop coordinator
         remove cluster/coordinator/history/job_0001.jsonl.gz
         write cluster/coordinator/history/job_0001.json: {head}
         start"
    );
    stage.play(&rewritten).await;
    stage.check_answers(&detail).await;
    // The token is known, so the submission returns the same job.
    stage.play("submit 1 maps 1 reduces 1").await;
    stage.end().await;
}

#[tokio::test]
async fn lost_recording_is_reported_in_events() {
    let mut stage = Stage::new();
    stage.play(DONE).await;
    let detail = stage.detail().await;
    stage
        .play("remove cluster/coordinator/history/job_0001.jsonl.gz")
        .await;
    for _ in 0..2 {
        let read = stage.detail().await;
        assert_eq!(
            (&read.summary, &read.parts, read.attempts.len()),
            (&detail.summary, &detail.parts, 0)
        );
        let said: Vec<_> = read.events.iter().map(|line| line.text.as_str()).collect();
        assert!(
            said.iter()
                .all(|line| line.starts_with("job_0001.jsonl.gz: ")),
            "{said:?}"
        );
        assert!(said.concat().contains("2 of 2 attempts"), "{said:?}");
    }
    stage.end().await;
}

/// The coordinator is killed after it has written the files of the job and before it journals the job's end.
#[tokio::test]
async fn job_ended_only_in_history_is_recorded_once() {
    let mut stage = Stage::new();
    stage.play(DONE).await;
    let before = stage.detail().await;
    stage.play("kill coordinator").await;
    forget_settling(&stage.scene.configuration.directory.coordinator_directory());
    let again = "start
                 ask jobs                        > 1 ...
                 ask end 1                       > succeeded: part-r-00000
                 ask jobs                        > 1 succeeded";
    stage.play(again).await;
    let after = stage.detail().await;
    assert_eq!(
        (after.attempts, after.parts),
        (before.attempts, before.parts)
    );
    stage.end().await;
}

/// Truncates the journal before the entry that marks a job as settled.
fn forget_settling(directory: &Path) {
    let entries = fs::read_dir(directory)
        .expect("listed")
        .map(|entry| entry.expect("an entry").path());
    let journal = entries
        .into_iter()
        .find(|path| path.extension().is_some_and(|ending| ending == "log"));
    let journal = journal.expect("a journal");
    let mut bytes = fs::read(&journal).expect("read");
    let mut at = 0;
    while at < bytes.len() {
        let length = bytes[at..at + 4].try_into().expect("four bytes");
        // Every frame but the first is chained to the one before.
        let head = if at == 0 { 8 } else { 20 };
        let behind = at + head + u32::from_le_bytes(length) as usize;
        if String::from_utf8_lossy(&bytes[at..behind]).contains("\"Settled\"") {
            bytes.truncate(at);
            return fs::write(journal, bytes).expect("written");
        }
        at = behind;
    }
    panic!("no job was settled");
}

#[tokio::test]
async fn history_respects_byte_limit() {
    let mut stage = Stage::new();
    stage
        .play("set history-bytes 10 \n worker w 1 \n submit 1 maps 1 > launch m0.1 on w")
        .await;
    let job = JobId(1);
    let following = stage
        .running()
        .ask(|reply| LoopRequest::Follow { job, reply })
        .await
        .expect("it runs");
    stage.play("does m0.1").await;
    let mut end = following.end;
    timeout(DEADLINE, end.wait_for(Option::is_some))
        .await
        .expect("in time")
        .expect("an end");
    let gone = "ask job 1                       > refused: there is no job_0001; see: nap job list
                ask file cluster/coordinator/history/job_0001.json
                    > none
                ask file cluster/coordinator/history/job_0001.jsonl.gz
                    > none
                ask jobs                        > none";
    stage.play(gone).await;
    stage.end().await;
}

//! Jobs of a cluster on one worker: their files, the environment of their processes, the reports, and the
//! cleanup. Failures are tested in `programs` and `hangs`.

use std::fs;

use napreduce_engine::{FailureClass, JobId, Order, Report};
use napreduce_protocol::{JobDescription, LaunchWork, Split, ToWorker, WorkerReport};

use super::script::*;

#[tokio::test(flavor = "current_thread")]
async fn job_writes_only_parts_to_shared_storage() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    line.define(script.job("r_0000.3 written pause SOCKET"))
        .await;
    line.launch(map(2), script.map_work()).await;
    line.assert_happened(1, map(2), Report::Started).await;
    line.assert_finished(2, map(2)).await;
    let segment = script.own("jobs/job_0001/shuffle/job_0001_m_0000.2.segment");
    assert!(segment.exists());

    line.launch_reduce(reduce(3), &[map(2)]).await;
    let moment = script.moment().await;
    let temporary = script.path("out/_temporary/job_0001-0000000000000007");
    assert!(temporary.join("job_0001_r_0000.3/part-r-00000").exists());
    assert!(
        script
            .own("jobs/job_0001/scratch/job_0001_r_0000.3")
            .exists()
    );
    moment.go_on().await;
    line.assert_happened(3, reduce(3), Report::Started).await;
    line.assert_happened(4, reduce(3), Report::CommitRequested)
        .await;
    line.order(Order::Commit { attempt: reduce(3) }).await;
    line.assert_finished(5, reduce(3)).await;
    assert_eq!(
        fs::read_to_string(temporary.join("committed/part-r-00000.3")).unwrap(),
        "a\t2\nb\t1\n"
    );

    line.tell(|number| ToWorker::Forget { number, job: JOB })
        .await;
    until("the removal of the job's files", || {
        !script.own("jobs/job_0001").exists()
    })
    .await;
    // The same thread removes this marker after the files.
    until("the end of all output", || {
        !script.own("logs/job_0001/running").exists()
    })
    .await;
    assert!(script.path("in.txt").exists());
}

#[tokio::test(flavor = "current_thread")]
async fn task_logs_are_bounded() {
    let mut script = Script::new().await;
    let _daemon = script.start(&["log_bytes=12"]);
    let mut line = script.join().await;
    line.define(script.job("m_0000.1 work print hello there, world;m_0000.2 work print hello"))
        .await;
    for (number, attempt) in [(1, map(1)), (3, map(2))] {
        line.launch(attempt, script.map_work()).await;
        line.assert_happened(number, attempt, Report::Started).await;
        line.assert_finished(number + 1, attempt).await;
    }
    let rest = "[napreduce: only the first 12 bytes of this stream are kept; the rest was dropped]";
    assert_eq!(
        script.log(map(1), "stdout"),
        format!("hello there,\n{rest}\n")
    );
    assert_eq!(script.log(map(2), "stdout"), "hello\n");
    assert_eq!(script.log(map(2), "stderr"), "");
}

#[tokio::test(flavor = "current_thread")]
async fn failed_attempt_reports_end_of_stderr() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    let rules = "m_0000.1 work complain of row 7;m_0000.1 work fail badly;m_0000.2 work complain";
    line.define(script.job(rules)).await;
    line.launch(map(1), script.map_work()).await;
    line.assert_happened(1, map(1), Report::Started).await;
    let printed = WorkerReport::Printed {
        attempt: map(1),
        stderr: "of row 7\n".to_owned(),
    };
    assert_eq!(line.report().await, (2, printed));
    assert_eq!(line.failure().await, (FailureClass::Task, "badly".into()));
    line.launch(map(2), script.map_work()).await;
    line.assert_happened(4, map(2), Report::Started).await;
    line.assert_finished(5, map(2)).await;
}

#[tokio::test(flavor = "current_thread")]
async fn tasks_receive_directory_of_side_files() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    let mut job = script.job("m_0000.1 work show-files");
    job.files = vec![
        script.side_file("stop words", "the a an"),
        script.side_file("b.txt", "two"),
    ];
    line.define(job).await;
    line.launch(map(1), script.map_work()).await;
    line.assert_happened(1, map(1), Report::Started).await;
    line.assert_finished(2, map(1)).await;
    let expected = "b.txt: two\nstop words: the a an\nin job_0001_m_0000.1\n";
    assert_eq!(script.log(map(1), "stdout"), expected);
}

#[tokio::test(flavor = "current_thread")]
async fn written_side_file_is_unchanged_for_other_attempts() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    let mut job = script
        .job("m_0000.1 work show-files;m_0000.1 work spoil-file words;m_0000.2 work show-files");
    job.files = vec![script.side_file("words", "the a an")];
    line.define(job.clone()).await;
    for (number, attempt) in [(1, map(1)), (3, map(2))] {
        line.launch(attempt, script.map_work()).await;
        line.assert_happened(number, attempt, Report::Started).await;
        line.assert_finished(number + 1, attempt).await;
    }
    line.define(JobDescription {
        job: JobId(2),
        ..job
    })
    .await;
    let mut other = map(2);
    other.task.job = JobId(2);
    line.launch(other, script.map_work()).await;
    line.assert_happened(5, other, Report::Started).await;
    line.assert_finished(6, other).await;
    for attempt in [map(1), map(2), other] {
        assert_eq!(
            script.log(attempt, "stdout"),
            format!("words: the a an\nin {attempt}\n")
        );
    }
}

#[tokio::test(flavor = "current_thread")]
async fn side_file_name_cannot_leave_its_directory() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    let mut job = script.job("");
    job.files = vec![script.side_file("../../../secret", "mine")];
    line.define(job).await;
    line.launch(map(1), script.map_work()).await;
    let (class, reason) = line.failure().await;
    assert_eq!(class, FailureClass::Fatal);
    assert!(
        reason.contains("invalid side file name \"../../../secret\""),
        "{reason}"
    );
    assert_ne!(
        fs::read_to_string(script.path("cluster/secret")).unwrap(),
        "mine"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn unreadable_input_error_names_host() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    line.define(script.job("")).await;
    let missing = script.path("not-here.txt");
    line.launch(
        map(1),
        LaunchWork::Map {
            split: Split::whole(&missing, 5).into(),
        },
    )
    .await;
    let (class, reason) = line.failure().await;
    assert_eq!(class, FailureClass::Retryable);
    let expected = format!(
        "host {} cannot read {}: ",
        line.hello.host,
        missing.display()
    );
    assert!(
        reason.starts_with(&expected) && reason.contains("storage that every worker sees"),
        "{reason}"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn failed_attempts_leave_only_logs() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    line.define(script.job("keep-scratch;m_0000.1 written fail badly;r_0000.1 written fail badly"))
        .await;
    line.launch(map(1), script.map_work()).await;
    assert_eq!(line.failure().await, (FailureClass::Task, "badly".into()));
    line.launch(map(2), script.map_work()).await;
    line.assert_happened(3, map(2), Report::Started).await;
    line.assert_finished(4, map(2)).await;
    line.launch_reduce(reduce(1), &[map(2)]).await;
    assert_eq!(line.failure().await, (FailureClass::Task, "badly".into()));
    let names = |directory: std::path::PathBuf| -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    assert_eq!(
        names(script.own("jobs/job_0001/shuffle")),
        ["job_0001_m_0000.2.segment"]
    );
    assert!(
        !script
            .path("out/_temporary/job_0001-0000000000000007/job_0001_r_0000.1")
            .exists()
    );
    let scratch = script.own("jobs/job_0001/scratch");
    assert!(
        names(scratch.clone())
            .iter()
            .all(|name| names(scratch.join(name)).is_empty())
    );
}

//! Heads of every version, and the events that report an unreadable recording.

use std::fs;
use std::time::Duration;

use napreduce_engine::{AttemptId, FaultPlace, JobId, TaskId, TaskKind};
use napreduce_history::{EndedJob, HistoryStore};
use napreduce_protocol::{CounterValues, FailedRecord, JobDetail, JobEnd, PartReport, TaskFailure};
use serde_json::{Value, json};

use super::samples::{Scene, failed, job, listed, succeeded};

const HEAD_BYTES_MAX: u64 = 64 << 10;

#[track_caller]
fn check_round_trip(ended: &EndedJob) -> Value {
    let scene = Scene::new();
    let history = scene.open();
    history.add(ended).expect("written");
    let job = ended.detail.summary.job;
    assert_eq!(
        &history.read(job).expect("present").expect("readable"),
        ended
    );
    drop(history);
    assert_eq!(
        &scene.open().read(job).expect("present").expect("readable"),
        ended,
        "also after a restart"
    );
    let head = fs::read(scene.path("job_0001.json")).expect("a head");
    assert!(head.len() as u64 <= HEAD_BYTES_MAX);
    serde_json::from_slice(&head).expect("JSON")
}

#[test]
fn head_summarizes_its_rows() {
    let head = check_round_trip(&job(1, 300));
    assert_eq!(head["version"], 2);
    assert_eq!(head["token"], "fffffffffffffffffffffffffffffffe");
    assert_eq!(head["rows"]["attempts"], 300);
    assert_eq!(head["settings"]["definition"], "word-count");
    let map = &head["durations"]["map"];
    assert!(map["min"].as_u64() < map["p50"].as_u64() && map["p50"].as_u64() < map["max"].as_u64());
    assert_eq!(head["preemptions"]["requests"], head["rows"]["preemptions"]);
}

#[test]
fn task_that_failed_its_job_is_in_the_head() {
    let mut ended = failed(job(1, 10), "job_0001_m_0003 failed 4 times; last: bad row");
    let JobEnd::Failed { failure, .. } = &mut ended.end else {
        unreachable!("it failed")
    };
    let task = TaskId {
        job: JobId(1),
        kind: TaskKind::Map,
        index: 3,
    };
    let record = FailedRecord::new("in/a.csv", "line 12", Some("\"x,y\""));
    let attempt = AttemptId { task, number: 4 };
    *failure = Some(Box::new(TaskFailure::new(
        attempt,
        FaultPlace::Input,
        "bad row",
        Some(record),
    )));
    let head = check_round_trip(&ended);
    assert_eq!(head["failure"]["record"]["position"], "line 12");
}

#[test]
fn large_parts_and_counters_move_to_the_recording() {
    let mut many_parts = job(1, 10).detail;
    let part = |place: u64| PartReport {
        name: format!("part-r-{place:05}"),
        records: place,
        bytes: place * 100,
        digest: !place,
    };
    many_parts.parts = (0..20_000).map(part).collect();
    let head = check_round_trip(&succeeded(many_parts.clone(), Duration::from_millis(7)));
    assert_eq!(
        (&head["parts"], &head["rows"]["parts"]),
        (&json!([]), &json!(20_000))
    );
    assert_eq!(head["counters"]["mine"], 7);

    let mut counters = CounterValues::default();
    for place in 1..=5_000 {
        counters.add(&format!("a counter of mine, number {place}"), place);
    }
    many_parts.counters = counters;
    let head = check_round_trip(&succeeded(many_parts, Duration::from_millis(7)));
    assert_eq!(
        (&head["counters"], &head["rows"]["counters"]),
        (&json!({}), &json!(5_000))
    );
}

#[test]
fn long_reason_is_cut_only_in_listings() {
    let reason = "no such line: é ".repeat(9_000);
    let ended = failed(job(1, 10), &reason);
    check_round_trip(&ended);
    let scene = Scene::new();
    let history = scene.open();
    history.add(&ended).expect("written");
    let [line] = &history.summaries(1, &|_| false)[..] else {
        panic!("one job")
    };
    let shown = line.reason.as_deref().expect("a reason");
    assert!(
        shown.len() < 8 << 10 | 16 && reason.starts_with(shown.trim_end_matches('…')),
        "{}",
        shown.len()
    );
}

#[test]
fn version_1_is_readable() {
    let scene = Scene::new();
    let ended = job(7, 30);
    // Written by 0.2.0.
    let detail = JobDetail {
        settings: None,
        ..ended.detail
    };
    let text = json!({ "version": 1, "token": 77u64, "end": ended.end, "detail": detail });
    fs::write(scene.path("job_0007.json"), text.to_string()).expect("written");
    let history = scene.open();
    let read = history.read(JobId(7)).expect("present").expect("readable");
    assert_eq!((read.token, read.end, read.detail), (77, ended.end, detail));
    assert_eq!(
        (history.of_token(77), history.last()),
        (Some(JobId(7)), Some(JobId(7)))
    );
    drop(history);
    assert_eq!(listed(&scene.open()), [7]);
}

#[test]
fn unreadable_recording_is_reported_in_the_events() {
    let scene = Scene::new();
    let history = scene.open();
    let ended = job(1, 30);
    history.add(&ended).expect("written");
    let path = scene.path("job_0001.jsonl.gz");
    let whole = fs::read(&path).expect("a recording");
    let read = || {
        let read = history.read(JobId(1)).expect("present").expect("readable");
        assert_eq!(
            (&read.end, &read.detail.summary),
            (&ended.end, &ended.detail.summary)
        );
        let lines = read.detail.events.into_iter().map(|line| line.text);
        (
            read.detail.attempts.len(),
            lines.collect::<Vec<_>>().join("\n"),
        )
    };
    fs::write(&path, &whole[..whole.len() - 20]).expect("cut");
    let (attempts, text) = read();
    assert!(
        attempts == 0 && text.contains("job_0001.jsonl.gz: no end line"),
        "{text}"
    );
    fs::write(&path, b"something else").expect("written");
    let (attempts, text) = read();
    assert!(
        attempts == 0 && text.contains("job_0001.jsonl.gz: not a recording"),
        "{text}"
    );
    assert!(text.contains("30 of 30 attempts"), "{text}");
    fs::remove_file(&path).expect("removed");
    let (attempts, text) = read();
    assert!(
        attempts == 0 && text.contains("job_0001.jsonl.gz: No such file"),
        "{text}"
    );
    assert!(matches!(
        history
            .read(JobId(1))
            .expect("present")
            .expect("readable")
            .end,
        JobEnd::Succeeded(_)
    ));
}

#[test]
fn invalid_head_is_named_and_kept() {
    let scene = Scene::new();
    scene.open().add(&job(1, 5)).expect("written");
    fs::copy(scene.path("job_0001.json"), scene.path("job_0002.json")).expect("copied");
    fs::write(scene.path("job_0003.json"), "{\"version\":3}").expect("written");
    fs::write(scene.path("job_0004.json"), "{").expect("written");
    fs::write(scene.path("notes.json"), "{").expect("written");
    let (history, mut remarks) = scene.open_with(super::samples::NO_LIMITS);
    remarks.sort();
    assert_eq!(listed(&history), [1]);
    let [two, three, four] = &remarks[..] else {
        panic!("{remarks:?}")
    };
    assert!(
        two.ends_with("job_0002.json is not in the history: it belongs to job_0001"),
        "{two}"
    );
    assert!(
        three.contains("version 3; this program reads up to 2"),
        "{three}"
    );
    assert!(
        four.contains("job_0004.json is not in the history"),
        "{four}"
    );
    assert_eq!(scene.names().len(), 6, "the files stay");
}

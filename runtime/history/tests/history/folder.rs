//! Reading a history from outside: the three kinds of directories, no traces, and damaged files.

use std::fs;
use std::path::Path;

use napreduce_engine::JobId;
use napreduce_history::{EndedJob, HistoryFolder, HistoryStore};
use napreduce_protocol::JobDetail;
use serde_json::Value;

use super::samples::{NO_LIMITS, Scene, job, listed};

/// A history with these jobs.
fn scene(jobs: &[EndedJob]) -> Scene {
    let scene = Scene::new();
    let history = scene.open();
    for job in jobs {
        history.add(job).expect("written");
    }
    scene
}

fn read(directory: &Path) -> Vec<EndedJob> {
    let folder = HistoryFolder::open(directory).expect("a history");
    let read = |id: &JobId| folder.read(*id).expect("readable").expect("present");
    folder.jobs().iter().map(read).collect()
}

#[track_caller]
fn check_rejected(directory: &Path, parts: &[&str]) {
    let error = HistoryFolder::open(directory).map(|folder| {
        let first = folder.jobs()[0];
        folder.read(first).map(drop)
    });
    let error = error
        .and_then(|read| read)
        .expect_err("rejected")
        .to_string();
    for words in parts {
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn jobs_are_read_from_every_place_without_a_trace() {
    let jobs = [job(3, 60), job(12, 5)];
    let scene = scene(&jobs);
    fs::remove_file(scene.path("index.jsonl")).expect("removed");
    fs::write(scene.path("job_0099.json.unfinished"), "half of a head").expect("written");
    let names = scene.names();
    let cluster = Scene::new();
    assert_eq!(read(scene.directory()), jobs);
    assert_eq!(
        (scene.names(), scene.path("index.jsonl").exists()),
        (names, false)
    );
    let nested = cluster.path("coordinator/history");
    fs::create_dir_all(nested.parent().expect("a parent")).expect("made");
    fs::rename(scene.directory(), &nested).expect("moved");
    assert_eq!(read(cluster.directory()), jobs);
    assert_eq!(read(&cluster.path("coordinator")), jobs);
    fs::rename(&nested, scene.directory()).expect("moved back");
}

#[test]
fn removed_job_reads_as_none() {
    let scene = scene(&[job(1, 9), job(2, 9)]);
    let folder = HistoryFolder::open(scene.directory()).expect("a history");
    fs::remove_file(scene.path("job_0001.jsonl.gz")).expect("removed");
    fs::remove_file(scene.path("job_0001.json")).expect("removed");
    assert!(folder.summary(JobId(1)).expect("no error").is_none());
    assert!(folder.read(JobId(1)).expect("no error").is_none());
    assert_eq!(
        folder
            .summary(JobId(2))
            .expect("readable")
            .expect("present")
            .job,
        JobId(2)
    );
}

#[test]
fn heads_of_earlier_versions_lack_only_the_cluster() {
    let ended = job(1, 30);
    let scene = scene(std::slice::from_ref(&ended));
    let head = fs::read(scene.path("job_0001.json")).expect("a head");
    let mut head: Value = serde_json::from_slice(&head).expect("JSON");
    head.as_object_mut().expect("an object").remove("cluster");
    head["rows"]
        .as_object_mut()
        .expect("an object")
        .remove("tasks");
    fs::write(scene.path("job_0001.json"), head.to_string()).expect("written");
    let detail = JobDetail {
        scheduler: None,
        ..ended.detail.clone()
    };
    assert_eq!(
        read(scene.directory()),
        [EndedJob {
            cluster: None,
            detail,
            ..ended.clone()
        }]
    );
    fs::remove_file(scene.path("job_0001.jsonl.gz")).expect("removed");
    let detail = JobDetail {
        settings: None,
        scheduler: None,
        ..ended.detail.clone()
    };
    let whole =
        serde_json::json!({ "version": 1, "token": 5, "end": ended.end, "detail": detail.clone() });
    fs::write(scene.path("job_0001.json"), whole.to_string()).expect("written");
    let earlier = EndedJob {
        token: 5,
        detail,
        cluster: None,
        logs: Vec::new(),
        ..ended
    };
    assert_eq!(read(scene.directory()), [earlier]);
}

#[test]
fn invalid_directory_is_rejected_with_a_remedy() {
    let scene = Scene::new();
    check_rejected(&scene.path("nowhere"), &["nowhere", "cannot read"]);
    check_rejected(
        scene.directory(),
        &["holds no history", "give the directory of a cluster"],
    );
    fs::write(scene.path("job_1.json"), "{}").expect("written");
    check_rejected(scene.directory(), &["holds no history"]);
    check_rejected(&scene.path("job_1.json"), &["job_1.json"]);
    fs::create_dir_all(scene.path("coordinator/history")).expect("made");
    check_rejected(
        scene.directory(),
        &["coordinator/history holds no ended job", "wait until"],
    );
}

#[test]
fn truncated_or_foreign_head_is_named() {
    let scene = scene(&[job(1, 9)]);
    let path = scene.path("job_0001.json");
    let head = fs::read(&path).expect("a head");
    let remedy = "copy the history without job_0001.json and job_0001.jsonl.gz";
    for length in [0, 1, head.len() / 2, head.len() - 1] {
        fs::write(&path, &head[..length]).expect("written");
        check_rejected(scene.directory(), &["job_0001.json is unusable", remedy]);
    }
    for (foreign, part) in [
        ("[1, 2]", "job_0001.json"),
        ("{\"version\": 9}", "version 9"),
    ] {
        fs::write(&path, foreign).expect("written");
        check_rejected(scene.directory(), &[part, remedy]);
    }
    fs::rename(
        scene.path("job_0001.jsonl.gz"),
        scene.path("job_0002.jsonl.gz"),
    )
    .expect("renamed");
    fs::write(scene.path("job_0002.json"), &head).expect("written");
    fs::remove_file(&path).expect("removed");
    check_rejected(
        scene.directory(),
        &["job_0002.json is unusable: it belongs to job_0001"],
    );
}

#[test]
fn missing_or_damaged_recording_is_named() {
    let scene = scene(&[job(1, 900)]);
    let path = scene.path("job_0001.jsonl.gz");
    let whole = fs::read(&path).expect("a recording");
    for length in [0, 11, 12, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..length]).expect("written");
        check_rejected(
            scene.directory(),
            &["job_0001.jsonl.gz is unusable", "copy the history without"],
        );
        let folder = HistoryFolder::open(scene.directory()).expect("a history");
        let rest = folder
            .read_partial(JobId(1))
            .expect("the head is intact")
            .expect("present")
            .detail;
        assert!(rest.attempts.is_empty(), "{length}");
        assert!(
            rest.events
                .iter()
                .any(|line| line.text.starts_with("job_0001.jsonl.gz: ")),
            "{length}"
        );
    }
    let mut flipped = whole.clone();
    flipped[whole.len() / 3] ^= 4;
    fs::write(&path, flipped).expect("written");
    check_rejected(
        scene.directory(),
        &[
            "job_0001.jsonl.gz is unusable",
            "damaged gzip data at byte 0",
        ],
    );
    fs::remove_file(&path).expect("removed");
    check_rejected(
        scene.directory(),
        &["job_0001.jsonl.gz is unusable", "900 of 900 attempts"],
    );
}

/// Replaces a file by something that is not a regular file.
fn replace_with(path: &Path, kind: &str) {
    fs::remove_file(path).expect("removed");
    let make_pipe = || {
        let made = std::process::Command::new("mkfifo")
            .arg(path)
            .status()
            .expect("mkfifo runs");
        assert!(made.success());
    };
    match kind {
        "a pipe" => make_pipe(),
        "endless" => std::os::unix::fs::symlink("/dev/zero", path).expect("a link"),
        _ => fs::create_dir(path).expect("made"),
    }
}

#[test]
fn history_reads_regular_files_only() {
    for kind in ["a pipe", "endless", "a directory"] {
        for name in ["job_0002.json", "job_0002.jsonl.gz", "index.jsonl"] {
            let scene = Scene::new();
            for id in 1..=3 {
                scene.open().add(&job(id, 5)).expect("written");
            }
            replace_with(&scene.path(name), kind);
            let folder = HistoryFolder::open(scene.directory()).expect("a history");
            let read = folder.read(job(2, 5).detail.summary.job);
            assert_eq!(read.is_err(), name != "index.jsonl", "{kind} as {name}");
            let (history, remarks) = scene.open_with(NO_LIMITS);
            let without_head = name == "job_0002.json";
            assert_eq!(
                listed(&history).len(),
                if without_head { 2 } else { 3 },
                "{kind} as {name}"
            );
            assert_eq!(
                remarks.is_empty(),
                name == "job_0002.jsonl.gz",
                "{kind} as {name}: {remarks:?}"
            );
        }
    }
}

//! Limits of the history: the oldest jobs are removed first, with both files.

use napreduce_history::{HistoryLimits, HistoryStore};

use super::samples::{NO_LIMITS, Scene, job, listed};

#[test]
fn oldest_jobs_are_removed_with_both_files() {
    let scene = Scene::new();
    let (history, _) = scene.open_with(HistoryLimits {
        jobs_max: 2,
        ..NO_LIMITS
    });
    for id in [3, 1, 2, 4] {
        assert_eq!(history.add(&job(id, 5)).expect("written"), [""; 0]);
    }
    assert_eq!(listed(&history), [4, 3]);
    assert_eq!(
        scene.names(),
        [
            "job_0003.json",
            "job_0003.jsonl.gz",
            "job_0004.json",
            "job_0004.jsonl.gz"
        ]
    );
    assert_eq!(history.of_token(job(2, 5).token), None);
    assert!(history.read(job(2, 5).detail.summary.job).is_none());
    drop(history);
    let (history, remarks) = scene.open_with(HistoryLimits {
        jobs_max: 1,
        ..NO_LIMITS
    });
    assert_eq!(
        (listed(&history), remarks),
        (vec![4], Vec::new()),
        "a smaller limit applies at once"
    );
    assert_eq!(scene.names(), ["job_0004.json", "job_0004.jsonl.gz"]);
}

#[test]
fn size_of_heads_and_recordings_is_limited() {
    let scene = Scene::new();
    let history = scene.open();
    for id in 1..=4 {
        history.add(&job(id, 200)).expect("written");
    }
    let (_, bytes) = history.size();
    let files: u64 = scene
        .names()
        .iter()
        .map(|name| scene.path(name).metadata().expect("a file").len())
        .sum();
    assert_eq!(bytes, files);
    drop(history);
    let (history, _) = scene.open_with(HistoryLimits {
        bytes_max: bytes - 1,
        ..NO_LIMITS
    });
    assert_eq!(listed(&history), [4, 3, 2]);
    history.add(&job(5, 200)).expect("written");
    history.add(&job(6, 200)).expect("written");
    assert!(
        history.size().1 < bytes && history.size().0 <= 4,
        "{:?}",
        history.size()
    );
    assert!(history.has(job(6, 0).detail.summary.job));
}

#[test]
fn zero_limits_keep_no_job() {
    let scene = Scene::new();
    let (history, _) = scene.open_with(HistoryLimits {
        jobs_max: 0,
        bytes_max: 0,
    });
    history.add(&job(1, 5)).expect("written");
    assert_eq!(
        (listed(&history), scene.names()),
        (Vec::new(), Vec::<String>::new())
    );
    assert_eq!((history.last(), history.size()), (None, (0, 0)));
}

#[test]
fn rewritten_job_is_listed_once() {
    let scene = Scene::new();
    let history = scene.open();
    history.add(&job(1, 200)).expect("written");
    let size = history.size();
    history.add(&job(1, 200)).expect("written");
    assert_eq!((listed(&history), history.size()), (vec![1], size));
    assert_eq!(history.summaries(9, &|job| job.0 == 1), []);
}

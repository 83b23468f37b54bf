//! The index: only a cache of the heads, rewritten after any damage.

use std::fs;

use napreduce_history::HistoryStore;

use super::samples::{NO_LIMITS, Scene, job, listed};

/// A closed history of three jobs.
fn three_jobs() -> Scene {
    let scene = Scene::new();
    let history = scene.open();
    for id in 1..=3 {
        history.add(&job(id, 5)).expect("written");
    }
    scene
}

#[test]
fn indexed_head_is_not_read() {
    let scene = three_jobs();
    let path = scene.path("job_0002.json");
    let known = fs::metadata(&path).expect("a head");
    // With the same length and time: reading it would cause a remark.
    fs::write(
        &path,
        " ".repeat(usize::try_from(known.len()).expect("it fits")),
    )
    .expect("written");
    let file = fs::File::options().write(true).open(&path).expect("opened");
    file.set_modified(known.modified().expect("a time"))
        .expect("set");
    let history = scene.open();
    assert_eq!(listed(&history), [3, 2, 1]);
    assert!(
        history
            .read(job(2, 5).detail.summary.job)
            .expect("present")
            .is_err(),
        "now it is read"
    );
}

#[test]
fn missing_or_damaged_index_is_rewritten() {
    let scene = three_jobs();
    let path = scene.path("index.jsonl");
    let whole = fs::read(&path).expect("an index");
    fs::remove_file(&path).expect("removed");
    assert_eq!(listed(&scene.open()), [3, 2, 1]);
    for damaged in [
        b"".to_vec(),
        b"not an index".to_vec(),
        vec![0; 9_000],
        whole[..whole.len() / 2].to_vec(),
    ] {
        fs::write(&path, damaged).expect("written");
        let (history, _) = scene.open_with(NO_LIMITS);
        assert_eq!(listed(&history), [3, 2, 1]);
        drop(history);
        assert_eq!(
            listed(&scene.open()),
            [3, 2, 1],
            "the index is intact again"
        );
    }
}

/// Flips bits at about 200 places, several in each page.
#[test]
fn flipped_bit_in_the_index_changes_no_job() {
    let scene = three_jobs();
    let path = scene.path("index.jsonl");
    let whole = fs::read(&path).expect("an index");
    let used = whole
        .iter()
        .rposition(|byte| *byte != 0)
        .expect("some bytes");
    for place in (0..=used).step_by(used / 200) {
        let mut damaged = whole.clone();
        damaged[place] ^= 1 << (place % 8);
        fs::write(&path, &damaged).expect("written");
        let (history, _) = scene.open_with(NO_LIMITS);
        assert_eq!(listed(&history), [3, 2, 1], "byte {place}");
        assert_eq!(
            history.of_token(job(2, 5).token),
            Some(job(2, 5).detail.summary.job),
            "byte {place}"
        );
        if place % 8 == 0 {
            history.add(&job(3, 5)).expect("written");
        }
    }
}

#[test]
fn manually_changed_heads_are_noticed() {
    let scene = three_jobs();
    fs::remove_file(scene.path("job_0002.json")).expect("removed");
    let other = Scene::new();
    other.open().add(&job(9, 5)).expect("written");
    for name in ["job_0009.json", "job_0009.jsonl.gz"] {
        fs::copy(other.path(name), scene.path(name)).expect("copied");
    }
    let mut another = job(1, 5);
    another.token = 42;
    another.detail.summary.name = "another".to_owned();
    let replaced = Scene::new();
    replaced.open().add(&another).expect("written");
    fs::copy(replaced.path("job_0001.json"), scene.path("job_0001.json")).expect("copied");
    let history = scene.open();
    assert_eq!(listed(&history), [9, 3, 1]);
    assert_eq!(history.summaries(9, &|_| false)[2].name, "another");
    assert_eq!(history.of_token(42).map(|job| job.0), Some(1));
    assert!(
        history
            .read(job(9, 5).detail.summary.job)
            .expect("present")
            .is_ok()
    );
}

#[test]
fn unwritable_index_is_not_needed() {
    let scene = three_jobs();
    fs::remove_file(scene.path("index.jsonl")).expect("removed");
    fs::create_dir(scene.path("index.jsonl")).expect("made");
    let (history, remarks) = scene.open_with(NO_LIMITS);
    assert!(
        remarks
            .iter()
            .any(|remark| remark.contains("no index of the history")),
        "{remarks:?}"
    );
    assert_eq!(listed(&history), [3, 2, 1]);
    assert_eq!(history.add(&job(4, 5)).expect("written"), [""; 0]);
    assert_eq!(listed(&history), [4, 3, 2, 1]);
}

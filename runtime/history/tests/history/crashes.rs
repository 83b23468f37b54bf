//! A coordinator that is killed between any two steps: each job is in the history once or not at all, and can
//! be written again.

use std::fs;

use napreduce_history::{History, HistoryLimits, HistoryStore};

use super::samples::{NO_LIMITS, Scene, job, listed};

/// Copies the files of an open history, as a kill would leave them.
fn killed(scene: &Scene) -> Scene {
    let left = Scene::new();
    for entry in fs::read_dir(scene.directory()).expect("listed") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), left.directory().join(entry.file_name())).expect("copied");
    }
    left
}

/// A complete job 1 and its index, with the given files of a job 2.
fn cut_off_with(names: &[&str]) -> Scene {
    let scene = Scene::new();
    scene.open().add(&job(1, 5)).expect("written");
    let whole = Scene::new();
    whole.open().add(&job(2, 5)).expect("written");
    for name in names {
        let bytes = fs::read(whole.path(name.trim_end_matches(".unfinished"))).expect("a file");
        let half = if name.ends_with(".unfinished") {
            bytes.len() / 2
        } else {
            bytes.len()
        };
        fs::write(scene.path(name), &bytes[..half]).expect("written");
    }
    scene
}

#[test]
fn interrupted_write_leaves_the_job_once_or_not_at_all() {
    let states: [(&[&str], &[u32]); 7] = [
        (&[], &[1]),
        (&["job_0002.jsonl.gz.unfinished"], &[1]),
        (
            &["job_0002.jsonl.gz.unfinished", "job_0002.json.unfinished"],
            &[1],
        ),
        (&["job_0002.jsonl.gz"], &[1]),
        (&["job_0002.jsonl.gz", "job_0002.json.unfinished"], &[1]),
        (&["job_0002.jsonl.gz", "job_0002.json"], &[2, 1]),
        (&["job_0002.json"], &[2, 1]),
    ];
    for (names, expected) in states {
        let scene = cut_off_with(names);
        let history = scene.open();
        assert_eq!(listed(&history), expected, "{names:?}");
        assert!(
            !scene
                .names()
                .iter()
                .any(|name| name.ends_with(".unfinished")),
            "{:?}",
            scene.names()
        );
        // The journal still has the job, so it is written again.
        history.add(&job(2, 5)).expect("written");
        assert_eq!(listed(&history), [2, 1], "{names:?}");
        assert_eq!(
            history
                .read(job(2, 5).detail.summary.job)
                .expect("there")
                .expect("readable"),
            job(2, 5)
        );
        drop(history);
        assert_eq!(listed(&scene.open()), [2, 1], "{names:?}");
        assert_eq!(scene.names().len(), 4, "{names:?}");
    }
}

#[test]
fn failed_write_is_reported_and_leaves_no_job() {
    for name in [
        "job_0002.jsonl.gz",
        "job_0002.json",
        "job_0002.jsonl.gz.unfinished",
        "job_0002.json.unfinished",
    ] {
        let scene = Scene::new();
        let history = scene.open();
        history.add(&job(1, 5)).expect("written");
        let before = scene.names();
        fs::create_dir_all(scene.path(name).join("in the way")).expect("made");
        let error = history
            .add(&job(2, 5))
            .expect_err("a folder blocks the name")
            .to_string();
        assert!(error.contains("job_0002."), "{error}");
        assert_eq!(listed(&history), [1]);
        fs::remove_dir_all(scene.path(name)).expect("removed");
        // A recording without a head does not count; the next write replaces it.
        let left: Vec<String> = scene
            .names()
            .into_iter()
            .filter(|name| name != "job_0002.jsonl.gz")
            .collect();
        assert_eq!(left, before, "{name}");
        history.add(&job(2, 5)).expect("written");
        assert_eq!(listed(&restart(history, &scene)), [2, 1]);
    }
}

/// Restarts the history.
fn restart(history: History, scene: &Scene) -> History {
    drop(history);
    scene.open()
}

#[test]
fn interrupted_removal_is_completed_at_the_next_start() {
    let limits = HistoryLimits {
        jobs_max: 2,
        ..NO_LIMITS
    };
    for removed in [
        &["job_0001.jsonl.gz"][..],
        &["job_0001.jsonl.gz", "job_0001.json"],
    ] {
        let scene = Scene::new();
        let history = scene.open();
        for id in 1..=3 {
            history.add(&job(id, 5)).expect("written");
        }
        drop(history);
        for name in removed {
            fs::remove_file(scene.path(name)).expect("removed");
        }
        let (history, remarks) = scene.open_with(limits);
        assert_eq!(
            (listed(&history), remarks),
            (vec![3, 2], Vec::new()),
            "{removed:?}"
        );
        assert_eq!(scene.names().len(), 4, "{removed:?}: {:?}", scene.names());
    }
}

#[test]
fn unclosed_index_is_correct_after_a_restart() {
    let scene = Scene::new();
    let history = scene.open();
    for id in 1..=70 {
        history.add(&job(id, 2)).expect("written");
        if id % 23 == 0 {
            let left = killed(&scene);
            let (again, _) = left.open_with(NO_LIMITS);
            assert_eq!(listed(&again), (1..=id).rev().collect::<Vec<_>>());
            drop(again);
            assert_eq!(listed(&left.open()).len(), id as usize);
        }
    }
}

//! A coordinator that is killed between any two steps: each job is there once or not at all, and can be
//! written again.
//!
//! Owns the states that files can be in between steps. That a job which was not settled ends again is the
//! journal's promise.

use std::fs;

use napreduce_history::{History, HistoryLimits, HistoryStore};

use super::samples::{NO_LIMITS, Scene, job, listed};

/// A history that was never closed, as a kill leaves it: its files, copied while it is open.
fn killed(scene: &Scene) -> Scene {
    let left = Scene::new();
    for entry in fs::read_dir(scene.directory()).expect("listed") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), left.directory().join(entry.file_name())).expect("copied");
    }
    left
}

/// The job 2, of which these files are there, beside a job 1 that is whole and an index that knows only that.
fn cut_off_with(names: &[&str]) -> Scene {
    let scene = Scene::new();
    scene.open().add(&job(1, 5)).expect("written");
    let whole = Scene::new();
    whole.open().add(&job(2, 5)).expect("written");
    for name in names {
        let bytes = fs::read(whole.path(name.trim_end_matches(".unfinished"))).expect("a file");
        let half = if name.ends_with(".unfinished") { bytes.len() / 2 } else { bytes.len() };
        fs::write(scene.path(name), &bytes[..half]).expect("written");
    }
    scene
}

#[test]
fn a_job_whose_writing_was_cut_off_is_there_once_or_not_at_all() {
    let states: [(&[&str], &[u32]); 7] = [
        (&[], &[1]),
        (&["job_0002.jsonl.gz.unfinished"], &[1]),
        (&["job_0002.jsonl.gz.unfinished", "job_0002.json.unfinished"], &[1]),
        (&["job_0002.jsonl.gz"], &[1]),
        (&["job_0002.jsonl.gz", "job_0002.json.unfinished"], &[1]),
        (&["job_0002.jsonl.gz", "job_0002.json"], &[2, 1]),
        (&["job_0002.json"], &[2, 1]),
    ];
    for (names, there) in states {
        let scene = cut_off_with(names);
        let history = scene.open();
        assert_eq!(listed(&history), there, "{names:?}");
        assert!(!scene.names().iter().any(|name| name.ends_with(".unfinished")), "{:?}", scene.names());
        // The journal has not forgotten the job, so that it ends again.
        history.add(&job(2, 5)).expect("written");
        assert_eq!(listed(&history), [2, 1], "{names:?}");
        assert_eq!(history.read(job(2, 5).detail.summary.job).expect("there").expect("readable"), job(2, 5));
        drop(history);
        assert_eq!(listed(&scene.open()), [2, 1], "{names:?}");
        assert_eq!(scene.names().len(), 4, "{names:?}");
    }
}

#[test]
fn what_cannot_be_written_is_said_and_leaves_nothing() {
    for name in
        ["job_0002.jsonl.gz", "job_0002.json", "job_0002.jsonl.gz.unfinished", "job_0002.json.unfinished"]
    {
        let scene = Scene::new();
        let history = scene.open();
        history.add(&job(1, 5)).expect("written");
        let before = scene.names();
        fs::create_dir_all(scene.path(name).join("in the way")).expect("made");
        let error = history.add(&job(2, 5)).expect_err("it is in the way").to_string();
        assert!(error.contains("job_0002."), "{error}");
        assert_eq!(listed(&history), [1]);
        fs::remove_dir_all(scene.path(name)).expect("removed");
        // A recording without its head is counted by nobody, and replaced when the job is written again.
        let left: Vec<String> =
            scene.names().into_iter().filter(|name| name != "job_0002.jsonl.gz").collect();
        assert_eq!(left, before, "{name}");
        history.add(&job(2, 5)).expect("written");
        assert_eq!(listed(&scene_after(history, &scene)), [2, 1]);
    }
}

/// The next start.
fn scene_after(history: History, scene: &Scene) -> History {
    drop(history);
    scene.open()
}

#[test]
fn a_job_whose_removal_was_cut_off_is_removed_by_the_next_start() {
    let limits = HistoryLimits { jobs_max: 2, ..NO_LIMITS };
    for removed in [&["job_0001.jsonl.gz"][..], &["job_0001.jsonl.gz", "job_0001.json"]] {
        let scene = Scene::new();
        let history = scene.open();
        (1..=3).for_each(|id| drop(history.add(&job(id, 5)).expect("written")));
        drop(history);
        removed.iter().for_each(|name| fs::remove_file(scene.path(name)).expect("removed"));
        let (history, remarks) = scene.open_with(limits);
        assert_eq!((listed(&history), remarks), (vec![3, 2], Vec::new()), "{removed:?}");
        assert_eq!(scene.names().len(), 4, "{removed:?}: {:?}", scene.names());
    }
}

#[test]
fn an_index_that_was_never_closed_agrees_after_the_next_start() {
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

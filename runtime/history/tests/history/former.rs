//! Recordings of earlier programs: version 1 is named and removed with its job, and former words are read.

use std::fs;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use napreduce_engine::JobId;
use napreduce_history::{HistoryFolder, HistoryLimits, HistoryStore};

use super::samples::{Scene, job, listed};

/// A job whose recording has version 1.
fn former() -> Scene {
    let scene = Scene::new();
    scene.open().add(&job(7, 150)).expect("written");
    fs::remove_file(scene.path("job_0007.jsonl.gz")).expect("removed");
    fs::write(scene.path("job_0007.napt"), b"NAPTREC1\x01\0\0\0").expect("written");
    scene
}

#[test]
fn former_recording_is_named_by_store_and_folder() {
    let scene = former();
    let said = "job_0007.napt: written before napreduce 0.3.0; convert it with the command \
                `nap history convert` of napreduce 0.3";
    let from_store = scene
        .open()
        .read(JobId(7))
        .expect("present")
        .expect("the head is intact");
    let events = from_store.detail.events;
    assert!(events[0].text.contains(said), "{events:?}");
    let folder = HistoryFolder::open(scene.directory()).expect("a history");
    let error = folder.read(JobId(7)).expect_err("it has no rows");
    assert!(error.to_string().contains(said), "{error}");
}

#[test]
fn former_recording_is_removed_with_its_job() {
    let scene = former();
    let limits = HistoryLimits {
        jobs_max: 0,
        bytes_max: u64::MAX,
    };
    let (history, _) = scene.open_with(limits);
    assert_eq!(
        (listed(&history), scene.names()),
        (Vec::new(), Vec::<String>::new())
    );
}

#[test]
fn successes_called_done_by_earlier_programs_are_read() {
    let scene = Scene::new();
    let written = job(7, 150);
    scene.open().add(&written).expect("written");
    let file = scene.path("job_0007.jsonl.gz");
    let mut text = String::new();
    MultiGzDecoder::new(&fs::read(&file).expect("a file")[..])
        .read_to_string(&mut text)
        .expect("gzip");
    let earlier = text.replace(r#""end":"succeeded""#, r#""end":"done""#);
    assert_ne!(earlier, text);
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(earlier.as_bytes()).expect("packed");
    fs::write(&file, packed.finish().expect("packed")).expect("written");
    assert_eq!(
        scene
            .open()
            .read(JobId(7))
            .expect("present")
            .expect("readable"),
        written
    );
    let successes = written
        .detail
        .attempts
        .iter()
        .filter(|one| one.has_succeeded())
        .count();
    assert!(successes > 100, "{successes}");
}

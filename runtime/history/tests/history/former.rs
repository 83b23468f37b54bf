//! Recordings of version 1, written by an earlier program into `tests/former`.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use napreduce_engine::JobId;
use napreduce_history::{HistoryFolder, HistoryStore, convert_history, read_cluster};

use super::samples::{Scene, former_job, former_samples, listed};

const JOB: &[u8] = include_bytes!("../former/job_0007.napt");

/// A history as the earlier program left it, with this recording.
fn former(recording: &[u8]) -> Scene {
    let scene = Scene::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/former");
    fs::create_dir(scene.path("cluster")).expect("made");
    for name in ["job_0007.json", "cluster/2026-11-26.napt"] {
        fs::copy(from.join(name), scene.path(name)).expect("copied");
    }
    fs::write(scene.path("job_0007.napt"), recording).expect("written");
    scene
}

#[test]
fn former_recording_is_named_until_converted() {
    let scene = former(JOB);
    let read = || {
        scene
            .open()
            .read(JobId(7))
            .expect("present")
            .expect("the head is intact")
    };
    let events = read().detail.events;
    assert!(
        events[0].text.ends_with(
            "job_0007.napt was written by an earlier version; run: nap history convert DIR"
        ),
        "{events:?}"
    );
    let converted = convert_history(scene.directory()).expect("converted");
    assert!(
        converted.len() == 2 && converted.iter().all(|one| one.remarks.is_empty()),
        "{converted:?}"
    );
    assert_eq!(
        scene.names(),
        ["cluster", "job_0007.json", "job_0007.jsonl.gz"]
    );
    assert_eq!(read(), former_job());
    let folder = HistoryFolder::open(scene.directory()).expect("a history");
    assert_eq!(folder.read(JobId(7)).expect("readable"), Some(former_job()));
    let window = read_cluster(scene.directory(), 0, u64::MAX);
    let samples = former_samples();
    assert_eq!(
        (window.queues, window.workers, window.remarks),
        (samples.queues, samples.workers, Vec::new())
    );
    assert!(
        convert_history(scene.directory())
            .expect("converted")
            .is_empty(),
        "nothing is left to convert"
    );
}

#[test]
fn convert_keeps_existing_files() {
    for existing in [
        &b"foreign data"[..],
        &fs::read(rewritten().path("job_0007.jsonl.gz")).expect("a file"),
    ] {
        let scene = former(JOB);
        fs::write(scene.path("job_0007.jsonl.gz"), existing).expect("written");
        let converted = convert_history(scene.directory()).expect("converted");
        assert_eq!(converted[1].remarks.len(), 1, "{converted:?}");
        assert_eq!(
            fs::read(scene.path("job_0007.jsonl.gz")).expect("a file"),
            existing
        );
        assert!(scene.path("job_0007.napt").exists());
    }
}

/// The same job in the current version.
fn rewritten() -> Scene {
    let scene = Scene::new();
    scene.open().add(&former_job()).expect("written");
    scene
}

#[test]
fn successes_called_done_by_earlier_programs_are_read() {
    let scene = rewritten();
    let written = former_job();
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
    assert!(
        written
            .detail
            .attempts
            .iter()
            .filter(|one| one.has_succeeded())
            .count()
            > 100
    );
}

#[test]
fn convert_names_a_file_that_is_not_a_recording() {
    let scene = former(b"\x1f\x8b\x08 not a recording of version 1");
    let converted = convert_history(scene.directory()).expect("converted");
    let [day, job] = &converted[..] else {
        panic!("{converted:?}")
    };
    assert!(day.remarks.is_empty(), "{day:?}");
    let [remark] = &job.remarks[..] else {
        panic!("{job:?}")
    };
    assert!(
        remark.contains("does not start with NAPTREC1; move it out of the history"),
        "{remark}"
    );
    assert!(scene.path("job_0007.napt").exists());
    assert!(!scene.path("job_0007.jsonl.gz").exists());
}
#[test]
fn convert_keeps_later_samples_of_a_day() {
    let scene = former(JOB);
    let mut later = former_samples();
    later.workers.clear();
    for queue in &mut later.queues {
        queue.at_millis += 10_000;
    }
    scene.open().note(&later).expect("noted");
    convert_history(scene.directory()).expect("converted");
    let window = read_cluster(scene.directory(), 0, u64::MAX);
    assert_eq!(
        window.queues,
        [former_samples().queues, later.queues].concat()
    );
}

#[test]
fn damaged_former_recording_gives_its_first_rows_and_stays() {
    let whole = former_job();
    for place in (12..JOB.len()).step_by(701) {
        let mut changed = JOB.to_vec();
        changed[place] ^= 1;
        for recording in [&JOB[..place], &changed] {
            let scene = former(recording);
            let converted = convert_history(scene.directory()).expect("converted");
            let read = scene
                .open()
                .read(JobId(7))
                .expect("present")
                .expect("the head is intact");
            assert!(
                whole.detail.attempts.starts_with(&read.detail.attempts),
                "byte {place}"
            );
            assert_eq!(
                scene.path("job_0007.napt").exists(),
                !converted[1].remarks.is_empty(),
                "byte {place}"
            );
            assert!(
                read == whole || !converted[1].remarks.is_empty(),
                "byte {place}: {converted:?}"
            );
        }
    }
}

#[test]
fn oldest_jobs_are_removed_with_former_recordings() {
    let scene = former(JOB);
    let limits = napreduce_history::HistoryLimits {
        jobs_max: 0,
        bytes_max: u64::MAX,
    };
    let (history, _) = scene.open_with(limits);
    assert_eq!(
        (listed(&history), scene.names()),
        (Vec::new(), vec!["cluster".to_owned()])
    );
}

//! Tests of the file that describes a checkpoint: it is read as written, and any other content is rejected.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind};
use napreduce_protocol::{CounterValues, Split};
use tempfile::TempDir;

use super::*;

fn attempt(number: u32) -> AttemptId {
    AttemptId {
        task: TaskId {
            job: JobId(1),
            kind: TaskKind::Map,
            index: 3,
        },
        number,
    }
}

fn checkpoint() -> Checkpoint {
    let mut counters = CounterValues::default();
    counters.add("MAP_INPUT_RECORDS", 7);
    counters.add("bad rows", 2);
    let split = Split {
        path: "data/x".into(),
        offset: 10,
        length: 90,
        file_length: 200,
        version: None,
    };
    let split = split.into();
    let part = 0;
    let collection = None;
    let stage = CheckpointStage::Map {
        split,
        part,
        offset: 50,
        repeated: 1,
        records: 7,
        emitted: 9,
        collection,
    };
    let piece = OutputPiece {
        file: format!("{}/part", attempt(1)),
        bytes: 5,
        records: 2,
        digest: u64::MAX,
    };
    Checkpoint {
        attempt: attempt(2),
        stage,
        pieces: vec![piece],
        counters,
        active_millis: 1234,
        user_state: Some(vec![0, 255, 10]),
        format_state: b"half a block".to_vec(),
    }
}

/// A directory with one checkpoint.
struct Scene {
    _folder: TempDir,
    directory: PathBuf,
}

impl Scene {
    fn with(checkpoint: &Checkpoint, durable: bool) -> Scene {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let directory = folder
            .path()
            .join("checkpoints")
            .join(checkpoint.attempt.to_string());
        let made = CheckpointDirectory::make(&directory, durable).expect("a directory");
        let bytes = made.finish(checkpoint).expect("a checkpoint");
        let scene = Scene {
            _folder: folder,
            directory,
        };
        assert_eq!(bytes, scene.bytes().len() as u64);
        scene
    }

    fn path(&self) -> PathBuf {
        self.directory.join("checkpoint")
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).expect("a checkpoint")
    }

    fn read(&self) -> Result<Checkpoint, CheckpointError> {
        Checkpoint::read(&self.directory, attempt(1).task)
    }

    /// Returns the error when the file has these bytes.
    fn refusal(&self, bytes: &[u8]) -> String {
        fs::write(self.path(), bytes).expect("a writable folder");
        let refused = self.read().expect_err("it is damaged");
        let message = refused.to_string();
        assert!(message.contains("checkpoint"), "{message}");
        message
    }
}

/// Appends a valid checksum to arbitrary bytes.
fn signed(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - 4;
    let crc = crc32c::crc32c(&bytes[..end]);
    bytes[end..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

#[test]
fn written_checkpoint_reads_back() {
    for durable in [false, true] {
        let scene = Scene::with(&checkpoint(), durable);
        assert_eq!(scene.read().expect("it is whole"), checkpoint());
        let names: Vec<_> = fs::read_dir(&scene.directory)
            .expect("a folder")
            .flatten()
            .collect();
        assert_eq!(names.len(), 1, "nothing else stays: {names:?}");
    }
    for user_state in [None, Some(Vec::new())] {
        let checkpoint = Checkpoint {
            user_state,
            format_state: Vec::new(),
            ..checkpoint()
        };
        assert_eq!(
            Scene::with(&checkpoint, false).read().expect("it is whole"),
            checkpoint
        );
    }
}

/// The file in `tests/kept`: see the README there.
#[test]
fn kept_checkpoint_is_read() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kept");
    let directory = kept.join(format!("checkpoint-{}", file::VERSION));
    if env::var_os("NAPREDUCE_WRITE_KEPT").is_some() {
        fs::create_dir_all(&directory).expect("a directory");
        checkpoint().write(&directory, false).expect("written");
    }
    let read = Checkpoint::read(&directory, attempt(1).task);
    assert_eq!(read.expect("see tests/kept/README.md"), checkpoint());
}

#[test]
fn every_flipped_bit_is_detected() {
    let scene = Scene::with(&checkpoint(), false);
    let whole = scene.bytes();
    for at in 0..whole.len() {
        for bit in [0, 3, 7] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            scene.refusal(&damaged);
        }
    }
}

#[test]
fn truncated_or_extended_file_is_rejected() {
    let scene = Scene::with(&checkpoint(), false);
    let whole = scene.bytes();
    for length in 0..whole.len() {
        scene.refusal(&whole[..length]);
    }
    let mut longer = whole.clone();
    longer.push(0);
    scene.refusal(&longer);
    longer.extend_from_slice(&[0; 4]);
    assert!(
        scene
            .refusal(&signed(longer))
            .contains("bytes follow its content")
    );
}

#[test]
fn lengths_beyond_the_file_are_rejected() {
    let scene = Scene::with(&checkpoint(), false);
    for section in 0..3 {
        for length in [u64::MAX, u64::MAX / 2, 1 << 40, 1 << 31] {
            let mut hostile = scene_bytes();
            hostile[12 + 8 * section..][..8].copy_from_slice(&length.to_le_bytes());
            let message = scene.refusal(&signed(hostile));
            assert!(message.contains("is missing"), "{message}");
        }
    }
}

fn scene_bytes() -> Vec<u8> {
    Scene::with(&checkpoint(), false).bytes()
}

#[test]
fn other_version_is_reported() {
    let scene = Scene::with(&checkpoint(), false);
    let mut other = scene.bytes();
    other[8..12].copy_from_slice(&3u32.to_le_bytes());
    assert!(
        scene
            .refusal(&signed(other))
            .ends_with("has version 3, but this program reads version 2")
    );
}

#[test]
fn checkpoint_of_another_task_is_rejected() {
    let mut other = checkpoint();
    other.attempt.task.index = 4;
    let error = Scene::with(&other, false)
        .read()
        .expect_err("it is another task's");
    assert!(
        error
            .to_string()
            .ends_with("belongs to job_0001_m_0004.2 instead of job_0001_m_0003"),
        "{error}"
    );
}

#[test]
fn file_names_cannot_leave_the_checkpoints() {
    for name in [
        "",
        "part",
        "/etc/passwd",
        "../x/part",
        "x/../part",
        "x/y/part",
        "./part",
        "x/",
        "x//part",
        "x/a\0b",
    ] {
        let mut hostile = checkpoint();
        name.clone_into(&mut hostile.pieces[0].file);
        let error = Scene::with(&hostile, false)
            .read()
            .expect_err("it leads elsewhere");
        assert!(
            error.to_string().contains("invalid checkpoint file name"),
            "{error}"
        );
        let fetched = vec![FetchedInput {
            attempt: attempt(1),
            file: name.to_owned(),
            bytes: 1,
        }];
        let hostile = Checkpoint {
            pieces: Vec::new(),
            stage: CheckpointStage::FetchInputs { fetched },
            ..checkpoint()
        };
        Scene::with(&hostile, false)
            .read()
            .expect_err("it leads elsewhere");
    }
}

#[test]
fn missing_or_disabled_checkpoint_is_not_found() {
    let scene = Scene::with(&checkpoint(), false);
    Checkpoint::set_aside(&scene.directory).expect("it can be renamed");
    assert!(scene.directory.join("checkpoint.damaged").exists());
    let error = scene.read().expect_err("it is gone");
    assert!(error.to_string().starts_with("cannot open "), "{error}");
    Checkpoint::set_aside(&scene.directory).expect("repeating it is allowed");
}

#[test]
fn files_are_moved_in_and_counted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let from = folder.path().join("piece");
    let path = folder.path().join("checkpoints").join("a");
    fs::write(&from, "12345").expect("a writable folder");
    let mut directory = CheckpointDirectory::make(&path, true).expect("a directory");
    assert_eq!(
        directory.take_in(&from, "part").expect("it can be moved"),
        5
    );
    assert!(!from.exists() && path.join("part").exists());
    assert_eq!(directory.name("part"), "a/part");
    directory.count(10);
    let error = directory
        .take_in(&from, "other")
        .expect_err("there is none");
    assert!(error.to_string().starts_with("cannot sync "), "{error}");
    let described = checkpoint().write(&path, false).expect("a checkpoint");
    assert_eq!(
        directory.finish(&checkpoint()).expect("a checkpoint"),
        15 + described
    );
}

#[test]
fn directory_of_removed_job_is_not_recreated() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("job").join("checkpoints").join("a");
    let error = CheckpointDirectory::make(&path, false).expect_err("the job is gone");
    assert!(error.to_string().starts_with("cannot create "), "{error}");
}

#[test]
fn furthest_complete_checkpoint_is_chosen() {
    let base = tempfile::tempdir().expect("a temporary folder");
    let save = |name: &str, done: u64| {
        let mut checkpoint = checkpoint();
        if let CheckpointStage::Map { records, .. } = &mut checkpoint.stage {
            *records = done;
        }
        let made = CheckpointDirectory::make(&base.path().join(name), false).expect("a directory");
        made.finish(&checkpoint).expect("a checkpoint");
    };
    let mut remarks = Vec::new();
    let mut furthest = || {
        let found = Checkpoint::furthest(base.path(), attempt(1).task, |error| {
            remarks.push(error.to_string())
        });
        let found = found.expect("they can be read");
        found.map(|path| {
            path.file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        })
    };
    assert_eq!(furthest(), None);
    [("1-a", 7), ("2-b", 9), ("1-c", 8), ("3-d", 11)]
        .into_iter()
        .for_each(|(name, done)| save(name, done));
    // An unfinished checkpoint, and a damaged one.
    fs::create_dir(base.path().join("4-e")).expect("made");
    fs::write(base.path().join("4-e").join("checkpoint.partial"), "NAP").expect("written");
    fs::write(base.path().join("3-d").join("checkpoint"), "NAPCKPT").expect("written");
    assert_eq!(furthest().as_deref(), Some("2-b"));
    assert_eq!(furthest().as_deref(), Some("2-b"));
    Checkpoint::supersede(&base.path().join("2-b")).expect("it can be removed");
    Checkpoint::supersede(&base.path().join("2-b")).expect("repeating it is allowed");
    assert_eq!(furthest().as_deref(), Some("1-c"));
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    assert!(
        remarks[0].contains("3-d/checkpoint is damaged: "),
        "{remarks:?}"
    );
}

//! Checkpoints that are copied to an object store in memory, and from there to another worker.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use napreduce_engine::{JobId, TaskId, TaskKind};
use napreduce_protocol::{
    CounterValues, ObjectEntry, PendingUpload, StoredUpload, UploadWriter, WrittenFigures,
};

use super::super::{CheckpointStage, FetchedInput};
use super::*;

/// A store in memory that does not support uploads.
#[derive(Debug, Default)]
struct Memory(Mutex<BTreeMap<String, Vec<u8>>>);

impl Memory {
    fn names(&self) -> Vec<String> {
        self.0
            .lock()
            .expect("not poisoned")
            .keys()
            .cloned()
            .collect()
    }
}

impl ObjectStores for Memory {
    fn begin_upload(&self, _: &str) -> Result<Box<dyn UploadWriter>, StoreError> {
        unreachable!("checkpoints are not uploads")
    }

    fn complete_upload(&self, _: &str, _: &PendingUpload) -> Result<Option<String>, StoreError> {
        unreachable!("checkpoints are not uploads")
    }

    fn version_of(&self, _: &str, _: &PendingUpload) -> Option<String> {
        unreachable!("checkpoints are not uploads")
    }

    fn abort_upload(&self, _: &StoredUpload) -> Result<(), StoreError> {
        unreachable!("checkpoints are not uploads")
    }

    fn uploads(&self, _: &str) -> Result<Vec<StoredUpload>, StoreError> {
        unreachable!("checkpoints are not uploads")
    }

    fn get(&self, object: &str) -> Result<Option<(Vec<u8>, ObjectEntry)>, StoreError> {
        let found = self.0.lock().expect("not poisoned").get(object).cloned();
        Ok(found.map(|bytes| {
            let object = object.to_owned();
            let version = "1".to_owned();
            let entry = ObjectEntry {
                object,
                bytes: bytes.len() as u64,
                version,
                modified: 0,
            };
            (bytes, entry)
        }))
    }

    fn put(
        &self,
        object: &str,
        bytes: &[u8],
        _: PutCondition<'_>,
    ) -> Result<Option<String>, StoreError> {
        self.0
            .lock()
            .expect("not poisoned")
            .insert(object.to_owned(), bytes.to_vec());
        Ok(Some("1".to_owned()))
    }

    fn find(&self, _: &str) -> Result<Option<ObjectEntry>, StoreError> {
        unreachable!("single objects are not looked up")
    }

    fn remove(&self, object: &str) -> Result<(), StoreError> {
        self.0.lock().expect("not poisoned").remove(object);
        Ok(())
    }

    fn list(&self, under: &str) -> Result<Vec<ObjectEntry>, StoreError> {
        let is_below = |name: &String| {
            name.strip_prefix(under)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        let entry = |object| ObjectEntry {
            object,
            bytes: 1,
            version: "1".to_owned(),
            modified: 0,
        };
        Ok(self
            .names()
            .into_iter()
            .filter(is_below)
            .map(entry)
            .collect())
    }

    fn take_written(&self) -> WrittenFigures {
        unreachable!("save requests them")
    }
}

/// A worker's directory of checkpoints, and the store that workers share.
struct Scene {
    memory: &'static Memory,
    objects: CheckpointObjects,
    folder: tempfile::TempDir,
}

fn attempt(number: u32) -> AttemptId {
    AttemptId {
        task: TaskId {
            job: JobId(1),
            kind: TaskKind::Reduce,
            index: 3,
        },
        number,
    }
}

impl Scene {
    fn new() -> Scene {
        Scene::of(Box::leak(Box::default()))
    }

    /// Creates another worker with the same store.
    fn of(memory: &'static Memory) -> Scene {
        let objects = CheckpointObjects {
            stores: memory,
            prefix: "s3://b/out/checkpoint-7".to_owned(),
        };
        Scene {
            memory,
            objects,
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn directory(&self, number: u32) -> PathBuf {
        self.folder.path().join(attempt(number).to_string())
    }

    /// Saves these files as an attempt that wrote some of them.
    fn save(&self, number: u32, files: &[(u32, &str, &[u8])], before: &[StoredFile]) {
        let directory = self.directory(number);
        fs::create_dir_all(&directory).expect("a folder");
        let mut fetched = Vec::new();
        for (of, name, bytes) in files {
            if *of == number {
                fs::write(directory.join(name), bytes).expect("a file");
            }
            let file = format!("{}/{name}", attempt(*of));
            let attempt = attempt(1);
            fetched.push(FetchedInput {
                attempt,
                file,
                bytes: bytes.len() as u64,
            });
        }
        let checkpoint = Checkpoint {
            attempt: attempt(number),
            stage: CheckpointStage::FetchInputs { fetched },
            pieces: Vec::new(),
            counters: CounterValues::default(),
            active_millis: 0,
            user_state: None,
            format_state: Vec::new(),
        };
        checkpoint.write(&directory, false).expect("written");
        let named = self
            .objects
            .save(&directory, attempt(number), before)
            .expect("the store accepts it");
        assert_eq!(named.len(), files.len() + 1, "the files and their index");
    }

    /// Checks the files of an attempt's checkpoint.
    #[track_caller]
    fn check(&self, number: u32, files: &[(u32, &str, &[u8])]) {
        Checkpoint::read(&self.directory(number), attempt(1).task).expect("it is there");
        for (of, name, bytes) in files {
            let found = fs::read(self.directory(*of).join(name)).expect("it was fetched");
            assert!(found == *bytes, "{name} has {} bytes", found.len());
        }
    }
}

#[test]
fn fetch_returns_files_of_earlier_attempts_too() {
    let large: Vec<u8> = (0..OBJECT_BYTES + 5).map(|byte| byte as u8).collect();
    let first: [(u32, &str, &[u8]); 3] = [(1, "a", &large), (1, "b", b"b"), (1, "empty", b"")];
    let second: [(u32, &str, &[u8]); 3] = [(1, "a", &large), (1, "empty", b""), (2, "c", b"c")];
    let here = Scene::new();
    here.save(1, &first, &[]);
    let there = Scene::of(here.memory);
    let known = there
        .objects
        .fetch(&there.directory(1))
        .expect("all of it is there");
    there.check(1, &first);
    let written = here.memory.names().len();
    there.save(2, &second, &known);
    assert_eq!(
        here.memory.names().len(),
        written + 3,
        "c, checkpoint and index"
    );
    let third = Scene::of(here.memory);
    third
        .objects
        .fetch(&third.directory(2))
        .expect("all of it is there");
    third.check(2, &second);
    assert!(
        !third.directory(1).join("b").exists(),
        "it is no longer needed"
    );
    assert!(!third.directory(1).join("checkpoint").exists());
}

#[test]
fn incomplete_and_disabled_checkpoints_are_not_fetched() {
    let here = Scene::new();
    assert_eq!(here.objects.fetch(&here.directory(1)).expect("none"), []);
    here.save(1, &[(1, "a", b"a")], &[]);
    here.objects.set_aside(&here.directory(1)).expect("removed");
    here.objects
        .set_aside(&here.directory(1))
        .expect("repeating it is allowed");
    let there = Scene::of(here.memory);
    assert_eq!(there.objects.fetch(&there.directory(1)).expect("none"), []);
    assert!(!there.directory(1).exists());
}

#[test]
fn checkpoints_are_listed_furthest_first() {
    let here = Scene::new();
    assert_eq!(
        here.objects.furthest_first().expect("none"),
        Vec::<String>::new()
    );
    here.save(1, &[(1, "a", b"a")], &[]);
    here.save(2, &[(2, "a", b"a")], &[]);
    let index = |number: u32| format!("s3://b/out/checkpoint-7-{}", attempt(number));
    let mut objects = here.memory.0.lock().expect("not poisoned");
    let further = String::from_utf8(objects[&index(1)].clone()).expect("JSON");
    assert!(further.contains("\"reached\":[0,0]"), "{further}");
    objects.insert(index(1), further.replace("[0,0]", "[7,1]").into_bytes());
    // A checkpoint of an earlier version lacks the field.
    let earlier = further.replace(",\"reached\":[0,0]", "").into_bytes();
    objects.insert(index(3), earlier);
    for other in [
        "s3://b/out/part-r-00000",
        "s3://b/out/checkpoint-77-x.1",
        "s3://b/outer/checkpoint-7-x.1",
    ] {
        objects.insert(other.to_owned(), Vec::new());
    }
    drop(objects);
    let found = here.objects.furthest_first().expect("three");
    assert_eq!(found, [1, 3, 2].map(|number| attempt(number).to_string()));
    here.objects.set_aside(&here.directory(1)).expect("removed");
    assert_eq!(here.objects.furthest_first().expect("two").len(), 2);
}

#[test]
fn incomplete_checkpoint_error_names_object() {
    let here = Scene::new();
    here.save(1, &[(1, "a", b"abc")], &[]);
    let saved = here.memory.0.lock().expect("not poisoned").clone();
    let index = format!("s3://b/out/checkpoint-7-{}", attempt(1));
    let part = format!("{index}-000000");
    let text = String::from_utf8(saved[&index].clone()).expect("JSON");
    let other = |from: &str, to: &str| Some(text.replace(from, to).into_bytes());
    let cases: [(&str, Option<Vec<u8>>, &str); 6] = [
        (&part, None, "000000 is damaged: the object is missing"),
        (&part, Some(b"ab".to_vec()), "a has 2 bytes, not 3"),
        (&index, Some(b"{".to_vec()), "EOF"),
        (
            &index,
            other("\"version\":1", "\"version\":9"),
            "it has version 9, but this program reads version 1",
        ),
        (
            &index,
            other("/a\"", "/../a\""),
            "invalid checkpoint file name",
        ),
        (
            &index,
            other("\"job_0001", "\"/job_0001"),
            "invalid checkpoint file name",
        ),
    ];
    for (object, bytes, part_of_error) in cases {
        let mut objects = saved.clone();
        match bytes {
            Some(bytes) => objects.insert(object.to_owned(), bytes),
            None => objects.remove(object),
        };
        *here.memory.0.lock().expect("not poisoned") = objects;
        let there = Scene::of(here.memory);
        let error = there
            .objects
            .fetch(&there.directory(1))
            .expect_err(part_of_error)
            .to_string();
        assert!(
            error.contains(part_of_error) && error.contains("s3://b/out/checkpoint-7-"),
            "{error}"
        );
        assert!(
            !there.directory(1).join("checkpoint").exists(),
            "an incomplete checkpoint is not used"
        );
    }
}

//! Tests of the blob store: writing, finding, evicting, reopening and rejecting invalid blobs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use napreduce_local::world::World;
use napreduce_local::world::disk::RealDisk;
use napreduce_protocol::Blob;
use tempfile::TempDir;

use super::{BlobError, BlobIntake, BlobStore, PinnedBlob, digest_of};

struct Scene {
    folder: TempDir,
    store: Arc<BlobStore>,
}

fn blob(content: &[u8]) -> Blob {
    let (digest, bytes) = digest_of(content).expect("memory can be read");
    Blob { digest, bytes }
}

impl Scene {
    fn new(bytes_max: u64) -> Scene {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = BlobStore::open(Arc::new(RealDisk), folder.path().join("blobs"), bytes_max)
            .expect("a store");
        Scene { folder, store }
    }

    fn reopen(self, bytes_max: u64) -> Scene {
        let Scene { folder, store } = self;
        drop(store);
        let store = BlobStore::open(Arc::new(RealDisk), folder.path().join("blobs"), bytes_max)
            .expect("a store");
        Scene { folder, store }
    }

    fn put(&self, content: &[u8]) -> PinnedBlob {
        let mut writer = self.store.writer(blob(content)).expect("there is room");
        writer.write(content).expect("it is as long as announced");
        writer.finish().expect("it matches the announcement")
    }

    fn has(&self, content: &[u8]) -> bool {
        self.store
            .pin(blob(content).digest)
            .expect("a readable store")
            .is_some()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path().join("blobs")).expect("a directory");
        entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect()
    }
}

#[test]
fn blob_is_executable_by_owner_only() {
    let scene = Scene::new(100);
    let pinned = scene.put(b"program");
    assert_eq!(
        fs::read(pinned.path()).expect("a readable blob"),
        b"program"
    );
    let mode = fs::metadata(pinned.path())
        .expect("a blob")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o500);
    assert_eq!(scene.names(), [pinned.digest.to_string()]);
}

#[test]
fn blob_unlike_announcement_is_discarded() {
    let scene = Scene::new(100);
    let mut short = scene.store.writer(blob(b"program")).expect("there is room");
    short.write(b"prog").expect("not too long yet");
    let error = short.finish().expect_err("it is too short");
    assert!(
        matches!(
            error,
            BlobError::Length {
                expected: 7,
                found: 4,
                ..
            }
        ),
        "{error}"
    );
    let mut long = scene.store.writer(blob(b"program")).expect("there is room");
    let error = long.write(b"program and more").expect_err("it is too long");
    assert!(
        matches!(
            error,
            BlobError::Length {
                expected: 7,
                found: 16,
                ..
            }
        ),
        "{error}"
    );
    drop(long);
    let mut other = scene.store.writer(blob(b"program")).expect("there is room");
    other.write(b"pr0gram").expect("as long as announced");
    let error = other.finish().expect_err("it is another one");
    assert!(
        matches!(error, BlobError::Digest { .. }) && error.is_senders(),
        "{error}"
    );
    assert!(scene.names().is_empty());
    assert!(!scene.has(b"program"));
    // Eviction freed the room of the blobs.
    scene.put(&[7; 100]);
}

#[test]
fn full_store_evicts_least_recently_used_blob() {
    let scene = Scene::new(30);
    for content in [[1; 10], [2; 10], [3; 10]] {
        scene.put(&content);
    }
    assert!(scene.has(&[1; 10]));
    scene.put(&[4; 10]);
    assert!(!scene.has(&[2; 10]));
    assert!(scene.has(&[1; 10]) && scene.has(&[3; 10]) && scene.has(&[4; 10]));
}

#[test]
fn pinned_blob_is_not_evicted_for_next_blob() {
    let scene = Scene::new(30);
    let first = scene.put(&[1; 20]);
    let again = first.clone();
    drop(first);
    let error = scene
        .store
        .writer(blob(&[2; 20]))
        .err()
        .expect("no room")
        .to_string();
    assert!(error.contains("of 20 bytes does not fit into"), "{error}");
    assert!(error.contains("jobs use 20 of 30 bytes"), "{error}");
    assert!(scene.has(&[1; 20]));
    drop(again);
    scene.put(&[2; 20]);
    assert!(!scene.has(&[1; 20]));
}

#[test]
fn concurrent_writers_share_the_limit() {
    let scene = Scene::new(30);
    let writer = scene.store.writer(blob(&[1; 20])).expect("there is room");
    assert!(matches!(
        scene.store.writer(blob(&[2; 20])),
        Err(BlobError::Full { held: 20, .. })
    ));
    drop(writer);
    scene.put(&[2; 20]);
}

#[test]
fn concurrent_writers_of_one_blob_all_succeed() {
    let scene = Scene::new(1 << 20);
    let content = vec![5; 60_000];
    let pins: Vec<PinnedBlob> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| scene.put(&content)))
            .collect();
        writers
            .into_iter()
            .map(|writer| writer.join().expect("no panic"))
            .collect()
    });
    assert_eq!(scene.names(), [pins[0].digest.to_string()]);
    assert_eq!(fs::read(pins[0].path()).expect("a readable blob"), content);
    drop(pins);
    scene.put(&vec![6; 1 << 20]);
    assert!(!scene.has(&content), "no pin was forgotten");
}

#[test]
fn writer_makes_removed_directory_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("blobs");
    let store = BlobStore::open(Arc::new(RealDisk), &directory, 100).expect("a store");
    fs::remove_dir(&directory).expect("it is empty");
    let mut writer = store.writer(blob(b"two")).expect("a writer");
    writer.write(b"two").expect("written");
    let pinned = writer.finish().expect("a blob");
    assert_eq!(fs::read(pinned.path()).expect("a blob"), b"two");
}

#[test]
fn reopened_store_keeps_blobs_and_removes_unfinished_files() {
    let scene = Scene::new(100);
    scene.put(b"one");
    let leftover = format!("{}.3.unfinished", blob(b"two").digest);
    fs::write(scene.folder.path().join("blobs").join(&leftover), "tw").expect("a written file");
    fs::write(scene.folder.path().join("blobs/notes"), "not ours").expect("a written file");
    let scene = scene.reopen(100);
    assert!(scene.has(b"one"));
    let mut names = scene.names();
    names.sort_by_key(String::len);
    assert_eq!(names, ["notes".to_owned(), blob(b"one").digest.to_string()]);
}

#[test]
fn blob_changed_while_store_was_closed_is_removed() {
    let scene = Scene::new(100);
    let path = scene.put(b"harmless").path();
    let scene = scene.reopen(100);
    fs::write(&path, b"harmful!").expect("a written file");
    assert!(!scene.has(b"harmless"));
    assert!(!path.exists());
    scene.put(b"harmless");
    assert!(scene.has(b"harmless"));
}

#[test]
fn blob_changed_while_pinned_is_removed() {
    let scene = Scene::new(100);
    let first = scene.put(b"harmless");
    let path = first.path();
    assert!(first.is_as_verified() && scene.has(b"harmless"));
    // Changed in place, replaced by another file, or replaced by a link: each with the same length and time.
    let age = fs::metadata(&path)
        .expect("a blob")
        .modified()
        .expect("a time");
    for manner in 0..3 {
        let other = scene.folder.path().join("other");
        let at = if manner == 0 { &path } else { &other };
        if manner == 0 {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("ours");
        }
        fs::write(at, b"harmful!").expect("a written file");
        fs::File::options()
            .write(true)
            .open(at)
            .and_then(|file| file.set_modified(age))
            .expect("ours");
        match manner {
            1 => fs::rename(&other, &path).expect("renamed"),
            2 => {
                fs::remove_file(&path).expect("removed");
                std::os::unix::fs::symlink(&other, &path).expect("linked");
            }
            _ => {}
        }
        assert!(!first.is_as_verified(), "manner {manner}");
        assert!(!scene.has(b"harmless"), "manner {manner}");
        assert!(fs::symlink_metadata(&path).is_err(), "manner {manner}");
        assert_eq!(
            fs::read(scene.put(b"harmless").path()).expect("a readable blob"),
            b"harmless"
        );
        assert!(
            first.is_as_verified() && scene.has(b"harmless"),
            "manner {manner}"
        );
    }
    let error = scene
        .store
        .writer(blob(&[2; 93]))
        .err()
        .expect("the first is still in use")
        .to_string();
    assert!(error.contains("jobs use 8 of 100 bytes"), "{error}");
}

#[test]
fn blob_with_changed_mode_is_verified_again() {
    let scene = Scene::new(100);
    let pinned = scene.put(b"harmless");
    fs::set_permissions(pinned.path(), fs::Permissions::from_mode(0o777)).expect("ours");
    assert!(!pinned.is_as_verified());
    assert!(scene.has(b"harmless"));
    assert!(pinned.is_as_verified());
    assert_eq!(
        fs::metadata(pinned.path())
            .expect("a blob")
            .permissions()
            .mode()
            & 0o777,
        0o500
    );
}

#[test]
fn store_reopened_with_smaller_limit_evicts_at_next_blob() {
    let scene = Scene::new(40);
    for content in [[1; 10], [2; 10], [3; 10]] {
        scene.put(&content);
    }
    let scene = scene.reopen(20);
    scene.put(&[4; 10]);
    assert_eq!(scene.names().len(), 2);
}

#[tokio::test]
async fn intake_finish_returns_first_error() {
    let scene = Scene::new(100);
    let mut intake = BlobIntake::start(
        &World::real().tasks,
        Arc::clone(&scene.store),
        blob(b"program"),
    );
    assert!(intake.push(b"pro".to_vec()).await);
    assert_eq!(intake.left(), 4);
    assert!(intake.push(b"gram".to_vec()).await);
    assert_eq!(
        intake.finish().await.expect("it is complete").digest,
        blob(b"program").digest
    );
    let refused = BlobIntake::start(
        &World::real().tasks,
        Arc::clone(&scene.store),
        Blob {
            bytes: 1000,
            ..blob(b"large")
        },
    );
    assert!(matches!(
        refused.finish().await,
        Err(BlobError::Full { bytes: 1000, .. })
    ));
    let cut = BlobIntake::start(
        &World::real().tasks,
        Arc::clone(&scene.store),
        blob(b"never sent"),
    );
    assert!(matches!(
        cut.finish().await,
        Err(BlobError::Length { found: 0, .. })
    ));
    assert_eq!(scene.names().len(), 1);
}

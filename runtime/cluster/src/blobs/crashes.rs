//! The blob store on a simulated disk whose machine ends at every call.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use napreduce_local::world::disk::{CallFault, Disk, SimDisk};
use napreduce_protocol::Blob;

use super::{BlobError, BlobStore, digest_of};

const DIRECTORY: &str = "/coordinator/blobs";
const CONTENTS: [&[u8]; 3] = [b"a program", b"a side file", b"another side file"];

fn blob(content: &[u8]) -> Blob {
    let (digest, bytes) = digest_of(content).expect("memory can be read");
    Blob { digest, bytes }
}

/// A disk with the coordinator's directory, which survives.
fn disk(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    disk.make_directories(Path::new("/coordinator"), 0o700)
        .expect("made");
    disk.sync_directory(Path::new("/")).expect("synced");
    disk
}

fn open(disk: &SimDisk) -> Result<Arc<BlobStore>, BlobError> {
    BlobStore::open(Arc::new(disk.clone()), DIRECTORY, 1 << 20)
}

/// Stores all blobs; returns how many are acknowledged before the machine ends.
fn store_all(disk: &SimDisk) -> usize {
    let Ok(store) = open(disk) else { return 0 };
    for (stored, content) in CONTENTS.into_iter().enumerate() {
        let Ok(mut writer) = store.writer(blob(content)) else {
            return stored;
        };
        for piece in content.chunks(5) {
            if writer.write(piece).is_err() {
                return stored;
            }
        }
        if writer.finish().is_err() {
            return stored;
        }
    }
    CONTENTS.len()
}

/// Returns which blobs are stored; each has its content.
fn stored(disk: &SimDisk, case: &str) -> [bool; 3] {
    let store = open(disk).unwrap_or_else(|error| panic!("{case}: {error}"));
    CONTENTS.map(|content| {
        let pinned = store.pin(blob(content).digest);
        let Some(pinned) = pinned.unwrap_or_else(|error| panic!("{case}: {error}")) else {
            return false;
        };
        let mut read = Vec::new();
        let (mut file, length) = pinned.open().expect("opened");
        file.read_to_end(&mut read).expect("read");
        assert_eq!((read.as_slice(), length), (content, read.len() as u64));
        true
    })
}

#[test]
fn acknowledged_blob_survives_end_at_every_call() {
    let undisturbed = disk(0);
    let before = undisturbed.calls();
    assert_eq!(store_all(&undisturbed), CONTENTS.len());
    for call in before..undisturbed.calls() {
        for seed in 0..20 {
            let case = format!("power lost at {call}, seed {seed}");
            let disk = disk(seed);
            disk.fail_call(call, CallFault::LastCall);
            let acknowledged = store_all(&disk);
            disk.lose_power();
            let left = stored(&disk, &case);
            assert!(
                left[..acknowledged].iter().all(|is_left| *is_left),
                "{case}"
            );
        }
    }
}

#[test]
fn blob_that_was_found_after_restart_survives_power_loss() {
    let undisturbed = disk(0);
    let before = undisturbed.calls();
    store_all(&undisturbed);
    for call in before..undisturbed.calls() {
        for seed in 0..20 {
            let case = format!("killed at {call}, seed {seed}");
            let disk = disk(seed);
            disk.fail_call(call, CallFault::LastCall);
            store_all(&disk);
            disk.kill_processes();
            // The next coordinator accepts jobs with these blobs.
            let found = stored(&disk, &case);
            disk.lose_power();
            let left = stored(&disk, &case);
            for (found, left) in found.into_iter().zip(left) {
                assert!(left || !found, "{case}");
            }
        }
    }
}

/// An error says nothing about the content, which a running job needs.
#[test]
fn blob_survives_error_while_it_is_verified() {
    let content = CONTENTS[0];
    let calls_of_pin = {
        let disk = disk(0);
        store_all(&disk);
        let store = open(&disk).expect("opened");
        let before = disk.calls();
        store.pin(blob(content).digest).expect("verified");
        disk.calls() - before
    };
    for call in 0..calls_of_pin {
        let disk = disk(0);
        store_all(&disk);
        let store = open(&disk).expect("opened");
        disk.fail_call(disk.calls() + call, CallFault::Error(libc::EIO));
        // An error, or a second look.
        let tried = store.pin(blob(content).digest);
        assert!(!matches!(tried, Ok(None)), "call {call}");
        let pinned = store.pin(blob(content).digest).expect("verified");
        assert!(pinned.is_some(), "call {call}");
    }
}

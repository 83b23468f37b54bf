//! The cluster directory on a simulated disk whose machine loses power at every call.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use napreduce_local::world::World;
use napreduce_local::world::disk::{CallFault, Disk, SimDisk};
use napreduce_protocol::Secret;

use super::super::{ClusterDirectory, ClusterDirectoryError};

/// Prepares a directory as a coordinator does before it accepts jobs.
fn start(disk: &SimDisk) -> Result<Secret, ClusterDirectoryError> {
    let path = PathBuf::from("/home/state/cluster");
    let directory = ClusterDirectory::on_disk(Arc::new(disk.clone()), path);
    let secret = directory.create()?;
    let _lock = directory.lock_coordinator(&World::real().process)?;
    directory.publish_coordinator(([127, 0, 0, 1], 7).into(), &World::real())?;
    Ok(secret)
}

/// A disk with the home of a user, which survives.
fn disk(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    disk.make_directories(Path::new("/home"), 0o700)
        .expect("made");
    disk.sync_directory(Path::new("/")).expect("synced");
    disk
}

#[test]
fn directory_survives_power_loss_at_every_call() {
    let undisturbed = disk(0);
    let before = undisturbed.calls();
    start(&undisturbed).expect("started");
    // The last call is one that is not made.
    for call in before..=undisturbed.calls() {
        for seed in 0..20 {
            let disk = disk(seed);
            disk.fail_call(call, CallFault::LastCall);
            let known = start(&disk).ok();
            disk.lose_power();
            let found = start(&disk)
                .unwrap_or_else(|error| panic!("power lost at {call}, seed {seed}: {error}"));
            if let Some(known) = known {
                assert_eq!(
                    known.bytes(),
                    found.bytes(),
                    "power lost at {call}, seed {seed}: the secret is another one"
                );
            }
        }
    }
}

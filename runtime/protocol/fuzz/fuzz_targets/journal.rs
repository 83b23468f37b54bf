//! Fuzzes journals of a coordinator: every input is replayed or rejected with an error. Start with real journals
//! (`DIR/coordinator/journal-*.log`): checksums are corrected after each mutation.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use napreduce_cluster::{ClusterDirectory, replay_journal};
use napreduce_schedulers::SchedulerConfiguration;

const HEAD_BYTES: usize = 8;

fuzz_target!(|bytes: &[u8]| {
    let place = std::env::temp_dir().join(format!("napreduce-fuzz-journal-{}", std::process::id()));
    let coordinator = place.join("coordinator");
    fs::create_dir_all(&coordinator).expect("the temporary directory can be written");
    for journal in [bytes.to_vec(), with_right_checksums(bytes)] {
        fs::write(coordinator.join("journal-00000001.log"), journal).expect("it can be written");
        let directory = ClusterDirectory::resolve(Some(place.clone())).expect("a directory");
        let _ = replay_journal(&directory, SchedulerConfiguration::read);
    }
    fs::remove_dir_all(&place).expect("it was just made");
});

/// Splits the input into frames: length, checksum, payload.
fn with_right_checksums(mut rest: &[u8]) -> Vec<u8> {
    let mut journal = Vec::with_capacity(rest.len());
    while let Some((head, behind)) = rest.split_at_checked(HEAD_BYTES) {
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let Some((payload, next)) = behind.split_at_checked(length as usize) else {
            break;
        };
        journal.extend_from_slice(&length.to_le_bytes());
        journal.extend_from_slice(&crc32c::crc32c(payload).to_le_bytes());
        journal.extend_from_slice(payload);
        rest = next;
    }
    journal.extend_from_slice(rest);
    journal
}

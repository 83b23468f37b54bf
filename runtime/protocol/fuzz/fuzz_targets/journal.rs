//! Fuzzes journals of a coordinator: every input is replayed or rejected with an error. Start with real journals
//! (`DIR/coordinator/journal-*.log`): checksums are corrected after each mutation.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use napreduce_cluster::{ClusterDirectory, replay_journal};
use napreduce_schedulers::SchedulerConfiguration;

const HEAD_BYTES: usize = 8;
const CHAINED_HEAD_BYTES: usize = 20;

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

/// Splits the input into frames, and corrects their checksums. The head of the first frame is a length and a checksum;
/// that of the others is a length, the checksum of the frame before, a settled length and a checksum.
fn with_right_checksums(mut rest: &[u8]) -> Vec<u8> {
    let mut journal = Vec::with_capacity(rest.len());
    let mut previous = None;
    loop {
        let head_bytes = if previous.is_some() { CHAINED_HEAD_BYTES } else { HEAD_BYTES };
        let Some((head, behind)) = rest.split_at_checked(head_bytes) else {
            break;
        };
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let Some((payload, next)) = behind.split_at_checked(length as usize) else {
            break;
        };
        journal.extend_from_slice(&length.to_le_bytes());
        let mut sum = 0;
        if let Some(previous) = previous {
            let link = [&u32::to_le_bytes(previous)[..], &head[8..16]].concat();
            sum = crc32c::crc32c(&link);
            journal.extend_from_slice(&link);
        }
        sum = crc32c::crc32c_append(sum, payload);
        journal.extend_from_slice(&sum.to_le_bytes());
        journal.extend_from_slice(payload);
        previous = Some(sum);
        rest = next;
    }
    journal.extend_from_slice(rest);
    journal
}

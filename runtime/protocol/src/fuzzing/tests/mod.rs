//! A smoke test of the fuzz targets on a stable toolchain: random bytes, and valid messages with damage.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

/// Returns a valid frame of every message between processes of a cluster, with the name of its fuzz target.
fn genuine() -> Vec<(&'static str, Vec<u8>)> {
    let frame = |line: &'static str| {
        let message = line.split(' ').next().unwrap();
        let hex = line.rsplit(' ').next().unwrap();
        let target = match message {
            "FromWorker" => "from_worker",
            "ToWorker" => "to_worker",
            "ToCoordinator" => "to_coordinator",
            "FromCoordinator" => "from_coordinator",
            "ToDataServer" => "to_data_server",
            "FromDataServer" => "from_data_server",
            other => panic!("no target takes {other}"),
        };
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (target, (0..hex.len()).step_by(2).map(byte).collect())
    };
    include_str!("../../messages/tests/golden.txt")
        .lines()
        .skip(1)
        .map(frame)
        .collect()
}

#[test]
fn genuine_messages_pass_their_targets() {
    for (target, frame) in genuine() {
        run(target, &frame);
        run(target, &frame[4..]);
    }
}

/// Every known target has a file in the fuzz crate, and every file belongs to a known target.
#[test]
fn fuzz_targets_match_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/fuzz_targets");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> = files.collect();
    // Targets of other crates: segments (napreduce-data), handshakes and journals (napreduce-cluster),
    // recordings (napreduce-history), frames (napreduce), frames of guests (napreduce-guests).
    let others = [
        "segment",
        "handshake",
        "journal",
        "recording",
        "frames",
        "guest_frames",
    ];
    let ours = TARGETS
        .iter()
        .map(|(name, _)| *name)
        .chain(others)
        .map(|name| format!("{name}.rs"));
    assert_eq!(files, ours.collect());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn random_bytes_cause_no_panic(bytes in vec(any::<u8>(), 0..400)) {
        for (target, _) in TARGETS {
            run(target, &bytes);
        }
    }

    #[test]
    fn small_numbers_cause_no_panic(bytes in vec(prop_oneof![0..12_u8, 250..=255_u8], 0..60)) {
        for (target, _) in TARGETS {
            run(target, &bytes);
        }
    }

    #[test]
    fn damaged_messages_cause_no_panic(
        which in any::<Index>(),
        damage in vec((any::<Index>(), any::<u8>(), 0..4), 1..6),
    ) {
        let (target, mut bytes) = genuine().swap_remove(which.index(genuine().len()));
        for (at, byte, kind) in damage {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => bytes.truncate(at + 1),
                _ => bytes.extend_from_within(at..),
            }
        }
        run(target, &bytes);
        run(target, bytes.get(4..).unwrap_or_default());
    }
}

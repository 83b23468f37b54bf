//! Data damaged in transit or on the server's disk: flipped bits, missing, truncated and swapped files.

use std::fs;

use super::proxy::{Fault, Proxy};
use super::*;

#[test]
fn bit_flip_in_transit_refetches_that_block() {
    let served = Served::start().with_maps(1, 12_000);
    for (encrypt, at) in [
        (false, 90_000),
        (false, 200_000),
        (true, 90_000),
        (true, 200_000),
    ] {
        let proxy = Proxy::before(&served.address, &[Fault::Flip(at)]);
        let mut reduce = Reduce::new(1).encrypted(encrypt);
        let gathered = reduce.gather(vec![remote(map(0), &proxy.address)]);
        check_equal(&gathered, &served.shelf, 0);
        proxy.check_fired();
        assert_eq!(reduce.count(Counter::ShuffleRetries), 1);
        // The first block ends before 200,000 and is not fetched twice.
        let again = proxy.passed()[1].len() as u64;
        let whole = Segment::open(&gathered[0].1)
            .unwrap()
            .partition(0)
            .unwrap()
            .stored_len;
        assert_eq!(
            again < whole,
            at == 200_000,
            "{again} of {whole} bytes at {at}"
        );
    }
}

#[test]
fn bit_flip_anywhere_in_transit_is_detected() {
    let served = Served::start().with_maps(1, 300);
    let path = Proxy::before(&served.address, &[]);
    Reduce::new(1).gather(vec![remote(map(0), &path.address)]);
    let length = path.passed()[0].len();
    for at in (0..length).step_by(length / 400 + 1) {
        let proxy = Proxy::before(&served.address, &[Fault::Flip(at)]);
        // A flipped bit may turn a message into another one, such as `Unavailable`, or make both sides wait.
        let mut reduce = Reduce::new(1).silence_max(Duration::from_secs(1));
        let gathered = reduce
            .gather_with(vec![remote(map(0), &proxy.address)], |_| {
                vec![remote(map(0), &served.address)]
            })
            .unwrap();
        check_equal(&gathered, &served.shelf, 0);
        proxy.check_fired();
    }
}

/// Checks that damage to the server's file is reported with attempt, partition and reason, and that its
/// replacement and all other outputs are fetched.
#[track_caller]
fn check_lost(spoil: impl FnOnce(&Path), parts: &[&str]) {
    let served = Served::start().with_maps(3, 12_000);
    spoil(&served.shelf.path(map(1)));
    let again = attempt(TaskKind::Map, 1, 2);
    served.shelf.seal(again, 12_000, BlockCompression::None);
    let mut reduce = Reduce::new(3).partition(2);
    let gathered = reduce
        .gather_with(served.inputs(3), |lost| {
            assert_eq!(lost, [map(1)]);
            vec![remote(again, &served.address)]
        })
        .unwrap();
    check_equal(&gathered, &served.shelf, 2);
    assert_eq!(
        gathered.iter().map(|(id, _)| id.number).collect::<Vec<_>>(),
        [1, 2, 1]
    );
    let [(_, reason)] = reduce.lost.as_slice() else {
        panic!("{:?}", reduce.lost)
    };
    for part in [&["partition 2", served.address.as_str()], parts].concat() {
        assert!(reason.contains(part), "{part:?} is missing in {reason:?}");
    }
}

#[test]
fn missing_segment_is_reported_lost() {
    check_lost(
        |path| fs::remove_file(path).unwrap(),
        &["job_0001_m_0001.1", "rerun the map task"],
    );
}

#[test]
fn bit_flip_on_server_disk_is_reported_with_block() {
    let flip_a_late_block = |path: &Path| {
        let entry = Segment::open(path).unwrap().partition(2).unwrap();
        change(path, (entry.offset + entry.stored_len - 10) as usize);
    };
    check_lost(
        flip_a_late_block,
        &[
            "checksum mismatch in block 2",
            "job_0001_m_0001.1",
            "3 times",
        ],
    );
}

#[test]
fn damaged_footer_on_server_disk_is_reported_lost() {
    let flip_the_footer =
        |path: &Path| change(path, fs::metadata(path).unwrap().len() as usize - 100);
    check_lost(
        flip_the_footer,
        &["damaged", "checksum mismatch in the block index"],
    );
}

#[test]
fn truncated_segment_is_reported_lost() {
    let cut = |path: &Path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    };
    check_lost(cut, &["damaged", "truncated or never sealed"]);
}

#[test]
fn segment_of_another_attempt_is_reported_lost() {
    let swap = |path: &Path| {
        fs::copy(path.with_file_name("job_0001_m_0000.1.segment"), path).unwrap();
    };
    check_lost(swap, &["requested job_0001_m_0001.1", "job_0001_m_0000.1"]);
}

fn change(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

//! Connections that break at any point are resumed.

use napreduce_data::SegmentIndex;

use super::proxy::{Fault, Proxy};
use super::*;

const BLOCK: usize = 128 << 10;
/// A handshake, the answer to Open, the segment's extent, and the frames around pieces.
const OVERHEAD: usize = 4 << 10;

/// One map with some blocks in each partition.
fn served() -> Served {
    Served::start().with_maps(1, 12_000)
}

/// Returns the bytes that the server sends in an undisturbed fetch.
fn undisturbed(served: &Served, encrypt: bool) -> Vec<u8> {
    let proxy = Proxy::before(&served.address, &[]);
    let mut reduce = Reduce::new(1).encrypted(encrypt);
    reduce.gather(vec![remote(map(0), &proxy.address)]);
    proxy.passed().swap_remove(0)
}

#[track_caller]
fn check_cut(served: &Served, encrypt: bool, at: usize, whole: usize) {
    let proxy = Proxy::before(&served.address, &[Fault::Cut(at)]);
    let mut reduce = Reduce::new(1).encrypted(encrypt);
    let gathered = reduce.gather(vec![remote(map(0), &proxy.address)]);
    check_equal(&gathered, &served.shelf, 0);
    proxy.check_fired();
    assert_eq!(reduce.count(Counter::ShuffleRetries), 1, "cut at {at}");
    let passed: usize = proxy.passed().iter().map(Vec::len).sum();
    // Encrypted data counts only in whole records.
    let record = if encrypt { 64 << 10 } else { 0 };
    assert!(
        passed <= whole + BLOCK + record + OVERHEAD,
        "cut at {at} of {whole}: {passed} bytes were sent"
    );
}

/// Returns where each block of partition 0 starts in the sent bytes, and where the last one ends.
fn block_starts(served: &Served, stream: &[u8]) -> Vec<usize> {
    let path = served.shelf.path(map(0));
    let bytes = std::fs::read(&path).unwrap();
    let index = SegmentIndex::read(&std::fs::File::open(&path).unwrap(), &path).unwrap();
    let count = index.extent(0, 0).unwrap().end_block();
    let mut starts = Vec::new();
    let mut from = 0;
    for block in 0..count {
        let range = index.extent(0, block).unwrap().range();
        let head = &bytes[range.start as usize..][..64];
        from += stream[from..]
            .windows(64)
            .position(|window| window == head)
            .expect("the block was sent");
        starts.push(from);
        if block + 1 == count {
            starts.push(from + (range.end - range.start) as usize);
        }
    }
    starts
}

#[test]
fn fetch_cut_in_block_resumes_at_that_block() {
    let served = served();
    let stream = undisturbed(&served, false);
    let starts = block_starts(&served, &stream);
    assert!(starts.len() > 3, "{starts:?}");
    for start in starts {
        for at in [start - 1, start, start + 1, start + BLOCK / 3] {
            if at < stream.len() {
                check_cut(&served, false, at, stream.len());
            }
        }
    }
}

#[test]
fn fetch_cut_before_first_block_restarts() {
    let served = served();
    let stream = undisturbed(&served, false);
    let first = block_starts(&served, &stream)[0];
    for at in (0..first).step_by(11) {
        check_cut(&served, false, at, stream.len());
    }
}

#[test]
fn encrypted_fetch_cut_anywhere_resumes() {
    let served = served();
    let stream = undisturbed(&served, true);
    for at in (0..stream.len()).step_by(stream.len() / 23) {
        check_cut(&served, true, at, stream.len());
    }
}

#[test]
fn fetch_with_progress_resets_retry_limit() {
    let served = Served::start().with_maps(1, 40_000);
    let cuts = [Fault::Cut(200_000); 5];
    assert!(cuts.len() as u32 > network(false).limits.tries_max);
    let proxy = Proxy::before(&served.address, &cuts);
    let mut reduce = Reduce::new(1);
    let gathered = reduce.gather(vec![remote(map(0), &proxy.address)]);
    check_equal(&gathered, &served.shelf, 0);
    proxy.check_fired();
    assert_eq!(reduce.count(Counter::ShuffleRetries), 5);
}

#[test]
fn outputs_of_dead_server_are_reported_once_and_replaced() {
    let mut dead = Served::start().with_maps(3, 1_000);
    let alive = Served::start();
    dead.die();
    let again = |index| attempt(TaskKind::Map, index, 2);
    (0..3).for_each(|index| {
        alive
            .shelf
            .seal(again(index), 1_000, BlockCompression::None)
    });
    let mut reduce = Reduce::new(3);
    let gathered = reduce
        .gather_with(dead.inputs(3), |lost| {
            lost.iter()
                .map(|lost| remote(again(lost.task.index), &alive.address))
                .collect()
        })
        .unwrap();
    check_equal(&gathered, &alive.shelf, 0);
    let lost: Vec<AttemptId> = reduce
        .lost
        .iter()
        .flat_map(|(attempts, _)| attempts.clone())
        .collect();
    assert_eq!(lost.len(), 3, "{:?}", reduce.lost);
    let reason = &reduce.lost[0].1;
    for part in [
        "partition 0",
        dead.address.as_str(),
        "4 tries",
        "cannot connect",
    ] {
        assert!(reason.contains(part), "{part:?} is missing in {reason:?}");
    }
}

#[test]
fn server_death_loses_only_missing_outputs() {
    let served = Served::start().with_maps(2, 12_000);
    let again = attempt(TaskKind::Map, 1, 2);
    served.shelf.seal(again, 12_000, BlockCompression::None);
    // It is cut after a block, and does not answer from then on.
    let cuts = [
        Fault::Cut(200_000),
        Fault::Cut(0),
        Fault::Cut(0),
        Fault::Cut(0),
    ];
    let dying = Proxy::before(&served.address, &cuts);
    let mut reduce = Reduce::new(2);
    let named = vec![
        remote(map(0), &served.address),
        remote(map(1), &dying.address),
    ];
    let gathered = reduce
        .gather_with(named, |_| vec![remote(again, &served.address)])
        .unwrap();
    check_equal(&gathered, &served.shelf, 0);
    dying.check_fired();
    let [(lost, reason)] = reduce.lost.as_slice() else {
        panic!("{:?}", reduce.lost)
    };
    assert_eq!(lost, &[map(1)]);
    assert!(reason.contains("4 tries"), "{reason}");
    let left: Vec<PathBuf> = std::fs::read_dir(reduce.scratch.path())
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    assert_eq!(
        left.len(),
        2,
        "files of the lost output are removed: {left:?}"
    );
}

//! Measures the speed of fetches over loopback. Run by hand, since it asserts nothing about time.
//!
//! `cargo test --release -p napreduce-cluster --lib -- --ignored --nocapture measure_fetch_rates`

use std::io::{Read, Write};
use std::time::Instant;

use super::*;

const MAPS: u32 = 4;
const RECORDS: u32 = 1_500_000;
const REPETITIONS: usize = 3;

/// Bytes and seconds of fetching every partition of every map once.
fn measure(served: &Served, encrypt: bool) -> (u64, f64) {
    let mut bytes = 0;
    let mut seconds = 0.0;
    for partition in 0..PARTITIONS {
        let mut reduce = Reduce::new(MAPS).encrypted(encrypt).partition(partition);
        let began = Instant::now();
        let gathered = reduce.gather(served.inputs(MAPS));
        seconds += began.elapsed().as_secs_f64();
        assert_eq!(gathered.len(), MAPS as usize);
        bytes += reduce.count(Counter::ShuffleNetworkBytes);
    }
    (bytes, seconds)
}

/// Copies the same bytes from file to file, as the upper bound.
fn copy(served: &Served) -> (u64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let mut buffer = vec![0; 256 << 10];
    let mut bytes = 0;
    let began = Instant::now();
    for index in 0..MAPS {
        let mut from = std::fs::File::open(served.shelf.path(map(index))).unwrap();
        let mut to = std::fs::File::create(folder.path().join(index.to_string())).unwrap();
        while let count @ 1.. = from.read(&mut buffer).unwrap() {
            to.write_all(&buffer[..count]).unwrap();
            bytes += count as u64;
        }
    }
    (bytes, began.elapsed().as_secs_f64())
}

#[test]
#[ignore = "measures, and takes its time"]
fn measure_fetch_rates() {
    let served = Served::start().with_maps(MAPS, RECORDS);
    for repetition in 1..=REPETITIONS {
        for (what, (bytes, seconds)) in [
            ("copied from file to file", copy(&served)),
            ("fetched as they are", measure(&served, false)),
            ("fetched encrypted", measure(&served, true)),
        ] {
            let rate = bytes as f64 / seconds / 1e6;
            println!("{repetition}: {bytes} bytes {what} in {seconds:.2} s: {rate:.0} MB/s");
        }
    }
}

//! Spilling and merging: memory decides how often a task spills, not what it produces.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::support::{MIB, Pair, Place, Shape, bytes, numbered, random, read, sorted};
use napreduce_data::{Collector, CollectorSettings};
use rand::Rng;

fn mixed_records(count: usize) -> Vec<Pair> {
    let mut random = random(21);
    let mut pairs: Vec<Pair> = (0..count)
        .map(|_| {
            let key = random
                .random_range(0..count as u32 / 4)
                .to_string()
                .into_bytes();
            let len = random.random_range(0..120);
            (key, bytes(&mut random, len))
        })
        .collect();
    // Some records are larger than a block or a small arena.
    for index in 0..12 {
        let len = 100_000 + index * 60_000;
        let at = random.random_range(0..pairs.len());
        pairs[at].1 = bytes(&mut random, len);
    }
    pairs
}

#[test]
fn output_is_independent_of_memory_fan_in_and_compression() {
    let pairs = mixed_records(40_000);
    let expected = sorted(&pairs, 3);
    let shapes = [
        Shape::default(),
        Shape::default().fan_in(2),
        Shape::default().fan_in(3).lz4(),
        Shape::default().memory(3 * MIB).fan_in(5),
        Shape::default().memory(8 * MIB).lz4(),
        Shape::default().memory(256 * MIB),
    ];
    let mut spills = Vec::new();
    for shape in shapes {
        let shape = shape.partitions(3);
        let place = Place::new();
        spills.push(place.collect("out", shape, &pairs).spills);
        assert!(
            read(&place.path("out")).unwrap() == expected,
            "memory {} fan-in {}",
            shape.memory,
            shape.fan_in
        );
        assert_eq!(place.names(), ["out"]);
    }
    assert!(
        spills[0] > 10 && spills[1] > 10 && *spills.last().unwrap() == 0,
        "{spills:?}"
    );
}

#[test]
fn equal_keys_keep_order_over_many_merges() {
    let pairs = numbered(
        (0..100_000u32)
            .map(|number| vec![(number % 3) as u8])
            .collect(),
    );
    let place = Place::new();
    let statistics = place.collect("out", Shape::default().fan_in(2), &pairs);
    assert!(statistics.spills > 5, "{statistics:?}");
    assert!(
        statistics.spilled_records > 2 * pairs.len() as u64,
        "intermediate merges count, too: {statistics:?}"
    );
    assert!(read(&place.path("out")).unwrap() == sorted(&pairs, 1));
}

#[test]
fn records_larger_than_memory_pass_through() {
    let mut random = random(8);
    let pairs: Vec<Pair> = vec![
        (b"b".to_vec(), bytes(&mut random, 5 * MIB)),
        (b"a".to_vec(), b"small".to_vec()),
        (bytes(&mut random, 3 * MIB), bytes(&mut random, 10)),
        (b"b".to_vec(), bytes(&mut random, 2 * MIB)),
        (b"b".to_vec(), b"last".to_vec()),
    ];
    for shape in [Shape::default(), Shape::default().lz4().partitions(4)] {
        let place = Place::new();
        let statistics = place.collect("out", shape, &pairs);
        assert!(read(&place.path("out")).unwrap() == sorted(&pairs, shape.partitions));
        assert!(statistics.memory_peak < MIB * 13 / 10, "{statistics:?}");
    }
}

#[test]
fn single_run_becomes_the_segment_by_rename() {
    let place = Place::new();
    let pairs = vec![(b"key".to_vec(), vec![1; MIB])];
    let statistics = place.collect("out", Shape::default(), &pairs);
    assert_eq!((statistics.spills, statistics.spilled_records), (1, 1));
    assert!(read(&place.path("out")).unwrap() == sorted(&pairs, 1));
    assert_eq!(place.names(), ["out"]);
}

#[test]
fn single_run_is_copied_across_file_systems() {
    let place = Place::new();
    let device = |path: &Path| std::fs::metadata(path).map(|metadata| metadata.dev());
    let memory_files = Path::new("/dev/shm");
    let same = device(memory_files).ok() == device(&place.path(".")).ok();
    let Some(elsewhere) = tempfile::tempdir_in(memory_files).ok().filter(|_| !same) else {
        println!("skipped: no second file system");
        return;
    };
    let pair = (b"key".to_vec(), vec![1; MIB]);
    for durable in [false, true] {
        let settings = place.settings("out", Shape::default());
        let settings = CollectorSettings {
            scratch: elsewhere.path().to_owned(),
            durable,
            ..settings
        };
        let mut collector: Collector<()> = Collector::plain(settings).unwrap();
        collector.emit_bytes(&pair.0, &pair.1);
        collector.finish().unwrap();
        assert!(read(&place.path("out")).unwrap() == sorted(std::slice::from_ref(&pair), 1));
        assert_eq!(place.names(), ["out"]);
        assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }
}

#[test]
fn memory_peak_stays_within_the_limit() {
    for memory in [2 * MIB, 8 * MIB, 32 * MIB] {
        let place = Place::new();
        let pairs: Vec<Pair> = mixed_records(20_000);
        let statistics = place.collect(
            "out",
            Shape::default().memory(memory).lz4().fan_in(4),
            &pairs,
        );
        assert!(
            statistics.memory_peak > memory / 4 || statistics.spills == 0,
            "{statistics:?} of {memory}"
        );
        assert!(
            statistics.memory_peak <= memory,
            "{statistics:?} of {memory}"
        );
    }
}

#[test]
fn tiny_task_is_granted_little_memory() {
    let place = Place::new();
    let statistics = place.collect(
        "out",
        Shape::default().memory(1 << 30),
        &numbered(vec![b"one".to_vec()]),
    );
    assert!(statistics.memory_peak < 3 * MIB, "{statistics:?}");
}

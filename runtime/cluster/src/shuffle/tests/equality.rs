//! Fetched data equals the sealed data.

use napreduce_data::{READ_MAX, ReduceInput, ReduceSettings};

use super::*;

#[track_caller]
fn check_fetch(encrypt: bool, compression: BlockCompression, maps: u32, records: u32) {
    let served = Served::start();
    (0..maps).for_each(|index| served.shelf.seal(map(index), records, compression));
    for partition in 0..PARTITIONS {
        let mut reduce = Reduce::new(maps).encrypted(encrypt).partition(partition);
        let gathered = reduce.gather(served.inputs(maps));
        assert_eq!(gathered.len(), maps as usize);
        check_equal(&gathered, &served.shelf, partition);
        let stored: u64 = gathered
            .iter()
            .map(|(_, path)| {
                Segment::open(path)
                    .unwrap()
                    .partition(partition)
                    .unwrap()
                    .stored_len
            })
            .sum();
        assert_eq!(reduce.count(Counter::ShuffleNetworkBytes), stored);
        assert_eq!(reduce.count(Counter::ShuffleRetries), 0);
    }
}

#[test]
fn fetch_plain_equals_sealed_data() {
    check_fetch(false, BlockCompression::None, 5, 20_000);
}

#[test]
fn fetch_encrypted_equals_sealed_data() {
    check_fetch(true, BlockCompression::None, 5, 20_000);
}

#[test]
fn fetch_compressed_blocks_sends_them_unchanged() {
    check_fetch(false, BlockCompression::Lz4, 3, 20_000);
    check_fetch(true, BlockCompression::Lz4, 3, 20_000);
}

#[test]
fn fetch_many_small_segments_equals_sealed_data() {
    check_fetch(false, BlockCompression::None, 300, 20);
    check_fetch(true, BlockCompression::None, 300, 20);
}

#[test]
fn server_setting_forces_encryption() {
    let served = Served::start_with(DataServerSettings {
        encrypt: true,
        ..DataServerSettings::default()
    });
    served.shelf.seal(map(0), 5_000, BlockCompression::None);
    let mut reduce = Reduce::new(1);
    let gathered = reduce.gather(served.inputs(1));
    check_equal(&gathered, &served.shelf, 0);
    let line = served.client(false);
    assert!(matches!(line, DataConnection::Encrypted(_)));
}

#[test]
fn inputs_of_several_servers_and_local_files_merge() {
    let here = Shelf::new();
    let there = Served::start();
    let elsewhere = Served::start();
    let maps = 9;
    let named: Vec<MapInput> = (0..maps)
        .map(|index| match index % 3 {
            0 => {
                here.seal(map(index), 3_000, BlockCompression::None);
                local(map(index), here.path(map(index)))
            }
            1 => {
                there.shelf.seal(map(index), 3_000, BlockCompression::None);
                remote(map(index), &there.address)
            }
            _ => {
                elsewhere
                    .shelf
                    .seal(map(index), 3_000, BlockCompression::None);
                remote(map(index), &elsewhere.address)
            }
        })
        .collect();
    let mut reduce = Reduce::new(maps).partition(1);
    let gathered = reduce.gather(named);
    for (attempt, path) in &gathered {
        let shelf = [&here, &*there.shelf, &*elsewhere.shelf][attempt.task.index as usize % 3];
        assert_eq!(records(path, 1), records(&shelf.path(*attempt), 1));
        assert_eq!(
            *path == shelf.path(*attempt),
            attempt.task.index % 3 == 0,
            "local files are not copied"
        );
    }
    let segments = gathered.into_iter().map(|(_, path)| path).collect();
    let scratch = reduce.scratch.path().to_owned();
    let settings = ReduceSettings {
        consolidated: Vec::new(),
        segments,
        partition: 1,
        memory: 1 << 20,
        scratch,
        label: "a reduce".into(),
        fan_in: 4,
        read_max: READ_MAX,
        grouping: None,
        resume: None,
    };
    let mut input = ReduceInput::open(settings).unwrap();
    let mut merged = 0;
    while input.next_group().unwrap() {
        while input.next_value().unwrap().is_some() {
            merged += 1;
        }
    }
    assert_eq!(merged, input.statistics().records_total);
    assert!(merged > 7_000, "{merged} records");
}

#[test]
fn empty_partition_is_fetched() {
    let served = Served::start();
    served.shelf.seal(map(0), 1, BlockCompression::None);
    let counts: Vec<usize> = (0..PARTITIONS)
        .map(|partition| {
            let mut reduce = Reduce::new(1).partition(partition);
            records(&reduce.gather(served.inputs(1))[0].1, partition).len()
        })
        .collect();
    assert_eq!(counts.iter().sum::<usize>(), 1);
}

//! Runs every path of the unsafe code with few enough records for Miri, which detects uninitialised reads,
//! out-of-bounds accesses and accumulators that are dropped twice or leaked. docs/data-plane.md has the
//! command.

use std::thread;

use crate::support::{Pair, Place, Shape, numbered, read, sorted};
use napreduce_data::{Collector, Combiner, Segment, lend};

/// Unordered keys of every length around 8 and 16 bytes, some of them twice.
fn keys(count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|number| {
            let mixed = number * 7919 % 211;
            (0..mixed % 41).map(|at| (mixed + at * at) as u8).collect()
        })
        .collect()
}

#[test]
fn variable_records_are_written_sorted_and_read() {
    let pairs: Vec<Pair> = keys(300)
        .into_iter()
        .enumerate()
        .map(|(number, key)| (key, vec![number as u8; number % 70]))
        .collect();
    for shape in [Shape::default().partitions(3), Shape::default().lz4()] {
        let place = Place::new();
        place.collect("out", shape, &pairs);
        assert!(read(&place.path("out")).unwrap() == sorted(&pairs, shape.partitions));
    }
}

#[test]
fn fixed_records_are_written_sorted_and_read() {
    for length in [0, 1, 7, 8, 9, 10, 15, 16, 17, 33] {
        let keys = keys(60).into_iter().map(|mut key| {
            key.resize(length, 3);
            key
        });
        let pairs = numbered(keys.collect());
        let shape = Shape::default().partitions(2);
        let place = Place::new();
        place.collect("out", shape.fixed(length as u32, 8), &pairs);
        assert!(
            read(&place.path("out")).unwrap() == sorted(&pairs, 2),
            "keys of {length} bytes"
        );
    }
}

#[test]
fn large_values_spill_and_merge() {
    let pairs: Vec<Pair> = keys(9)
        .into_iter()
        .enumerate()
        .map(|(number, key)| (key, vec![number as u8; 150_000]))
        .collect();
    let place = Place::new();
    let statistics = place.collect("out", Shape::default(), &pairs);
    assert!(statistics.spills > 0, "{statistics:?}");
    assert!(read(&place.path("out")).unwrap() == sorted(&pairs, 1));
}

/// Joins texts. The accumulators own memory, so that Miri reports leaks and double drops.
struct Join;

impl Combiner for Join {
    type Value = String;

    fn fold(&self, into: &mut String, more: String) {
        into.push_str(&more);
    }

    fn encode(&self, value: &String, into: &mut Vec<u8>) {
        into.extend_from_slice(value.as_bytes());
    }

    fn decode(&self, bytes: &[u8]) -> Result<String, String> {
        String::from_utf8(bytes.to_vec()).map_err(|error| error.to_string())
    }

    fn heap_bytes(&self, value: &String) -> usize {
        value.capacity()
    }
}

/// Emits words of all lengths from one lent text, so that loads run past keys.
fn joining(place: &Place, words: usize) -> Collector<String> {
    let text: String = (0..words)
        .map(|number| format!("{}{} ", "w".repeat(number % 23), number % 150))
        .collect();
    let mut collector =
        Collector::combining(place.settings("out", Shape::default()), Join).unwrap();
    lend(text.as_bytes(), || {
        for word in text.split_ascii_whitespace() {
            collector.emit_value(word.as_bytes(), word[..1].to_owned(), 1);
        }
    });
    collector
}

#[test]
fn accumulators_are_folded_once() {
    let place = Place::new();
    let (_, statistics) = joining(&place, 700).finish().unwrap();
    let found = &read(&place.path("out")).unwrap()[0];
    assert_eq!(statistics.records_out, found.len() as u64);
    assert_eq!(
        found.iter().map(|(_, value)| value.len()).sum::<usize>(),
        700
    );
    assert!(found.is_sorted_by(|a, b| a.0 < b.0));
}

#[test]
fn dropped_collector_drops_its_accumulators() {
    let place = Place::new();
    drop(joining(&place, 200));
    assert!(place.names().is_empty());
}

#[test]
fn combine_table_grows() {
    let place = Place::new();
    let keys: Vec<Vec<u8>> = (0..1_500_u32)
        .map(|number| number.to_string().into_bytes())
        .collect();
    let statistics = place.count("out", Shape::default(), keys.iter().chain(&keys));
    assert_eq!(
        (statistics.records_in, statistics.records_out),
        (3_000, 1_500)
    );
}

#[test]
fn cursors_seek_and_move_to_other_threads() {
    let pairs = numbered(keys(400));
    for shape in [Shape::default(), Shape::default().lz4()] {
        let place = Place::new();
        place.collect("out", shape, &pairs);
        let expected = &sorted(&pairs, 1)[0];
        let segment = Segment::open(&place.path("out")).unwrap();
        let small = Segment::open_partition(&place.path("out"), 0, u64::MAX).unwrap();
        for (segment, ordinal) in [(&segment, 0), (&segment, 399), (&small, 17), (&small, 400)] {
            let mut cursor = segment.cursor_at(0, ordinal).unwrap();
            let rest = thread::spawn(move || {
                let mut rest = Vec::new();
                while cursor.advance().unwrap() {
                    rest.push((cursor.key().to_vec(), cursor.value().to_vec()));
                }
                rest
            });
            assert!(
                rest.join().unwrap() == expected[ordinal as usize..],
                "from {ordinal}"
            );
        }
    }
}

#[test]
fn reduce_reads_groups_of_several_segments() {
    let pairs = numbered(keys(200));
    let place = Place::new();
    let (first, second) = pairs.split_at(120);
    place.collect("first", Shape::default(), first);
    place.collect("second", Shape::default().lz4(), second);
    let groups = place.groups(&["first", "second"]);
    assert!(groups.is_sorted_by(|a, b| a.0 < b.0));
    let read = groups
        .iter()
        .flat_map(|(key, values)| values.iter().map(|value| (key.clone(), value.clone())));
    let mut read: Vec<Pair> = read.collect();
    let mut expected = pairs;
    read.sort();
    expected.sort();
    assert!(read == expected);
}

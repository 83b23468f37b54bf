//! Combining reduces the output's size and keeps its sums.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::support::{MIB, Place, Shape, bytes, random, read};
use napreduce_data::{CollectStatistics, Collector, Combiner};
use proptest::collection::vec;
use proptest::prelude::*;
use rand::Rng;

/// Collects, checks the sums in the segment, and returns the statistics.
#[track_caller]
fn check(shape: Shape, keys: &[Vec<u8>]) -> CollectStatistics {
    let place = Place::new();
    let statistics = place.count("out", shape, keys);
    let mut expected: BTreeMap<&[u8], u64> = BTreeMap::new();
    for key in keys {
        *expected.entry(key).or_default() += 1;
    }
    let mut found: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    let partitions = read(&place.path("out")).unwrap();
    for partition in &partitions {
        assert!(partition.is_sorted_by(|a, b| a.0 <= b.0));
        for (key, value) in partition {
            *found.entry(key.clone()).or_default() +=
                u64::from_be_bytes(value.as_slice().try_into().unwrap());
        }
    }
    assert!(
        found
            .iter()
            .map(|(key, sum)| (key.as_slice(), *sum))
            .eq(expected),
        "sums differ from the naive ones"
    );
    assert_eq!(statistics.records_in, keys.len() as u64);
    assert_eq!(statistics.combine_records_in, keys.len() as u64);
    assert_eq!(place.names(), ["out"]);
    statistics
}

fn words(seed: u64, count: usize, vocabulary: u32) -> Vec<Vec<u8>> {
    let mut random = random(seed);
    (0..count)
        .map(|_| {
            let number = random
                .random_range(0..vocabulary)
                .min(random.random_range(0..vocabulary));
            match number % 7 {
                0 => format!("a word that is longer than a slot {number}").into_bytes(),
                1 => format!("sixteen{number:09}").into_bytes(),
                _ => number.to_string().into_bytes(),
            }
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn any_keys_combine_to_naive_sums(
        stems in vec(vec(prop_oneof![Just(0u8), Just(b'a'), Just(255u8)], 0..24), 1..40),
        picks in vec(any::<prop::sample::Index>(), 0..600),
        partitions in 1u32..5,
    ) {
        let keys: Vec<Vec<u8>> = picks.iter().map(|pick| pick.get(&stems).clone()).collect();
        let statistics = check(Shape::default().partitions(partitions), &keys);
        let mut distinct = keys.clone();
        distinct.sort();
        distinct.dedup();
        prop_assert_eq!(statistics.records_out, distinct.len() as u64);
    }
}

#[test]
fn combining_distinguishes_keys_of_every_length() {
    let mut keys = Vec::new();
    for len in [
        0usize, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 18, 100, 4095, 4096, 4097, 70_000,
    ] {
        for last in [0u8, 1] {
            let mut key = vec![0; len];
            if let Some(byte) = key.last_mut() {
                *byte = last;
            }
            keys.push(key);
        }
    }
    let keys: Vec<Vec<u8>> = (0..5).flat_map(|_| keys.clone()).collect();
    check(Shape::default(), &keys);
    check(Shape::default().memory(64 * MIB).partitions(7), &keys);
}

#[test]
fn small_vocabulary_leaves_one_record_per_word() {
    let keys = words(41, 200_000, 20_000);
    let statistics = check(Shape::default().memory(64 * MIB), &keys);
    assert!(
        statistics.records_out <= 20_000 && statistics.spills == 0,
        "{statistics:?}"
    );
    assert!(!statistics.combine_bypassed);
}

#[test]
fn large_vocabulary_is_flushed_spilled_and_merged() {
    let keys = words(42, 200_000, 40_000);
    for shape in [
        Shape::default(),
        Shape::default().fan_in(2).lz4(),
        Shape::default().fixed(7, 8),
    ] {
        let keys: Vec<Vec<u8>> = match shape.encoding.stride_for_test() {
            Some(len) => keys
                .iter()
                .map(|key| [key.as_slice(), &[b'.'; 7]].concat()[..len].to_vec())
                .collect(),
            None => keys.clone(),
        };
        let statistics = check(shape, &keys);
        assert!(statistics.spills > 1, "{statistics:?}");
        let distinct = keys.iter().collect::<std::collections::BTreeSet<_>>().len() as u64;
        assert_eq!(
            statistics.records_out, distinct,
            "merging runs folds equal keys"
        );
    }
}

#[test]
fn unique_keys_bypass_the_combine_table() {
    let mut random = random(43);
    let keys: Vec<Vec<u8>> = (0..200_000).map(|_| bytes(&mut random, 9)).collect();
    let statistics = check(Shape::default().memory(64 * MIB), &keys);
    assert!(statistics.combine_bypassed, "{statistics:?}");
    let repeating = words(44, 200_000, 1_000);
    assert!(!check(Shape::default().memory(64 * MIB), &repeating).combine_bypassed);
}

#[test]
fn combined_output_is_independent_of_memory() {
    let keys = words(45, 150_000, 30_000);
    let place = Place::new();
    for (name, memory) in [("small", MIB), ("medium", 4 * MIB), ("ample", 256 * MIB)] {
        place.count(name, Shape::default().memory(memory).partitions(3), &keys);
    }
    let small = read(&place.path("small")).unwrap();
    assert!(
        small == read(&place.path("medium")).unwrap()
            && small == read(&place.path("ample")).unwrap()
    );
}

/// Concatenates values, and counts the live accumulators.
struct Lists(Rc<Cell<i64>>);

struct List(Vec<u8>, Rc<Cell<i64>>);

impl List {
    fn new(bytes: Vec<u8>, alive: &Rc<Cell<i64>>) -> List {
        alive.set(alive.get() + 1);
        List(bytes, alive.clone())
    }
}

impl Drop for List {
    fn drop(&mut self) {
        self.1.set(self.1.get() - 1);
    }
}

impl Combiner for Lists {
    type Value = List;

    fn fold(&self, into: &mut List, more: List) {
        into.0.extend_from_slice(&more.0);
    }

    fn encode(&self, value: &List, into: &mut Vec<u8>) {
        into.extend_from_slice(&value.0);
    }

    fn decode(&self, bytes: &[u8]) -> Result<List, String> {
        if bytes == b"poison" {
            Err("poison".into())
        } else {
            Ok(List::new(bytes.to_vec(), &self.0))
        }
    }

    fn heap_bytes(&self, value: &List) -> usize {
        value.0.capacity()
    }
}

#[test]
fn heap_accumulators_are_budgeted_and_dropped_once() {
    let alive = Rc::new(Cell::new(0));
    let place = Place::new();
    let shape = Shape::default().memory(4 * MIB);
    let mut collector =
        Collector::combining(place.settings("out", shape), Lists(alive.clone())).unwrap();
    let count = 200_000u32;
    for number in 0..count {
        let value = List::new(number.to_be_bytes().to_vec(), &alive);
        collector.emit_value(&(number % 100).to_be_bytes(), value, 4);
        assert!(alive.get() < 500);
    }
    let (sealed, statistics) = collector.finish().unwrap();
    assert_eq!(alive.get(), 0);
    assert_eq!(sealed.records, 100);
    assert!(statistics.memory_peak <= 4 * MIB, "{statistics:?}");
    let total: usize = read(&place.path("out")).unwrap()[0]
        .iter()
        .map(|(_, value)| value.len())
        .sum();
    assert_eq!(total, 4 * count as usize);
}

#[test]
fn dropped_collector_drops_accumulators_and_files() {
    let alive = Rc::new(Cell::new(0));
    let place = Place::new();
    let mut collector = Collector::combining(
        place.settings("out", Shape::default()),
        Lists(alive.clone()),
    )
    .unwrap();
    for number in 0..200_000u32 {
        collector.emit_value(
            &(number / 2).to_be_bytes(),
            List::new(vec![0; 20], &alive),
            20,
        );
    }
    assert!(alive.get() > 0);
    drop(collector);
    assert_eq!(alive.get(), 0);
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn undecodable_value_names_its_key() {
    let place = Place::new();
    let alive = Rc::new(Cell::new(0));
    let settings = place.settings("out", Shape::default());
    let mut collector = Collector::combining(settings, Lists(alive.clone())).unwrap();
    for _ in 0..2 {
        collector.emit_value(b"bad\n", List::new(b"poison".to_vec(), &alive), 6);
        // Enough other keys to flush the table and spill, so that the two values meet in the merge.
        for number in 0..60_000u32 {
            collector.emit_value(&number.to_be_bytes(), List::new(vec![1; 8], &alive), 8);
        }
    }
    let error = collector.finish().unwrap_err().to_string();
    assert!(
        error.contains("\"bad\\n\"") && error.contains("poison"),
        "{error}"
    );
}

trait StrideForTest {
    fn stride_for_test(&self) -> Option<usize>;
}

impl StrideForTest for napreduce_data::RecordEncoding {
    fn stride_for_test(&self) -> Option<usize> {
        match self {
            napreduce_data::RecordEncoding::Fixed { key, .. } => Some(*key as usize),
            napreduce_data::RecordEncoding::Variable => None,
        }
    }
}

//! Sorting: records come back complete, ordered and stable, for all kinds of keys.

use crate::support::{MIB, Pair, Place, Shape, bytes, numbered, random, read, sorted};
use napreduce_data::RecordEncoding;
use proptest::collection::vec;
use proptest::prelude::*;
use rand::Rng;

#[track_caller]
fn check(shape: Shape, pairs: &[Pair]) {
    let place = Place::new();
    let statistics = place.collect("out", shape, pairs);
    assert_eq!(statistics.records_in, pairs.len() as u64);
    assert_eq!(statistics.records_out, pairs.len() as u64);
    assert!(
        read(&place.path("out")).unwrap() == sorted(pairs, shape.partitions),
        "differs from the naive result"
    );
    assert_eq!(place.names(), ["out"], "scratch files remain");
}

/// Keys that are hard for prefixes: few letters, zero bytes, lengths around every boundary.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let letter = prop_oneof![Just(0u8), Just(b'a'), Just(b'b'), Just(0xff)];
    prop_oneof![
        4 => vec(letter.clone(), 0..4),
        4 => vec(letter, 8..20),
        1 => vec(any::<u8>(), 0..40),
        1 => (0usize..4, 0usize..12).prop_map(|(stem, zeros)| [vec![7; stem * 5], vec![0; zeros]].concat()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_variable_records_come_back_sorted(
        keys in vec(key(), 0..300),
        partitions in 1u32..9,
        lz4 in any::<bool>(),
    ) {
        let shape = Shape::default().partitions(partitions);
        check(if lz4 { shape.lz4() } else { shape }, &numbered(keys));
    }

    #[test]
    fn any_fixed_records_come_back_sorted(
        key_len in 0u32..40,
        letters in 1u8..=255,
        count in 0usize..300,
        partitions in 1u32..400,
        seed in any::<u64>(),
    ) {
        let mut random = random(seed);
        let keys = (0..count).map(|_| (0..key_len).map(|_| random.random_range(0..letters)).collect()).collect();
        check(Shape::default().fixed(key_len, 8).partitions(partitions), &numbered(keys));
    }
}

#[test]
fn keys_are_ordered_by_bytes_then_length() {
    let mut keys = Vec::new();
    for len in [
        0, 1, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31, 32, 255, 256, 65_534, 65_535, 65_536,
        70_000,
    ] {
        for last in [0u8, 1, 255] {
            let mut key = vec![0x61; len];
            if let Some(byte) = key.last_mut() {
                *byte = last;
            }
            keys.push(key);
        }
    }
    keys.extend(keys.clone());
    check(Shape::default(), &numbered(keys.clone()));
    check(
        Shape::default().memory(64 * MIB).partitions(3),
        &numbered(keys),
    );
}

#[test]
fn keys_with_trailing_zeros_are_distinguished() {
    let mut random = random(11);
    let keys = (0..20_000)
        .map(|_| {
            let mut key = vec![b'k'; random.random_range(0..3)];
            key.resize(key.len() + random.random_range(0..30), 0);
            key
        })
        .collect();
    check(
        Shape::default().memory(32 * MIB).partitions(5),
        &numbered(keys),
    );
}

#[test]
fn equal_keys_keep_order_of_arrival() {
    for len in [0, 3, 10, 11, 12, 100, 5000] {
        let count = if len > 100 { 500 } else { 50_000 };
        check(
            Shape::default().memory(16 * MIB),
            &numbered(vec![vec![b'x'; len]; count]),
        );
    }
}

#[test]
fn two_mixed_keys_are_separated_in_order() {
    let mut random = random(5);
    for stem in [0, 11, 40] {
        let keys = (0..40_000)
            .map(|_| [vec![b's'; stem], vec![random.random_range(0..2)]].concat())
            .collect();
        check(Shape::default().partitions(2), &numbered(keys));
    }
}

#[test]
fn sorted_and_reversed_input_is_sorted() {
    let ascending: Vec<Vec<u8>> = (0..30_000u32)
        .map(|number| number.to_be_bytes().to_vec())
        .collect();
    let descending = ascending.iter().rev().cloned().collect();
    check(Shape::default().memory(8 * MIB), &numbered(ascending));
    check(Shape::default().memory(8 * MIB), &numbered(descending));
}

#[test]
fn keys_with_long_common_prefixes_are_sorted() {
    let mut random = random(3);
    for stem in [10, 50, 150, 1000] {
        let stem = vec![b'/'; stem];
        let keys = (0..3_000)
            .map(|_| [stem.clone(), bytes(&mut random, 2), stem.clone()].concat())
            .collect();
        check(Shape::default().memory(32 * MIB), &numbered(keys));
    }
}

#[test]
fn terasort_records_are_sorted() {
    let mut random = random(1);
    let pairs: Vec<Pair> = (0..60_000)
        .map(|_| (bytes(&mut random, 10), bytes(&mut random, 90)))
        .collect();
    check(
        Shape::default()
            .fixed(10, 90)
            .memory(64 * MIB)
            .partitions(3),
        &pairs,
    );
    check(
        Shape::default().fixed(10, 90).memory(2 * MIB).partitions(3),
        &pairs,
    );
}

#[test]
fn ascii_and_skewed_keys_are_sorted() {
    let mut random = random(2);
    let ascii = (0..50_000)
        .map(|_| (0..10).map(|_| random.random_range(0x20..0x7f)).collect())
        .collect();
    check(Shape::default().memory(64 * MIB), &numbered(ascii));
    // Half of the keys lie at exponentially shrinking distances from one point.
    let skewed = (0..50_000)
        .map(|_| {
            let shift = random.random_range(0..64);
            (random.random::<u64>() >> shift).to_be_bytes().to_vec()
        })
        .collect();
    check(
        Shape::default().fixed(8, 8).memory(64 * MIB),
        &numbered(skewed),
    );
}

#[test]
fn empty_input_seals_an_empty_segment() {
    check(Shape::default(), &[]);
    check(Shape::default().fixed(4, 4).partitions(1000), &[]);
}

#[test]
fn thousands_of_partitions_are_sorted() {
    let mut random = random(4);
    let keys = (0..5_000).map(|_| bytes(&mut random, 12)).collect();
    check(
        Shape {
            encoding: RecordEncoding::Variable,
            ..Shape::default()
        }
        .partitions(70_000),
        &numbered(keys),
    );
}

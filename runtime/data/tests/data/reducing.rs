//! Groups and merging: a reduce task gets every group once, with all values in the order of map tasks and
//! arrival.

use std::collections::BTreeMap;

use crate::support::{MIB, Pair, Place, Shape, Sum, bytes, groups, numbered, random};
use napreduce_data::{Merge, READ_MAX, ReduceError, ReduceInput, ReduceSettings, Segment};
use proptest::collection::vec;
use proptest::prelude::*;
use rand::Rng;

/// Computes the groups of these maps' outputs.
fn naive(maps: &[Vec<Pair>]) -> Vec<(Vec<u8>, Vec<Vec<u8>>)> {
    let mut groups: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    for (key, value) in maps.iter().flatten() {
        groups.entry(key.clone()).or_default().push(value.clone());
    }
    groups.into_iter().collect()
}

/// Collects each map's pairs and returns the names of the segments.
fn collect(place: &Place, shape: Shape, maps: &[Vec<Pair>]) -> Vec<String> {
    let names: Vec<String> = (0..maps.len()).map(|map| format!("map-{map:04}")).collect();
    for (name, pairs) in names.iter().zip(maps) {
        place.collect(name, shape, pairs);
    }
    names
}

fn names(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn groups_equal_naive_ones_for_every_fan_in(
        maps in vec(vec((vec(prop_oneof![Just(0u8), Just(b'a'), any::<u8>()], 0..14), vec(any::<u8>(), 0..5)), 0..40), 0..12),
        fan_in in 0usize..12,
        lz4 in any::<bool>(),
        read_max in prop_oneof![Just(0), 0u64..300, Just(READ_MAX)],
    ) {
        let place = Place::new();
        let shape = if lz4 { Shape::default().lz4() } else { Shape::default() };
        let segments = collect(&place, shape, &maps);
        let settings = ReduceSettings { fan_in, read_max, ..place.reduce_settings(&names(&segments), 0) };
        let mut input = ReduceInput::open(settings).unwrap();
        prop_assert_eq!(groups(&mut input), naive(&maps));
        let total = maps.iter().map(Vec::len).sum::<usize>() as u64;
        let statistics = input.statistics();
        prop_assert_eq!((statistics.records, statistics.records_total), (total, total));
        drop(input);
        prop_assert_eq!(place.names(), segments, "intermediate merges remain");
    }
}

#[test]
fn equal_keys_come_in_order_of_map_and_arrival() {
    let maps: Vec<Vec<Pair>> = (0..200u32)
        .map(|map| {
            (0..5u32)
                .map(|number| {
                    (
                        b"long key beyond any head".to_vec(),
                        vec![map as u8, number as u8],
                    )
                })
                .collect()
        })
        .collect();
    let place = Place::new();
    let segments = collect(&place, Shape::default(), &maps);
    for fan_in in [2, 7, 64, 1000] {
        let settings = ReduceSettings {
            fan_in,
            ..place.reduce_settings(&names(&segments), 0)
        };
        let mut input = ReduceInput::open(settings).unwrap();
        assert!(groups(&mut input) == naive(&maps), "fan-in {fan_in}");
        assert_eq!(input.statistics().intermediate_merges > 0, fan_in < 200);
    }
}

#[test]
fn keys_with_common_prefixes_merge_in_order() {
    let mut random = random(31);
    let maps: Vec<Vec<Pair>> = (0..20)
        .map(|_| {
            let keys = (0..300).map(|_| {
                let mut key = b"common prefix"[..random.random_range(0..=13)].to_vec();
                key.resize(key.len() + random.random_range(0..3), 0);
                key
            });
            numbered(keys.collect())
        })
        .collect();
    let place = Place::new();
    let segments = collect(&place, Shape::default(), &maps);
    assert!(place.groups(&names(&segments)) == naive(&maps));
}

#[test]
fn unread_values_are_skipped_and_counted() {
    let maps = vec![
        numbered(
            (0..1000u32)
                .map(|number| vec![(number % 10) as u8])
                .collect()
        );
        3
    ];
    let place = Place::new();
    let segments = collect(&place, Shape::default(), &maps);
    let mut input = ReduceInput::open(place.reduce_settings(&names(&segments), 0)).unwrap();
    let mut keys = Vec::new();
    while input.next_group().unwrap() {
        keys.push(input.group_key().to_vec());
        for _ in 0..keys.len() % 3 {
            assert!(input.next_value().unwrap().is_some());
        }
    }
    assert_eq!(keys, (0..10u8).map(|key| vec![key]).collect::<Vec<_>>());
    assert_eq!(
        (input.statistics().groups, input.statistics().records),
        (10, 3000)
    );
    assert!(
        !input.next_group().unwrap() && input.next_value().unwrap().is_none(),
        "still at the end"
    );
}

#[test]
fn next_value_needs_a_group_and_ends_with_it() {
    let place = Place::new();
    place.collect("map", Shape::default(), &numbered(vec![b"k".to_vec()]));
    let mut input = ReduceInput::open(place.reduce_settings(&["map"], 0)).unwrap();
    assert!(input.next_value().unwrap().is_none());
    assert!(input.next_group().unwrap());
    assert!(input.next_value().unwrap().is_some());
    assert!(input.next_value().unwrap().is_none());
    assert!(input.next_value().unwrap().is_none());
    assert!(!input.next_group().unwrap());
    let mut none = ReduceInput::open(place.reduce_settings(&[], 0)).unwrap();
    assert!(!none.next_group().unwrap());
}

#[test]
fn grouping_prefix_orders_values_by_full_key() {
    let mut random = random(32);
    let maps: Vec<Vec<Pair>> = (0..4)
        .map(|_| {
            (0..500)
                .map(|_| (vec![random.random_range(0..5), random.random()], vec![]))
                .collect()
        })
        .collect();
    let place = Place::new();
    let segments = collect(&place, Shape::default(), &maps);
    let settings = ReduceSettings {
        grouping: Some(|_| 1),
        ..place.reduce_settings(&names(&segments), 0)
    };
    let mut input = ReduceInput::open(settings).unwrap();
    let mut found = 0;
    for group in 0..5u8 {
        assert!(input.next_group().unwrap());
        assert_eq!(input.group_key(), [group]);
        let mut last = 0;
        while let Some((key, _)) = input.next_value().unwrap() {
            assert!(key[0] == group && key[1] >= last);
            last = key[1];
            found += 1;
        }
    }
    assert!(!input.next_group().unwrap());
    assert_eq!(found, 2000);
}

#[test]
fn intermediate_merges_fold_equal_keys() {
    let place = Place::new();
    let names: Vec<String> = (0..30).map(|map| format!("map-{map}")).collect();
    let keys: Vec<Vec<u8>> = (0..100u32)
        .map(|number| format!("a rather long key {number}").into_bytes())
        .collect();
    for name in &names {
        place.count(name, Shape::default(), &keys);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let settings = ReduceSettings {
        fan_in: 4,
        ..place.reduce_settings(&names, 0)
    };
    let mut input = ReduceInput::open_combining(settings, &Sum).unwrap();
    let mut groups = 0;
    while input.next_group().unwrap() {
        let mut sum = 0;
        let mut values = 0;
        while let Some((_, value)) = input.next_value().unwrap() {
            sum += u64::from_be_bytes(value.try_into().unwrap());
            values += 1;
        }
        assert!(sum == 30 && values <= 4, "{sum} in {values} values");
        groups += 1;
    }
    assert_eq!(groups, 100);
    assert!(input.statistics().records < 3000);
}

#[test]
fn huge_values_are_borrowed_within_the_memory() {
    let mut random = random(33);
    let pairs: Vec<Pair> = (0..6)
        .map(|_| (b"key".to_vec(), bytes(&mut random, 3 * MIB)))
        .collect();
    let place = Place::new();
    place.collect("map", Shape::default().lz4(), &pairs);
    let mut input = ReduceInput::open(place.reduce_settings(&["map"], 0)).unwrap();
    assert!(groups(&mut input) == naive(&[pairs]));
    assert!(input.statistics().memory_peak <= MIB);
}

#[test]
fn merge_reports_sources_and_positions() {
    let place = Place::new();
    let maps = [
        numbered(vec![b"a".to_vec(), b"c".to_vec()]),
        numbered(vec![b"b".to_vec(), b"c".to_vec()]),
    ];
    let segments = collect(&place, Shape::default(), &maps);
    let cursors = segments
        .iter()
        .map(|name| Segment::open(&place.path(name)).unwrap().cursor(0).unwrap());
    let mut merge = Merge::new(cursors.collect());
    let mut steps = Vec::new();
    while merge.advance().unwrap() {
        let ordinals: Vec<u64> = merge
            .positions()
            .iter()
            .map(|position| position.ordinal)
            .collect();
        steps.push((merge.key().to_vec(), merge.source(), ordinals));
    }
    let expected = [
        (b"a", 0, [0, 0]),
        (b"b", 1, [1, 0]),
        (b"c", 0, [1, 1]),
        (b"c", 1, [2, 1]),
    ];
    let expected: Vec<_> = expected
        .map(|(key, source, at)| (key.to_vec(), source, at.to_vec()))
        .into();
    assert_eq!(steps, expected);
}

#[test]
fn lost_or_foreign_input_is_named_by_index() {
    let place = Place::new();
    place.collect("one", Shape::default(), &numbered(vec![b"k".to_vec()]));
    place.collect(
        "fixed",
        Shape::default().fixed(1, 8),
        &numbered(vec![b"k".to_vec()]),
    );
    let open = |names: &[&str]| match ReduceInput::open(place.reduce_settings(names, 0)) {
        Ok(_) => panic!("opened {names:?}"),
        Err(error) => error,
    };
    assert_eq!(open(&["one", "one", "gone"]).lost_input(), Some(2));
    assert!(matches!(
        open(&["one", "fixed"]),
        ReduceError::Mixed { index: 1 }
    ));
    let beyond = ReduceInput::open(place.reduce_settings(&["one"], 7));
    assert!(matches!(beyond, Err(ReduceError::Input { index: 0, .. })));
}

#[test]
fn ten_million_equal_keys_form_one_group() {
    let place = Place::new();
    let count = 10_000_000u64;
    let mut collector: napreduce_data::Collector<()> = napreduce_data::Collector::plain(
        place.settings("map", Shape::default().fixed(1, 4).memory(8 * MIB)),
    )
    .unwrap();
    for number in 0..count as u32 {
        collector.emit_bytes(b"k", &number.to_be_bytes());
    }
    let (sealed, statistics) = collector.finish().unwrap();
    assert!(
        sealed.records == count && statistics.spills > 10,
        "{statistics:?}"
    );
    let mut input = ReduceInput::open(place.reduce_settings(&["map"], 0)).unwrap();
    assert!(input.next_group().unwrap());
    let mut expected = 0u32;
    while let Some((_, value)) = input.next_value().unwrap() {
        assert!(value == expected.to_be_bytes(), "value {expected}");
        expected += 1;
    }
    assert_eq!(u64::from(expected), count);
    assert!(!input.next_group().unwrap());
    assert!(input.statistics().memory_peak <= MIB);
}

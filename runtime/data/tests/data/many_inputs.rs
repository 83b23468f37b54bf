//! Reduces of thousands of inputs: neither descriptors nor mappings limit them.

use std::fs;

use crate::support::{MIB, Pair, Place, Shape, groups};
use napreduce_data::{READ_MAX, ReduceInput, ReduceSettings, Segment};

/// Collects `count` maps, each with the key `shared` and its number, and a key of its own.
fn maps(place: &Place, shape: Shape, count: usize) -> Vec<String> {
    let one = |number: usize| {
        let name = format!("map-{number:05}");
        let value = number.to_string().into_bytes();
        let pairs: [Pair; 2] = [
            (b"shared".to_vec(), value.clone()),
            (format!("own {number:05}").into_bytes(), value),
        ];
        place.collect(&name, shape, &pairs);
        name
    };
    (0..count).map(one).collect()
}

fn settings(place: &Place, names: &[String], memory: usize) -> ReduceSettings {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    ReduceSettings {
        memory,
        read_max: READ_MAX,
        ..place.reduce_settings(&names, 0)
    }
}

/// Counts the process's mappings of files in this place.
fn mapped(place: &Place) -> usize {
    let folder = place.path("");
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines()
        .filter(|line| line.contains(folder.to_str().unwrap()))
        .count()
}

fn check(input: &mut ReduceInput, count: usize) {
    let groups = groups(input);
    let number = |number: usize| number.to_string().into_bytes();
    assert_eq!(groups.len(), count + 1);
    for (at, (key, values)) in groups[..count].iter().enumerate() {
        assert_eq!(
            (key.as_slice(), values),
            (format!("own {at:05}").as_bytes(), &vec![number(at)])
        );
    }
    let all: Vec<Vec<u8>> = (0..count).map(number).collect();
    assert_eq!(
        groups[count],
        (b"shared".to_vec(), all),
        "equal keys come in the order of the maps"
    );
}

#[test]
fn small_inputs_are_merged_at_once_without_mappings() {
    for shape in [Shape::default(), Shape::default().lz4()] {
        let place = Place::new();
        let names = maps(&place, shape, 500);
        let mut input = ReduceInput::open(settings(&place, &names, 8 * MIB)).unwrap();
        assert_eq!(input.statistics().intermediate_merges, 0);
        assert_eq!(mapped(&place), 0);
        check(&mut input, 500);
    }
}

#[test]
fn inputs_above_the_limits_are_merged_in_passes() {
    let place = Place::new();
    let names = maps(&place, Shape::default(), 2_500);
    let mut input = ReduceInput::open(settings(&place, &names, MIB)).unwrap();
    assert!(input.statistics().intermediate_merges > 0);
    assert!(mapped(&place) <= 64, "{} mappings", mapped(&place));
    assert!(
        input.statistics().memory_peak <= MIB,
        "{}",
        input.statistics().memory_peak
    );
    check(&mut input, 2_500);
}

#[test]
fn small_partition_is_read_alone() {
    let place = Place::new();
    let pairs: Vec<Pair> = (0..3_000u32)
        .map(|n| (n.to_be_bytes().to_vec(), vec![7; 100]))
        .collect();
    place.collect(
        "out",
        Shape::default().memory(8 * MIB).partitions(5),
        &pairs,
    );
    let path = place.path("out");
    let whole = Segment::open(&path).unwrap();
    for partition in 0..5 {
        let read = Segment::open_partition(&path, partition, u64::MAX).unwrap();
        let mapped = Segment::open_partition(&path, partition, 1000).unwrap();
        assert_eq!(
            read.partition(partition).unwrap(),
            whole.partition(partition).unwrap()
        );
        for ordinal in [0, 1, 300, whole.partition(partition).unwrap().records] {
            let mut cursors =
                [&whole, &read, &mapped].map(|one| one.cursor_at(partition, ordinal).unwrap());
            loop {
                let [first, others @ ..] = &mut cursors;
                let more = first.advance().unwrap();
                for other in others {
                    assert_eq!(other.advance().unwrap(), more);
                    assert_eq!((other.key(), other.value()), (first.key(), first.value()));
                    assert_eq!(other.position(), first.position());
                }
                if !more {
                    break;
                }
            }
        }
        let other = (partition + 1) % 5;
        let refused = read.cursor(other).unwrap_err().to_string();
        assert!(
            refused.ends_with(&format!("has only partition {partition}, not {other}")),
            "{refused}"
        );
    }
    let refused = Segment::open_partition(&path, 5, u64::MAX)
        .unwrap_err()
        .to_string();
    assert!(
        refused.ends_with("has no partition 5; it has 5, from 0"),
        "{refused}"
    );
}

#[test]
fn small_damaged_input_is_named_and_long_label_is_read() {
    let place = Place::new();
    let names = maps(&place, Shape::default(), 3);
    let path = place.path(&names[1]);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 4;
    fs::write(&path, bytes).unwrap();
    let opened = ReduceInput::open(settings(&place, &names, MIB));
    let lost = match opened {
        Err(error) => error.lost_input(),
        Ok(mut input) => loop {
            match input.next_group() {
                Ok(true) => {}
                Ok(false) => break None,
                Err(error) => break error.lost_input(),
            }
        },
    };
    assert_eq!(lost, Some(1));

    let label = "l".repeat(4000);
    let settings = napreduce_data::CollectorSettings {
        label: label.clone(),
        ..place.settings("long", Shape::default())
    };
    let mut collector: napreduce_data::Collector<()> =
        napreduce_data::Collector::plain(settings).unwrap();
    collector.emit_bytes(b"key", b"value");
    collector.finish().unwrap();
    let segment = Segment::open_partition(&place.path("long"), 0, u64::MAX).unwrap();
    assert_eq!(segment.label(), label);
}

//! Segment files: seeking to any record, and the contents of the footer.

use std::fs;

use crate::support::{MIB, Pair, Place, Shape, bytes, numbered, random, sorted};
use napreduce_data::{
    BlockCompression, Collector, CollectorSettings, RecordEncoding, Segment, SegmentError,
    SegmentPosition,
};
use rand::Rng;

/// Records, some of them longer than a block.
fn records(seed: u64, count: usize) -> Vec<Pair> {
    let mut random = random(seed);
    (0..count)
        .map(|index| {
            let len = if index % 400 == 7 {
                140_000
            } else {
                random.random_range(0..700)
            };
            let len_key = random.random_range(0..30);
            let key = bytes(&mut random, len_key);
            (key, vec![index as u8; len])
        })
        .collect()
}

#[track_caller]
fn check_every_ordinal(shape: Shape, pairs: &[Pair], step: usize) {
    let place = Place::new();
    place.collect("out", shape, pairs);
    let segment = Segment::open(&place.path("out")).unwrap();
    for (partition, expected) in sorted(pairs, shape.partitions).iter().enumerate() {
        let partition = partition as u32;
        for ordinal in (0..=expected.len()).step_by(step).chain([expected.len()]) {
            let mut cursor = segment.cursor_at(partition, ordinal as u64).unwrap();
            let before = cursor.position();
            assert_eq!(before.ordinal, ordinal as u64);
            for (offset, pair) in expected[ordinal..].iter().take(3).enumerate() {
                assert!(cursor.advance().unwrap());
                assert_eq!(
                    (cursor.key(), cursor.value()),
                    (&pair.0[..], &pair.1[..]),
                    "record {ordinal}"
                );
                assert_eq!(cursor.position().ordinal, (ordinal + offset) as u64);
                assert!(
                    offset > 0 || cursor.position() == before,
                    "the position is that of the next record"
                );
            }
            let left = expected.len() - ordinal;
            assert!(left > 3 || !cursor.advance().unwrap());
        }
        let beyond = segment.cursor_at(partition, expected.len() as u64 + 1);
        assert!(matches!(beyond, Err(SegmentError::NoRecord { .. })));
    }
}

#[test]
fn cursor_starts_at_any_record() {
    check_every_ordinal(Shape::default().partitions(3), &records(1, 3_000), 1);
    check_every_ordinal(Shape::default().lz4().partitions(3), &records(1, 3_000), 7);
}

#[test]
fn cursor_starts_at_any_fixed_length_record() {
    let mut random = random(2);
    let pairs = numbered((0..30_000).map(|_| bytes(&mut random, 10)).collect());
    check_every_ordinal(
        Shape::default().fixed(10, 8).memory(8 * MIB).partitions(2),
        &pairs,
        11,
    );
}

#[test]
fn position_is_found_again_with_its_block() {
    let place = Place::new();
    place.collect("out", Shape::default(), &records(3, 2_000));
    let segment = Segment::open(&place.path("out")).unwrap();
    let mut cursor = segment.cursor(0).unwrap();
    assert_eq!(
        cursor.position(),
        SegmentPosition {
            block: 0,
            ordinal: 0
        }
    );
    let mut blocks = 0;
    while cursor.advance().unwrap() {
        let position = cursor.position();
        blocks = blocks.max(position.block + 1);
        let mut again = segment.cursor_at(0, position.ordinal).unwrap();
        assert!(again.advance().unwrap());
        assert_eq!(again.position(), position);
        assert_eq!(again.key(), cursor.key());
    }
    assert!(blocks > 5);
    assert_eq!(
        cursor.position(),
        SegmentPosition {
            block: blocks,
            ordinal: 2_000
        }
    );
}

#[test]
fn open_segment_reports_its_contents() {
    let place = Place::new();
    let pairs = records(4, 1_000);
    place.collect("out", Shape::default().partitions(4), &pairs);
    let segment = Segment::open(&place.path("out")).unwrap();
    assert_eq!(segment.label(), "attempt of out");
    assert_eq!(segment.encoding(), RecordEncoding::Variable);
    assert_eq!(segment.compression(), BlockCompression::None);
    assert_eq!((segment.partitions(), segment.records()), (4, 1_000));
    assert_eq!(
        segment.file_len(),
        fs::metadata(place.path("out")).unwrap().len()
    );
    for (partition, expected) in sorted(&pairs, 4).iter().enumerate() {
        assert_eq!(
            segment.partition(partition as u32).unwrap().records,
            expected.len() as u64
        );
    }
    assert!(matches!(
        segment.partition(4),
        Err(SegmentError::NoPartition {
            partition: 4,
            partitions: 4,
            ..
        })
    ));
    assert!(matches!(
        segment.cursor(9),
        Err(SegmentError::NoPartition { .. })
    ));
}

#[test]
fn incompressible_blocks_are_stored() {
    let place = Place::new();
    let mut random = random(5);
    let text = numbered(vec![b"the same words again and again".to_vec(); 20_000]);
    let noise: Vec<Pair> = (0..5_000)
        .map(|_| (bytes(&mut random, 20), bytes(&mut random, 200)))
        .collect();
    for (name, pairs, compressible) in [("text", &text, true), ("noise", &noise, false)] {
        place.collect(name, Shape::default().memory(32 * MIB).lz4(), pairs);
        let entry = Segment::open(&place.path(name))
            .unwrap()
            .partition(0)
            .unwrap();
        assert_eq!(
            entry.stored_len * 3 < entry.raw_len,
            compressible,
            "{name}: {entry:?}"
        );
        assert!(
            compressible || entry.stored_len == entry.raw_len,
            "{name}: {entry:?}"
        );
    }
}

#[test]
fn durable_sealing_gives_the_same_file() {
    let place = Place::new();
    let pairs = records(6, 500);
    for (name, durable, memory) in [
        ("plain", false, MIB),
        ("durable", true, MIB),
        ("one run", true, 64 * MIB),
    ] {
        let settings = CollectorSettings {
            durable,
            ..place.settings(name, Shape::default().memory(memory))
        };
        let settings = CollectorSettings {
            label: "same".into(),
            ..settings
        };
        let mut collector: Collector<()> = Collector::plain(settings).unwrap();
        for (key, value) in &pairs {
            collector.emit_bytes(key, value);
        }
        let (sealed, _) = collector.finish().unwrap();
        assert_eq!(sealed.records, 500);
        assert_eq!(sealed.file_len, fs::metadata(&sealed.path).unwrap().len());
    }
    let read = |name: &str| fs::read(place.path(name)).unwrap();
    assert!(read("plain") == read("durable") && read("plain") == read("one run"));
}

#[test]
fn missing_segment_names_path_and_remedy() {
    let place = Place::new();
    let error = Segment::open(&place.path("gone")).unwrap_err().to_string();
    assert!(
        error.contains("gone") && error.contains("rerun the map task"),
        "{error}"
    );
}

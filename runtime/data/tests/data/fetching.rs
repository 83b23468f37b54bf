//! Extents and assemblies: one partition of a segment, sent as bytes and blocks, becomes a file that reads
//! the same.

use std::fs::{self, File};
use std::path::Path;

use crate::support::{Pair, Place, Shape, bytes, groups, random, read, sorted};
use napreduce_data::{
    AssemblyError, PartitionExtent, ReduceInput, Segment, SegmentAssembly, SegmentError,
    SegmentIndex,
};
use proptest::prelude::*;

const PARTITIONS: u32 = 4;

fn shapes() -> [Shape; 3] {
    [
        Shape::default(),
        Shape::default().lz4(),
        Shape::default().fixed(10, 90),
    ]
    .map(|shape| shape.partitions(PARTITIONS))
}

/// Several blocks per partition, some of them jumbo blocks.
fn pairs(shape: Shape) -> Vec<Pair> {
    let mut random = random(31);
    if shape.encoding != Shape::default().encoding {
        return (0..20_000)
            .map(|_| (bytes(&mut random, 10), bytes(&mut random, 90)))
            .collect();
    }
    (0..2_000u32)
        .map(|number| {
            (
                number.to_string().into_bytes(),
                vec![number as u8; if number % 400 == 7 { 140_000 } else { 700 }],
            )
        })
        .collect()
}

fn index(path: &Path) -> SegmentIndex {
    SegmentIndex::read(&File::open(path).unwrap(), path).unwrap()
}

/// Returns the file's bytes that belong to the extent.
fn blocks(path: &Path, extent: &PartitionExtent) -> Vec<u8> {
    let range = extent.range();
    fs::read(path).unwrap()[range.start as usize..range.end as usize].to_vec()
}

fn round_trip(extent: &PartitionExtent) -> PartitionExtent {
    let arrived = PartitionExtent::decode(&extent.encode()).unwrap();
    assert_eq!(&arrived, extent);
    arrived
}

/// Assembles one partition from a block on, in pieces of `piece` bytes.
fn fetch(
    place: &Place,
    to: &str,
    partition: u32,
    from_block: u64,
    piece: usize,
) -> PartitionExtent {
    let sealed = place.path("sealed");
    let extent = round_trip(&index(&sealed).extent(partition, from_block).unwrap());
    let mut assembly = SegmentAssembly::create(&place.path(to), extent.clone()).unwrap();
    for bytes in blocks(&sealed, &extent).chunks(piece) {
        assembly.accept(bytes).unwrap();
    }
    assert_eq!(
        (assembly.missing(), assembly.next_block()),
        (0, extent.end_block())
    );
    let done = assembly.seal().unwrap();
    assert_eq!(
        (done.records, done.raw_len),
        (extent.records(), extent.raw_len())
    );
    assert_eq!(done.file_len, fs::metadata(&done.path).unwrap().len());
    extent
}

fn partition_of(path: &Path, partition: u32) -> Vec<Pair> {
    let mut cursor = Segment::open(path).unwrap().cursor(partition).unwrap();
    let mut pairs = Vec::new();
    while cursor.advance().unwrap() {
        pairs.push((cursor.key().to_vec(), cursor.value().to_vec()));
    }
    assert_eq!(cursor.records(), pairs.len() as u64);
    pairs
}

#[test]
fn fetched_partition_equals_the_sealed_one() {
    for shape in shapes() {
        let place = Place::new();
        let pairs = pairs(shape);
        place.collect("sealed", shape, &pairs);
        let expected = sorted(&pairs, PARTITIONS);
        for partition in 0..PARTITIONS {
            for piece in [1_009, 131_072, usize::MAX >> 1] {
                fetch(&place, "fetched", partition, 0, piece);
                assert!(
                    partition_of(&place.path("fetched"), partition) == expected[partition as usize]
                );
            }
        }
    }
}

#[test]
fn reduce_reads_whole_and_fetched_segments_alike() {
    let place = Place::new();
    let shape = Shape::default().lz4().partitions(PARTITIONS);
    place.collect("sealed", shape, &pairs(shape));
    fetch(&place, "fetched", 2, 0, 10_000);
    let mut whole = ReduceInput::open(place.reduce_settings(&["sealed", "sealed"], 2)).unwrap();
    let mut mixed = ReduceInput::open(place.reduce_settings(&["fetched", "sealed"], 2)).unwrap();
    assert!(groups(&mut whole) == groups(&mut mixed));
    assert_eq!(whole.statistics(), mixed.statistics());
    let error = ReduceInput::open(place.reduce_settings(&["fetched"], 1))
        .err()
        .unwrap();
    assert!(
        error.to_string().contains("has only partition 2, not 1"),
        "{error}"
    );
}

#[test]
fn partition_can_be_fetched_from_any_block() {
    for shape in shapes() {
        let place = Place::new();
        let pairs = pairs(shape);
        place.collect("sealed", shape, &pairs);
        let expected = &sorted(&pairs, PARTITIONS)[1];
        let count = index(&place.path("sealed"))
            .extent(1, 0)
            .unwrap()
            .end_block();
        assert!(count > 2);
        for from in 0..=count {
            let extent = fetch(&place, "fetched", 1, from, 50_000);
            assert_eq!((extent.first_block(), extent.end_block()), (from, count));
            let skipped = expected.len() - extent.records() as usize;
            assert_eq!(skipped == 0, from == 0);
            assert!(partition_of(&place.path("fetched"), 1) == expected[skipped..]);
            // Ordinals stay those of the whole partition.
            let segment = Segment::open(&place.path("fetched")).unwrap();
            for ordinal in (skipped..expected.len()).step_by(61) {
                let mut cursor = segment.cursor_at(1, ordinal as u64).unwrap();
                assert!(cursor.advance().unwrap());
                assert!(
                    cursor.key() == expected[ordinal].0
                        && cursor.position().ordinal == ordinal as u64
                );
            }
            let before = segment.cursor_at(1, (skipped as u64).wrapping_sub(1));
            assert!(matches!(before, Err(SegmentError::NoRecord { .. })));
        }
        let beyond = index(&place.path("sealed")).extent(1, count + 1);
        assert!(matches!(beyond, Err(SegmentError::NoBlock { .. })));
    }
}

#[test]
fn missing_partitions_are_rejected() {
    let place = Place::new();
    place.collect("sealed", shapes()[0], &pairs(shapes()[0]));
    for partition in [PARTITIONS, u32::MAX] {
        let refused = index(&place.path("sealed")).extent(partition, 0);
        assert!(matches!(refused, Err(SegmentError::NoPartition { .. })));
    }
    fetch(&place, "fetched", 0, 0, 9_999);
    let path = place.path("fetched");
    let error = SegmentIndex::read(&File::open(&path).unwrap(), &path).unwrap_err();
    assert!(error.to_string().contains("one partition only"), "{error}");
}

#[test]
fn broken_fetch_continues_with_the_next_block() {
    let place = Place::new();
    let shape = shapes()[1];
    place.collect("sealed", shape, &pairs(shape));
    let sealed = place.path("sealed");
    let whole = index(&sealed).extent(3, 0).unwrap();
    let all = blocks(&sealed, &whole);
    for cut in (0..all.len()).step_by(all.len() / 29) {
        let mut assembly =
            SegmentAssembly::create(&place.path("fetched"), round_trip(&whole)).unwrap();
        assembly.accept(&all[..cut]).unwrap();
        assembly.drop_open_block();
        let rest = round_trip(&index(&sealed).extent(3, assembly.next_block()).unwrap());
        assert!(assembly.extent().continues_as(&rest));
        let bytes = blocks(&sealed, &rest);
        assert_eq!(assembly.missing(), bytes.len() as u64);
        assert!(
            all.len() - bytes.len() <= cut,
            "skipped bytes that did not arrive"
        );
        assembly.accept(&bytes).unwrap();
        assembly.seal().unwrap();
        assert!(partition_of(&place.path("fetched"), 3) == partition_of(&sealed, 3));
    }
}

#[test]
fn extent_continues_only_as_the_same_partition() {
    let place = Place::new();
    let shape = shapes()[0];
    place.collect("sealed", shape, &pairs(shape));
    place.collect("other", shape, &pairs(shape)[1..]);
    let sealed = index(&place.path("sealed"));
    let other = index(&place.path("other"));
    let extent = sealed.extent(0, 1).unwrap();
    assert!(extent.continues_as(&sealed.extent(0, 2).unwrap()));
    assert!(!extent.continues_as(&sealed.extent(0, 0).unwrap()));
    assert!(!extent.continues_as(&sealed.extent(1, 1).unwrap()));
    assert!(!extent.continues_as(&other.extent(0, 1).unwrap()));
}

#[test]
fn incomplete_assembly_is_not_sealed() {
    let place = Place::new();
    place.collect("sealed", shapes()[0], &pairs(shapes()[0]));
    let extent = index(&place.path("sealed")).extent(0, 0).unwrap();
    let all = blocks(&place.path("sealed"), &extent);
    let mut assembly = SegmentAssembly::create(&place.path("fetched"), extent.clone()).unwrap();
    assembly.accept(&all[1..]).unwrap_err();
    assembly.accept(&all[..all.len() - 1]).unwrap();
    assert!(matches!(
        assembly.seal(),
        Err(AssemblyError::Incomplete { bytes: 1, .. })
    ));
    let mut assembly = SegmentAssembly::create(&place.path("fetched"), extent).unwrap();
    assembly.accept(&all).unwrap();
    assert!(matches!(
        assembly.accept(&[0]),
        Err(AssemblyError::Surplus { bytes: 1, .. })
    ));
    drop(assembly);
    assert_eq!(place.names(), ["sealed"]);
}

#[test]
fn unwritable_assembly_names_its_file() {
    let place = Place::new();
    place.collect("sealed", shapes()[0], &pairs(shapes()[0]));
    let extent = index(&place.path("sealed")).extent(0, 0).unwrap();
    let error = SegmentAssembly::create(&place.path("nowhere/fetched"), extent).unwrap_err();
    assert!(error.to_string().contains("nowhere/fetched"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A flipped bit is detected at the end of its block; fetching the block again completes the file.
    #[test]
    fn flipped_bit_in_a_block_is_detected(
        which in 0usize..3, at in any::<prop::sample::Index>(), bit in 0u8..8, piece in 1_000usize..300_000,
    ) {
        let place = Place::new();
        let shape = shapes()[which];
        place.collect("sealed", shape, &pairs(shape));
        let extent = index(&place.path("sealed")).extent(1, 0).unwrap();
        let sound = blocks(&place.path("sealed"), &extent);
        let mut flipped = sound.clone();
        flipped[at.index(sound.len())] ^= 1 << bit;
        let mut assembly = SegmentAssembly::create(&place.path("fetched"), extent).unwrap();
        let failed = flipped.chunks(piece).find_map(|bytes| assembly.accept(bytes).err());
        let Some(AssemblyError::Checksum { block, .. }) = failed else { panic!("not detected: {failed:?}") };
        prop_assert_eq!(block, assembly.next_block());
        let rest = sound.len() - assembly.missing() as usize;
        assembly.accept(&sound[rest..]).unwrap();
        assembly.seal().unwrap();
        prop_assert!(partition_of(&place.path("fetched"), 1) == partition_of(&place.path("sealed"), 1));
    }

    #[test]
    fn changed_or_truncated_extent_is_rejected(
        which in 0usize..3, at in any::<prop::sample::Index>(), bit in 0u8..8, from in 0u64..3,
    ) {
        let place = Place::new();
        let shape = shapes()[which];
        place.collect("sealed", shape, &pairs(shape));
        let extent = index(&place.path("sealed")).extent(2, from).unwrap();
        let sound = extent.encode();
        prop_assert!(PartitionExtent::decode(&sound[..at.index(sound.len())]).is_err());
        let mut flipped = sound.clone();
        flipped[at.index(sound.len())] ^= 1 << bit;
        prop_assert!(PartitionExtent::decode(&flipped).is_err());
        prop_assert!(PartitionExtent::decode(&[sound.as_slice(), &[0]].concat()).is_err());
    }

    /// Corruption with a matching checksum ends in an error, or in a file that opens or is found to be
    /// damaged.
    #[test]
    fn forged_extent_is_harmless(
        which in 0usize..3, at in any::<prop::sample::Index>(), byte in 1u8.., from in 0u64..3,
    ) {
        let place = Place::new();
        let shape = shapes()[which];
        place.collect("sealed", shape, &pairs(shape));
        let extent = index(&place.path("sealed")).extent(0, from).unwrap();
        let mut forged = extent.encode();
                forged.truncate(forged.len() - 4);
                let at = at.index(forged.len());
                forged[at] ^= byte;
                forged.extend_from_slice(&crc32c::crc32c(&forged).to_le_bytes());
                if let Ok(decoded) = PartitionExtent::decode(&forged) {
            prop_assert_eq!(decoded.range().end - decoded.range().start, extent.range().end - extent.range().start);
                        let mut assembly = SegmentAssembly::create(&place.path("fetched"), decoded).unwrap();
            let accepted = assembly.accept(&blocks(&place.path("sealed"), &extent));
            if accepted.is_ok() {
                assembly.seal().unwrap();
                // Reading ends, with or without an error.
                let partition = Segment::open(&place.path("fetched")).unwrap();
                for number in 0..PARTITIONS {
                    if let Ok(mut cursor) = partition.cursor(number) {
                        while let Ok(true) = cursor.advance() {}
                    }
                }
            }
        }
    }

    #[test]
    fn garbage_is_not_an_extent(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let crc = crc32c::crc32c(&bytes).to_le_bytes();
        prop_assert!(PartitionExtent::decode(&bytes).is_err());
        prop_assert!(PartitionExtent::decode(&[bytes.as_slice(), &crc].concat()).is_err());
    }
}

#[test]
fn damaged_fetched_file_is_detected() {
    let place = Place::new();
    let shape = shapes()[0];
    place.collect("sealed", shape, &pairs(shape)[..60]);
    fetch(&place, "fetched", 1, 0, 9_999);
    let path = place.path("fetched");
    let sound = fs::read(&path).unwrap();
    for at in (0..sound.len()).filter(|at| *at < 70 || at + 200 > sound.len() || at % 997 == 0) {
        let mut flipped = sound.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&path, flipped).unwrap();
        let damaged = Segment::open(&path).and_then(|segment| {
            let mut cursor = segment.cursor(1)?;
            while cursor.advance()? {}
            Ok(())
        });
        assert!(
            matches!(damaged, Err(SegmentError::Damaged { .. })),
            "byte {at}: {damaged:?}"
        );
    }
    assert!(read(&place.path("sealed")).is_ok());
}

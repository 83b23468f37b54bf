//! Every flipped bit and every truncation of a segment file is detected, and causes nothing worse than an
//! error.

use std::fs;
use std::path::Path;

use crate::support::{MIB, Pair, Place, Shape, bytes, random, read};
use napreduce_data::{ReduceError, ReduceInput, Segment, SegmentError};
use proptest::prelude::*;

/// Sizes of a trailer, a partition entry and a block entry.
const TRAILER: usize = 56;
const ENTRY: usize = 56;
const BLOCK: usize = 56;
const PARTITIONS: usize = 3;

/// A sealed file with an empty partition, ordinary and jumbo blocks.
fn sealed(place: &Place, shape: Shape) -> Vec<u8> {
    let mut random = random(99);
    let mut pairs: Vec<Pair> = (0..400u32)
        .map(|number| (number.to_string().into_bytes(), vec![7; 900]))
        .collect();
    pairs.push((b"jumbo".to_vec(), bytes(&mut random, 150_000)));
    if shape.encoding != Shape::default().encoding {
        pairs = (0..2_000)
            .map(|_| (bytes(&mut random, 10), bytes(&mut random, 90)))
            .collect();
    }
    place.collect(
        "sealed",
        shape.memory(8 * MIB).partitions(PARTITIONS as u32),
        &pairs,
    );
    fs::read(place.path("sealed")).unwrap()
}

fn shapes() -> [Shape; 3] {
    [
        Shape::default(),
        Shape::default().lz4(),
        Shape::default().fixed(10, 90),
    ]
}

/// Replaces a file. Overwriting it would make some file systems sync.
fn write(path: &Path, bytes: &[u8]) {
    if path.exists() {
        fs::remove_file(path).unwrap();
    }
    fs::write(path, bytes).unwrap();
}

/// Checks that every way to read the file fails with `Damaged`, and names the file.
#[track_caller]
fn check_detected(place: &Place, path: &Path, what: &str) {
    match read(path) {
        Ok(_) => panic!("{what}: not detected"),
        Err(SegmentError::Damaged { path: named, .. }) => assert_eq!(named, path),
        Err(other) => panic!("{what}: {other}"),
    }
    // Seek to records from the last one backwards: damage to the index is detected, or not reached.
    if let Ok(segment) = Segment::open(path) {
        for partition in 0..segment.partitions() {
            let Ok(entry) = segment.partition(partition) else {
                continue;
            };
            let records = entry.records;
            for ordinal in (0..records).rev().step_by(97) {
                if let Ok(mut cursor) = segment.cursor_at(partition, ordinal) {
                    while let Ok(true) = cursor.advance() {}
                }
            }
        }
    }
    let mut lost = 0;
    for partition in 0..3 {
        let name = path.file_name().unwrap().to_str().unwrap();
        lost += usize::from(reduce(place, name, partition) == Err(Some(1)));
    }
    assert!(
        lost > 0,
        "{what}: no reduce attributed the damage to the input"
    );
}

/// Reduces an intact and a damaged segment; the error is the index of the lost input.
fn reduce(place: &Place, damaged: &str, partition: u32) -> Result<(), Option<usize>> {
    let blame = |error: ReduceError| error.lost_input();
    let mut input =
        ReduceInput::open(place.reduce_settings(&["sealed", damaged], partition)).map_err(blame)?;
    while input.next_group().map_err(blame)? {
        while input.next_value().map_err(blame)?.is_some() {}
    }
    Ok(())
}

#[test]
fn flipped_byte_outside_blocks_is_detected() {
    for shape in shapes() {
        let place = Place::new();
        let whole = sealed(&place, shape);
        let blocks = 60..whole.len() - 500;
        let path = place.path("damaged");
        for at in (0..whole.len()).filter(|at| !blocks.contains(at) || at % 29_989 == 0) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            write(&path, &bytes);
            check_detected(
                &place,
                &path,
                &format!("bit {} of byte {at} of {}", at % 8, whole.len()),
            );
        }
    }
}

#[test]
fn truncation_near_an_end_is_detected() {
    let place = Place::new();
    let whole = sealed(&place, Shape::default());
    let path = place.path("damaged");
    for len in (0..whole.len()).filter(|len| *len < 64 || *len + 400 > whole.len()) {
        write(&path, &whole[..len]);
        check_detected(&place, &path, &format!("cut at {len} of {}", whole.len()));
    }
}

#[test]
fn appended_bytes_are_detected() {
    let place = Place::new();
    let mut bytes = sealed(&place, Shape::default());
    let trailer = bytes[bytes.len() - TRAILER..].to_vec();
    let path = place.path("damaged");
    for tail in [&[0u8][..], &trailer] {
        bytes.extend_from_slice(tail);
        write(&path, &bytes);
        check_detected(&place, &path, "appended bytes");
    }
}

#[test]
fn damage_error_names_file_attempt_place_and_remedy() {
    let place = Place::new();
    let mut bytes = sealed(&place, Shape::default());
    bytes[5_000] ^= 0x10;
    let path = place.path("damaged");
    write(&path, &bytes);
    let error = read(&path).unwrap_err().to_string();
    for part in [
        "damaged",
        "attempt of sealed",
        "block 0",
        "checksum",
        "rerun the map task",
    ] {
        assert!(error.contains(part), "{part:?} is missing in {error:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn any_flipped_bit_is_detected(which in 0usize..3, at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let place = Place::new();
        let mut bytes = sealed(&place, shapes()[which]);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        write(&place.path("damaged"), &bytes);
        check_detected(&place, &place.path("damaged"), &format!("bit {bit} of byte {at}"));
    }

    #[test]
    fn any_cut_is_detected(which in 0usize..3, at in any::<prop::sample::Index>()) {
        let place = Place::new();
        let bytes = sealed(&place, shapes()[which]);
        let len = at.index(bytes.len());
        write(&place.path("damaged"), &bytes[..len]);
        check_detected(&place, &place.path("damaged"), &format!("cut at {len}"));
    }

    /// Corruption with matching checksums, as only an attacker produces it, must neither panic nor read
    /// beyond the file.
    #[test]
    fn forged_footer_is_harmless(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        blocks_too in any::<bool>(),
    ) {
        let place = Place::new();
        let mut bytes = sealed(&place, Shape::default());
        let end = bytes.len() - TRAILER;
        let start = field(&bytes, end);
        if blocks_too {
            // Change a block, and its checksum in the index.
            let entry = start + PARTITIONS * ENTRY;
            let offset = field(&bytes, entry);
            let len = field(&bytes, entry + 8);
            bytes[offset + at.index(len)] ^= byte;
            let crc = crc32c::crc32c(&bytes[offset..offset + len]);
            bytes[entry + 48..entry + 52].copy_from_slice(&crc.to_le_bytes());
        } else {
            let at = start + at.index(end - start);
            bytes[at] ^= byte;
        }
        fix_checksums(&mut bytes, start, end);
        let path = place.path("damaged");
        write(&path, &bytes);
        for partition in 0..PARTITIONS as u32 {
            for bytes_max in [0, u64::MAX] {
                let Ok(segment) = Segment::open_partition(&path, partition, bytes_max) else { continue };
                let Ok(mut cursor) = segment.cursor(partition) else { continue };
                while let Ok(true) = cursor.advance() {
                    prop_assert!(cursor.key().len() + cursor.value().len() <= bytes.len());
                }
            }
        }
    }
}

fn field(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

/// Recomputes all checksums of the footer, from the block index to the trailer.
fn fix_checksums(bytes: &mut [u8], start: usize, end: usize) {
    let index = start + PARTITIONS * ENTRY;
    for number in 0..PARTITIONS {
        let entry = start + number * ENTRY;
        let first = field(bytes, entry + 32);
        let count = field(bytes, entry + 40);
        let from = first.saturating_mul(BLOCK).saturating_add(index).min(end);
        let to = count.saturating_mul(BLOCK).saturating_add(from).min(end);
        let index_crc = crc32c::crc32c(&bytes[from..to]);
        bytes[entry + 48..entry + 52].copy_from_slice(&index_crc.to_le_bytes());
        let crc =
            crc32c::crc32c(&[&(number as u32).to_le_bytes(), &bytes[entry..entry + 52]].concat());
        bytes[entry + 52..entry + 56].copy_from_slice(&crc.to_le_bytes());
    }
    let covered = |entry: &[u8]| entry[..ENTRY - 4].to_vec();
    let crc = crc32c::crc32c(
        &bytes[start..index]
            .chunks(ENTRY)
            .flat_map(covered)
            .collect::<Vec<u8>>(),
    );
    bytes[end + 40..end + 44].copy_from_slice(&crc.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[end..end + 44]);
    bytes[end + 44..end + 48].copy_from_slice(&crc.to_le_bytes());
}

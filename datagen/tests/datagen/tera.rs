//! Records of the sort benchmark: published checksums, skip-ahead, and independence of files, slices and
//! threads.
//!
//! Owns what `tera::generate` writes. Directory rules are tested in `output.rs`.

use datagen::output::OutputSettings;
use datagen::tera::{self, Checksum, Format, RECORD_BYTES, TeraError, TeraRandom, TeraSettings};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

/// Generates into `directory` and returns the concatenated files.
fn generate(
    directory: &Path,
    records: u64,
    start: u64,
    format: Format,
    files: u32,
    threads: usize,
) -> Vec<u8> {
    let output = OutputSettings { files, threads, ..OutputSettings::new(directory) };
    let written = tera::generate(&TeraSettings { records, start, format, output }).unwrap();
    let bytes: Vec<u8> = written.files.iter().flat_map(|file| fs::read(file).unwrap()).collect();
    assert_eq!(written.bytes, bytes.len() as u64);
    assert_eq!(written.files.len(), files as usize);
    bytes
}

fn check_checksum(format: Format, records: u64, expected: &str) {
    let directory = tempfile::tempdir().unwrap();
    let bytes = generate(&directory.path().join("in"), records, 0, format, 3, 2);
    let mut checksum = Checksum::default();
    for record in bytes.chunks_exact(RECORD_BYTES) {
        assert!(format.recognises(record.try_into().unwrap()));
        checksum.add_record(record);
    }
    assert_eq!(checksum.to_string(), expected, "{format}, {records} records");
}

#[test]
fn published_checksums_of_a_thousand_records() {
    check_checksum(Format::Hadoop, 1000, "1f9ffe645ec");
    check_checksum(Format::Gensort, 1000, "1ea6370b955");
    check_checksum(Format::Ascii, 1000, "1f5dfb3631a");
}

#[test]
fn published_checksum_of_a_million_records() {
    check_checksum(Format::Hadoop, 1_000_000, "7a27e2d0d55de");
}

#[test]
fn the_first_records_read_as_published() {
    let mut record = [0; RECORD_BYTES];
    tera::write_record(Format::Hadoop, 0, &mut record);
    assert!(record.starts_with(b"JimGrayRIP\x00\x1100000000000000000000000000000000\x88\x99\xAA\xBB"));
    tera::write_record(Format::Gensort, 0, &mut record);
    assert!(record.starts_with(b"JimGrayRIP"));
    tera::write_record(Format::Ascii, 0xABCD, &mut record);
    assert_eq!(&record[10..46], b"  0000000000000000000000000000ABCD  ");
    assert!(record.ends_with(b"\r\n") && record[..98].iter().all(|byte| (b' '..=b'~').contains(byte)));
}

#[test]
fn the_number_of_files_changes_nothing_in_the_concatenation() {
    let directory = tempfile::tempdir().unwrap();
    // More than two units of 5,120 records, and a number that no number of files divides.
    for format in Format::ALL {
        let whole = generate(&directory.path().join(format!("{format}-whole")), 12_347, 0, format, 1, 1);
        for files in [2, 5, 7, 100] {
            let parts =
                generate(&directory.path().join(format!("{format}-{files}")), 12_347, 0, format, files, 3);
            assert!(whole == parts, "{format} in {files} files");
        }
    }
}

#[test]
fn parts_end_at_the_rows_teragen_ends_them_at() {
    let directory = tempfile::tempdir().unwrap();
    let output = OutputSettings { files: 4, ..OutputSettings::new(directory.path()) };
    let settings = TeraSettings { records: 10, start: 0, format: Format::Hadoop, output };
    let written = tera::generate(&settings).unwrap();
    let rows: Vec<u64> =
        written.files.iter().map(|file| fs::metadata(file).unwrap().len() / RECORD_BYTES as u64).collect();
    // ceil(10 * i / 4) is 3, 5, 8, 10.
    assert_eq!(rows, [3, 2, 3, 2]);
}

#[test]
fn slices_by_start_are_slices_of_the_whole() {
    let directory = tempfile::tempdir().unwrap();
    for format in Format::ALL {
        let whole = generate(&directory.path().join(format!("{format}-whole")), 6000, 100, format, 1, 2);
        let mut slices = generate(&directory.path().join(format!("{format}-a")), 1234, 100, format, 2, 1);
        slices.extend(generate(&directory.path().join(format!("{format}-b")), 4766, 1334, format, 1, 1));
        assert!(whole == slices, "{format}");
    }
}

#[test]
fn no_records_are_empty_files() {
    let directory = tempfile::tempdir().unwrap();
    assert!(generate(&directory.path().join("in"), 0, 5, Format::Ascii, 3, 2).is_empty());
}

#[test]
fn numbers_past_64_bits_of_bytes_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let output = OutputSettings::new(directory.path());
    let settings = TeraSettings { records: u64::MAX, start: 1, format: Format::Ascii, output };
    assert!(matches!(tera::generate(&settings), Err(TeraError::TooManyRecords { start: 1, .. })));
}

proptest! {
    #[test]
    fn jumping_is_stepping(from in 0..u64::MAX / 2, steps in 0u64..3000) {
        let mut jumped = TeraRandom::new();
        jumped.jump(from + steps);
        let mut stepped = TeraRandom::new();
        stepped.jump(from);
        for _ in 0..steps {
            stepped.advance();
        }
        prop_assert_eq!(jumped, stepped);
    }

    #[test]
    fn records_do_not_depend_on_where_writing_began(
        first in 0..u64::MAX / 2,
        count in 1usize..100,
        at in 0usize..100,
        format in prop::sample::select(&Format::ALL[..]),
    ) {
        let at = at % count;
        let mut together = vec![0; count * RECORD_BYTES];
        tera::write_records(format, first, &mut together);
        let mut alone = [0; RECORD_BYTES];
        tera::write_record(format, first + at as u64, &mut alone);
        prop_assert_eq!(&together[at * RECORD_BYTES..][..RECORD_BYTES], &alone);
    }

    /// The ASCII key against the definition: base-95 digits of the two halves by plain division.
    #[test]
    fn ascii_keys_are_the_base_95_digits(number in any::<u32>()) {
        let mut random = TeraRandom::new();
        random.jump(u64::from(number) + 1);
        let (mut high, mut low) = ((random.value() >> 64) as u64, random.value() as u64);
        let mut expected = Vec::new();
        for _ in 0..8 {
            expected.push(b' ' + (high % 95) as u8);
            high /= 95;
        }
        for _ in 0..2 {
            expected.push(b' ' + (low % 95) as u8);
            low /= 95;
        }
        let mut record = [0; RECORD_BYTES];
        tera::write_record(Format::Ascii, u64::from(number), &mut record);
        prop_assert_eq!(&record[..10], &expected[..]);
    }
}

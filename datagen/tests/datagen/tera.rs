//! Sort benchmark records: published checksums, skip-ahead, and independence of files, slices and threads.

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
    let output = OutputSettings {
        files,
        threads,
        ..OutputSettings::new(directory)
    };
    let written = tera::generate(&TeraSettings {
        records,
        start,
        format,
        output,
    })
    .unwrap();
    let bytes: Vec<u8> = written
        .files
        .iter()
        .flat_map(|file| fs::read(file).unwrap())
        .collect();
    assert_eq!(written.bytes, bytes.len() as u64);
    assert_eq!(written.files.len(), files as usize);
    bytes
}

fn check_checksum(format: Format, records: u64, expected: &str) {
    let directory = tempfile::tempdir().unwrap();
    let bytes = generate(&directory.path().join("in"), records, 0, format, 3, 2);
    let mut checksum = Checksum::default();
    for record in bytes.chunks_exact(RECORD_BYTES) {
        assert!(format.matches(record.try_into().unwrap()));
        checksum.add_record(record);
    }
    assert_eq!(
        checksum.to_string(),
        expected,
        "{format}, {records} records"
    );
}

#[test]
fn tera_thousand_records_have_published_checksums() {
    check_checksum(Format::Hadoop, 1000, "1f9ffe645ec");
    check_checksum(Format::Gensort, 1000, "1ea6370b955");
    check_checksum(Format::Ascii, 1000, "1f5dfb3631a");
}

#[test]
fn tera_million_records_have_published_checksum() {
    check_checksum(Format::Hadoop, 1_000_000, "7a27e2d0d55de");
}

#[test]
fn write_record_first_records_match_published_bytes() {
    let mut record = [0; RECORD_BYTES];
    tera::write_record(Format::Hadoop, 0, &mut record);
    assert!(
        record.starts_with(b"JimGrayRIP\x00\x1100000000000000000000000000000000\x88\x99\xAA\xBB")
    );
    tera::write_record(Format::Gensort, 0, &mut record);
    assert!(record.starts_with(b"JimGrayRIP"));
    tera::write_record(Format::Ascii, 0xABCD, &mut record);
    assert_eq!(&record[10..46], b"  0000000000000000000000000000ABCD  ");
    assert!(
        record.ends_with(b"\r\n") && record[..98].iter().all(|byte| (b' '..=b'~').contains(byte))
    );
}

#[test]
fn tera_concatenation_is_independent_of_files() {
    let directory = tempfile::tempdir().unwrap();
    // More than two units of 5,120 records, and a number that no file count divides.
    for format in Format::ALL {
        let whole = generate(
            &directory.path().join(format!("{format}-whole")),
            12_347,
            0,
            format,
            1,
            1,
        );
        for files in [2, 5, 7, 100] {
            let parts = generate(
                &directory.path().join(format!("{format}-{files}")),
                12_347,
                0,
                format,
                files,
                3,
            );
            assert!(whole == parts, "{format} in {files} files");
        }
    }
}

#[test]
fn tera_parts_end_at_the_same_rows_as_teragen() {
    let directory = tempfile::tempdir().unwrap();
    let output = OutputSettings {
        files: 4,
        ..OutputSettings::new(directory.path())
    };
    let settings = TeraSettings {
        records: 10,
        start: 0,
        format: Format::Hadoop,
        output,
    };
    let written = tera::generate(&settings).unwrap();
    let rows: Vec<u64> = written
        .files
        .iter()
        .map(|file| fs::metadata(file).unwrap().len() / RECORD_BYTES as u64)
        .collect();
    // ceil(10 * i / 4) is 3, 5, 8, 10.
    assert_eq!(rows, [3, 2, 3, 2]);
}

#[test]
fn tera_slices_concatenate_to_the_whole() {
    let directory = tempfile::tempdir().unwrap();
    for format in Format::ALL {
        let whole = generate(
            &directory.path().join(format!("{format}-whole")),
            6000,
            100,
            format,
            1,
            2,
        );
        let mut slices = generate(
            &directory.path().join(format!("{format}-a")),
            1234,
            100,
            format,
            2,
            1,
        );
        slices.extend(generate(
            &directory.path().join(format!("{format}-b")),
            4766,
            1334,
            format,
            1,
            1,
        ));
        assert!(whole == slices, "{format}");
    }
}

#[test]
fn tera_zero_records_writes_empty_files() {
    let directory = tempfile::tempdir().unwrap();
    assert!(generate(&directory.path().join("in"), 0, 5, Format::Ascii, 3, 2).is_empty());
}

#[test]
fn tera_record_numbers_past_64_bits_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let output = OutputSettings::new(directory.path());
    let settings = TeraSettings {
        records: u64::MAX,
        start: 1,
        format: Format::Ascii,
        output,
    };
    assert!(matches!(
        tera::generate(&settings),
        Err(TeraError::TooManyRecords { start: 1, .. })
    ));
}

proptest! {
    #[test]
    fn jump_equals_repeated_advance(from in 0..u64::MAX / 2, steps in 0u64..3000) {
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
    fn write_records_equals_single_writes(
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

    /// Compares the ASCII key with its definition: base-95 digits of the two halves by plain division.
    #[test]
    fn ascii_keys_match_base_95_digits(number in any::<u32>()) {
        let mut random = TeraRandom::new();
        random.jump(u64::from(number) + 1);
        let mut high = (random.value() >> 64) as u64;
        let mut low = random.value() as u64;
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

//! The validator against errors within chunks, at chunk boundaries and at file boundaries, compared with a
//! naive validator, and its input errors.

use datagen::tera::{Checksum, Format, RECORD_BYTES};
use datagen::validate::{
    RecordPosition, ValidateError, ValidateSettings, ValidationReport, validate, validate_with,
};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Records per chunk of the validator: 512,000 bytes.
const CHUNK: u64 = 5120;

/// Creates files part-00000, ... in a new directory, with the given numbers as record keys.
fn files(keys: &[Vec<u64>]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (index, keys) in keys.iter().enumerate() {
        let mut bytes = vec![b'.'; keys.len() * RECORD_BYTES];
        for (record, key) in bytes.chunks_exact_mut(RECORD_BYTES).zip(keys) {
            record[..10].copy_from_slice(format!("{key:010}").as_bytes());
        }
        fs::write(directory.path().join(format!("part-{index:05}")), bytes).unwrap();
    }
    directory
}

fn check(keys: &[Vec<u64>]) -> ValidationReport {
    let directory = files(keys);
    let report = validate(&[directory.path()], None).unwrap();
    let all: Vec<(usize, u64, u64)> = keys
        .iter()
        .enumerate()
        .flat_map(|(file, keys)| {
            (0..)
                .zip(keys)
                .map(move |(record, &key)| (file, record, key))
        })
        .collect();
    let unordered: Vec<_> = all
        .windows(2)
        .filter(|pair| pair[1].2 < pair[0].2)
        .map(|pair| pair[1])
        .collect();
    assert_eq!(report.records, all.len() as u64);
    assert_eq!(report.unordered, unordered.len() as u64);
    assert_eq!(
        report.duplicates,
        all.windows(2).filter(|pair| pair[1].2 == pair[0].2).count() as u64
    );
    let position = unordered.first().map(|&(file, record, _)| RecordPosition {
        file: directory.path().join(format!("part-{file:05}")),
        record,
    });
    assert_eq!(report.first_unordered, position);
    let key = |entry: Option<&(usize, u64, u64)>| {
        entry.map(|entry| format!("{:010}", entry.2).into_bytes())
    };
    assert_eq!(report.first.map(Vec::from), key(all.first()));
    assert_eq!(report.last.map(Vec::from), key(all.last()));
    let mut checksum = Checksum::default();
    for index in 0..keys.len() {
        let bytes = fs::read(directory.path().join(format!("part-{index:05}"))).unwrap();
        bytes
            .chunks_exact(RECORD_BYTES)
            .for_each(|record| checksum.add_record(record));
    }
    assert_eq!(report.checksum, checksum);
    report
}

fn ascending(range: std::ops::Range<u64>) -> Vec<u64> {
    range.collect()
}

#[test]
fn validate_ordered_files_are_in_order() {
    let report = check(&[
        ascending(0..3 * CHUNK + 7),
        vec![],
        ascending(3 * CHUNK + 7..4 * CHUNK),
    ]);
    assert_eq!(
        (report.files, report.unordered, report.duplicates),
        (3, 0, 0)
    );
}

#[test]
fn validate_swapped_records_are_found_at_any_position() {
    for at in [
        0,
        17,
        CHUNK - 2,
        CHUNK - 1,
        CHUNK,
        2 * CHUNK - 1,
        3 * CHUNK - 2,
    ] {
        let mut keys = ascending(0..3 * CHUNK);
        keys.swap(at as usize, at as usize + 1);
        let report = check(&[keys]);
        assert_eq!(
            (
                report.unordered,
                report.first_unordered.map(|position| position.record)
            ),
            (1, Some(at + 1))
        );
    }
}

#[test]
fn validate_files_in_wrong_order_are_found() {
    let report = check(&[ascending(10..20), vec![], ascending(0..10)]);
    assert_eq!(
        (
            report.unordered,
            report.first_unordered.map(|position| position.record)
        ),
        (1, Some(0))
    );
}

#[test]
fn validate_duplicates_are_counted_across_boundaries() {
    // Within a chunk, between chunks, and between files with an empty one between.
    let mut keys = ascending(0..2 * CHUNK);
    keys[5] = 4;
    keys[CHUNK as usize] = CHUNK - 1;
    let report = check(&[keys, vec![], vec![2 * CHUNK - 1, 2 * CHUNK]]);
    assert_eq!((report.unordered, report.duplicates), (0, 3));
}

#[test]
fn validate_empty_files_are_valid() {
    assert_eq!(
        check(&[vec![], vec![]]),
        ValidationReport {
            files: 2,
            ..ValidationReport::default()
        }
    );
}

#[test]
fn validate_reads_files_as_listed_and_directories_by_name() {
    let directory = files(&[ascending(0..5), ascending(5..10)]);
    let [first, second] = ["part-00000", "part-00001"].map(|name| directory.path().join(name));
    assert_eq!(validate(&[&first, &second], None).unwrap().unordered, 0);
    assert_eq!(validate(&[&second, &first], None).unwrap().unordered, 1);
    // Files that a job leaves besides its data are skipped, whatever they contain.
    fs::write(directory.path().join("_SUCCESS"), "{}").unwrap();
    fs::create_dir(directory.path().join("_temporary")).unwrap();
    fs::write(directory.path().join(".hidden"), "x").unwrap();
    assert_eq!(validate(&[directory.path()], None).unwrap().files, 2);
}

fn check_rejected(inputs: &[&Path], format: Option<Format>, expected: &str) {
    let error = validate(inputs, format).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    assert!(
        inputs
            .iter()
            .any(|input| error.contains(&*input.to_string_lossy())),
        "{error} does not name an input"
    );
}

#[test]
fn validate_invalid_input_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    check_rejected(&[directory.path()], None, "has no files to validate");
    check_rejected(&[&directory.path().join("missing")], None, "No such file");
    fs::create_dir(directory.path().join("nested")).unwrap();
    check_rejected(&[directory.path()], None, "nested is not a regular file");
    let short = directory.path().join("short");
    fs::write(&short, [b'x'; 250]).unwrap();
    check_rejected(&[&short], None, "has 250 bytes, not a multiple of 100");
}

#[test]
fn validate_record_of_another_format_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().join("part-00000");
    let mut records = vec![0; 3 * RECORD_BYTES];
    datagen::tera::write_records(Format::Ascii, 0, &mut records);
    records[2 * RECORD_BYTES + 98] = b'!';
    fs::write(&path, &records).unwrap();
    check_rejected(
        &[&path],
        Some(Format::Ascii),
        "record 2: not in ascii format",
    );
    check_rejected(
        &[&path],
        Some(Format::Hadoop),
        "record 0: not in hadoop format",
    );
    assert_eq!(
        validate(&[&path], Some(Format::Gensort)).unwrap().records,
        3
    );
    assert_eq!(validate(&[&path], None).unwrap().records, 3);
}

#[test]
fn validate_stopped_run_is_interrupted() {
    let directory = files(&[ascending(0..5)]);
    let settings = ValidateSettings {
        inputs: vec![directory.path().to_owned()],
        ..ValidateSettings::default()
    };
    settings.watch.stop();
    assert!(matches!(
        validate_with(&settings),
        Err(ValidateError::Interrupted)
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Few distinct keys, so that order, disorder and duplicates all occur at every kind of boundary.
    #[test]
    fn validate_matches_the_naive_validator(keys in prop::collection::vec(prop::collection::vec(0u64..4, 0..12), 1..5)) {
        check(&keys);
    }
}

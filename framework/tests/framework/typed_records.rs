//! Typed records round-trip at every cut, and damage is detected.

use std::cmp::Reverse;
use std::path::Path;

use napreduce::Value as _;
use napreduce::codec::{List, Serde};
use napreduce::input::{
    ByteLines, FixedRecords, InputError, InputFormat, RecordReader, Split, TextLines,
};
use napreduce::records::{Records, TypedRecords};
use napreduce::run::Local;
use napreduce::testing::JobTest;
use napreduce::{Dataset, Emit, Job, Key};
use proptest::collection::vec;
use proptest::prelude::*;

type Pairs = Vec<(String, u64)>;

/// Writes a file of blocks of a few records each, according to the description of the format.
fn file(path: &Path, blocks: &[Pairs]) -> Vec<u8> {
    let names = b"Stringu64";
    let mut bytes = b"NAPRECS\n\x02\0\0\0".to_vec();
    bytes.extend(crc32c::crc32c(names).to_le_bytes());
    bytes.extend([6, 0, 0, 0, 3, 0, 0, 0]);
    bytes.extend(names);
    for pairs in blocks {
        let mut body = Vec::new();
        for (key, value) in pairs {
            assert!(key.len() < 128);
            body.push(key.len() as u8);
            body.extend_from_slice(key.as_bytes());
            body.push(8);
            body.extend_from_slice(&value.to_be_bytes());
        }
        let length = (body.len() as u32).to_le_bytes();
        let records = (pairs.len() as u32).to_le_bytes();
        let crc = crc32c::crc32c(&[&length[..], &records, &body].concat()).to_le_bytes();
        bytes.extend([&length[..], &crc, &records, &body].concat());
    }
    std::fs::write(path, &bytes).expect("a file");
    bytes
}

fn read(path: &Path, offset: u64, length: u64, file_length: u64) -> Result<Pairs, InputError> {
    read_within(path, offset, length, file_length, 1 << 20)
}

fn read_within(
    path: &Path,
    offset: u64,
    length: u64,
    file_length: u64,
    memory: usize,
) -> Result<Pairs, InputError> {
    let split = Split {
        path: path.to_owned(),
        offset,
        length,
        file_length,
        version: None,
    };
    let mut reader = TypedRecords::<String, u64>::default().open(&split, memory)?;
    let mut pairs = Vec::new();
    while reader.read_batch(&mut |(key, value)| -> Result<(), InputError> {
        pairs.push((key.to_owned(), value));
        Ok(())
    })? {}
    Ok(pairs)
}

fn some_blocks() -> impl Strategy<Value = Vec<Pairs>> {
    vec(vec(("[a-z]{0,9}", any::<u64>()), 1..4), 0..6)
}

proptest! {
    #[test]
    fn every_cut_gives_each_record_once(blocks in some_blocks(), cut in any::<prop::sample::Index>()) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("records");
        let length = file(&path, &blocks).len() as u64;
        let cut = cut.index(length as usize) as u64;
        let mut pairs = read(&path, 0, cut, length).expect("the first split");
        pairs.extend(read(&path, cut, length - cut, length).expect("the second split"));
        prop_assert_eq!(pairs, blocks.concat());
    }

    #[test]
    fn damaged_blocks_are_rejected(
        blocks in some_blocks(),
        at in any::<prop::sample::Index>(),
        bit in 0..8u8,
        cut in any::<bool>(),
    ) {
        prop_assume!(!blocks.is_empty());
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("records");
        let mut bytes = file(&path, &blocks);
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= 1 << bit;
        }
        std::fs::write(&path, &bytes).expect("a file");
        match read(&path, 0, bytes.len() as u64, bytes.len() as u64) {
            // A file truncated between two blocks is a valid shorter file; the digest in `_SUCCESS` protects
            // parts.
            Ok(pairs) => prop_assert!(cut && blocks.concat().starts_with(&pairs)),
            Err(error) => prop_assert!(error.to_string().contains("records"), "{}", error),
        }
    }
}

#[test]
fn record_over_memory_is_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("records");
    let pairs = |count: u64, length: u64| -> Pairs {
        (0..count)
            .map(|number| ("k".repeat((1 + number % length) as usize), number))
            .collect()
    };
    let blocks = [pairs(500, 40), pairs(1, 3), pairs(300, 90)];
    let length = file(&path, &blocks).len() as u64;
    // The longest record has 90 letters, their length, and nine bytes of a number.
    for memory in [100, 101, 128, 1_000, 5_000, 1 << 20] {
        assert_eq!(
            read_within(&path, 0, length, length, memory).expect("records"),
            blocks.concat(),
            "{memory}"
        );
    }
    let error = read_within(&path, 0, length, length, 99)
        .expect_err("a record is too long")
        .to_string();
    assert!(
        error.contains("a record in the block at byte ") && error.contains("raise --task-memory"),
        "{error}"
    );
}

#[test]
fn records_of_other_type_are_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("records");
    let length = file(&path, &[vec![("key".into(), 7)]]).len() as u64;
    let refusals = [
        (
            TypedRecords::<String, i64>::default().check(&path),
            "(String, i64)",
        ),
        (
            TypedRecords::<String, f64>::default().check(&path),
            "(String, f64)",
        ),
        (
            TypedRecords::<Vec<u8>, u64>::default().check(&path),
            "(Vec<u8>, u64)",
        ),
        (
            TypedRecords::<Reverse<String>, u64>::default().check(&path),
            "(Reverse<String>, u64)",
        ),
        (
            TypedRecords::<String, Serde<u64>>::default().check(&path),
            "(String, Serde<u64>)",
        ),
    ];
    for (refusal, expected) in refusals {
        let error = refusal.expect_err("other types").to_string();
        let message = format!(
            "holds records of (String, u64), but this job reads {expected}; read it as the types"
        );
        assert!(error.contains(&message), "{error}");
    }
    let opened = TypedRecords::<String, i64>::default().open(&Split::whole(&path, length), 1 << 20);
    assert!(matches!(
        opened.err(),
        Some(InputError::OtherRecords { .. })
    ));
    TypedRecords::<&'static str, u64>::default()
        .check(&path)
        .expect("the same encoding");
}

#[test]
fn derived_families_name_their_fields() {
    #[derive(Key, Clone)]
    struct Visit<'a> {
        user: &'a str,
        time: Option<u64>,
    }
    #[derive(Key, Clone)]
    enum Level {
        Low,
        High(u8, i64),
        Named { name: [u8; 2] },
    }
    assert_eq!(Visit::family(), "Visit { user: String, time: Option<u64> }");
    assert_eq!(
        Level::family(),
        "Level { Low, High(u8, i64), Named { name: [u8; 2] } }"
    );
    assert_eq!(<(Level,)>::family(), format!("({},)", Level::family()));
    assert_eq!(List::<()>::family(), "List<()>");
    let _ = (Level::Low, Level::High(1, 2), Level::Named { name: [0; 2] });
}

#[test]
fn typed_records_as_text_are_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("records");
    file(&path, &[vec![("key".into(), 7)]]);
    for refusal in [
        TextLines.check(&path),
        ByteLines.check(&path),
        FixedRecords { length: 4 }.check(&path),
    ] {
        let error = refusal.expect_err("they are not text").to_string();
        assert!(
            error.ends_with("but this job reads another format; use Job::records"),
            "{error}"
        );
    }
}

#[test]
fn dataset_of_other_types_is_rejected_before_tasks_run() {
    let pairs = Dataset::<(String, u64)>::of([("a".to_owned(), 1)]).expect("a dataset");
    let as_signed =
        || Job::records::<String, i64>().map_only(|(key, value), out| out.emit(key, value));
    let error = napreduce::job(as_signed)
        .inputs([&pairs])
        .run(&Local::threads())
        .expect_err("other types");
    assert!(
        error
            .to_string()
            .contains("holds records of (String, u64), but this job reads (String, i64)"),
        "{error}"
    );
    let as_text = || Job::text().map_only(|line: &str, out| out.emit(line, ()));
    let error = napreduce::job(as_text)
        .inputs([&pairs])
        .run(&Local::threads())
        .expect_err("no text");
    assert!(
        error.to_string().contains("is a file of typed records"),
        "{error}"
    );
}

#[test]
fn output_and_inputs_are_chosen_anywhere_in_chain() {
    let ones = |line: &str, out: &mut Emit<String, u64>| out.emit(line, 1);
    let first = move || {
        Job::inputs()
            .add("one", TextLines, ones)
            .combine(|sum, more| *sum += more)
            .output(Records::<String, u64>::default())
            .add("other", TextLines, ones)
            .reduces(1)
            .reduce_total(|line, sum, out| out.emit(line, sum))
    };
    let written = JobTest::new(first)
        .input_named("one", "a\n")
        .input_named("other", "a\nb\n")
        .run();
    let before_map = || {
        Job::records::<String, u64>()
            .output(Records::<u64, String>::default())
            .map(|(line, count), out: &mut Emit<u64, String>| out.emit(count, line))
            .reduce(|count, lines, out| lines.owned().for_each(|line| out.emit(count, &line)))
    };
    let swapped = JobTest::new(before_map).input(&written.parts[0]).run();
    let read =
        || Job::records::<u64, String>().map_only(|(count, line), out| out.emit(count, line));
    assert_eq!(
        JobTest::new(read).input(&swapped.parts[0]).run().text(),
        "1\tb\n2\ta\n"
    );
}

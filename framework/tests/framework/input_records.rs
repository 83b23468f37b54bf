//! Fixed-length records and whole files as records: boundaries, splits, resuming and errors.

use std::fs;
use std::path::PathBuf;

use napreduce::input::{
    FixedRecords, InputError, InputFormat, RecordReader, Split, WholeFile, WholeFiles,
};
use proptest::collection::vec;
use proptest::prelude::*;
use tempfile::TempDir;

struct TestFile {
    _directory: TempDir,
    path: PathBuf,
    size: u64,
}

impl TestFile {
    fn new(content: &[u8]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("file");
        fs::write(&path, content).expect("a written file");
        TestFile {
            _directory: directory,
            path,
            size: content.len() as u64,
        }
    }

    fn whole(&self) -> Split {
        Split::whole(&self.path, self.size)
    }

    fn between(&self, start: u64, end: u64) -> Split {
        Split {
            path: self.path.clone(),
            offset: start,
            length: end - start,
            file_length: self.size,
            version: None,
        }
    }
}

/// Reads the records of a split with a new reader after every batch.
fn records(length: usize, split: &Split, memory: usize) -> Result<Vec<Vec<u8>>, InputError> {
    let format = FixedRecords { length };
    let mut records = Vec::new();
    let mut offset = split.offset;
    loop {
        let mut reader = format.open_at(split, offset, memory)?;
        let more = reader.read_batch(&mut |record: &[u8]| -> Result<(), InputError> {
            records.push(record.to_vec());
            Ok(())
        })?;
        offset = reader.offset();
        assert!(reader.consumed() <= split.length);
        if !more {
            return Ok(records);
        }
    }
}

proptest! {
    #[test]
    fn every_cut_and_buffer_gives_each_record_once(
        length in 1..20usize, count in 0..200usize, cuts in vec(any::<u64>(), 0..5), memory in 20..2000usize,
    ) {
        let content: Vec<u8> = (0..length * count).map(|number| (number % 251) as u8).collect();
        let file = TestFile::new(&content);
        let mut ends: Vec<u64> = cuts.iter().map(|cut| cut % (file.size + 1)).chain([file.size]).collect();
        ends.sort_unstable();
        let mut found = Vec::new();
        let mut start = 0;
        for end in ends {
            found.extend(records(length, &file.between(start, end), memory).expect("it can be read"));
            start = end;
        }
        let expected: Vec<Vec<u8>> = content.chunks(length).map(<[u8]>::to_vec).collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn offset_is_that_of_failed_record() {
    let file = TestFile::new(b"aabbccdd");
    let mut reader = FixedRecords { length: 2 }
        .open(&file.whole(), 100)
        .expect("it opens");
    let failed = reader.read_batch(&mut |record: &[u8]| {
        if record == b"cc" {
            Err(InputError::NoRecordLength)
        } else {
            Ok(())
        }
    });
    assert!(failed.is_err());
    assert_eq!((reader.offset(), reader.consumed()), (4, 4));
}

#[test]
fn invalid_record_lengths_are_rejected() {
    let file = TestFile::new(b"aabbc");
    let message = |length, memory| {
        records(length, &file.whole(), memory)
            .expect_err("it is refused")
            .to_string()
    };
    let path = file.path.display();
    assert_eq!(
        message(2, 100),
        format!("{path} has 5 bytes, which is not a multiple of the record length 2")
    );
    assert_eq!(
        message(0, 100),
        "records of fixed length need a length of at least 1 byte"
    );
    assert_eq!(
        message(200, 100),
        "a record of 200 bytes is longer than 100B; raise --task-memory"
    );
}

/// Returns the record of a whole file, and the number of records.
fn whole_file(file: &TestFile, memory: usize) -> Result<(Vec<u8>, usize), InputError> {
    let mut found = (Vec::new(), 0);
    let split = file.whole();
    let mut offset = 0;
    loop {
        let mut reader = WholeFiles.open_at(&split, offset, memory)?;
        let more = reader.read_batch(&mut |record: WholeFile<'_>| -> Result<(), InputError> {
            assert_eq!(record.path, file.path);
            found = (record.bytes.to_vec(), found.1 + 1);
            Ok(())
        })?;
        offset = reader.offset();
        if !more {
            return Ok(found);
        }
        assert_eq!(reader.consumed(), file.size);
    }
}

#[test]
fn empty_whole_file_is_one_record() {
    for content in [&b""[..], b"x", b"two\nlines\0", &[7; 300_000]] {
        let found = whole_file(&TestFile::new(content), content.len()).expect("it fits");
        assert_eq!(found, (content.to_vec(), 1));
    }
}

#[test]
fn whole_file_over_memory_is_rejected() {
    let file = TestFile::new(b"12345");
    let error = whole_file(&file, 4).expect_err("it does not fit");
    assert_eq!(
        error.to_string(),
        format!(
            "{} is longer than 4B; raise --task-memory",
            file.path.display()
        )
    );
}

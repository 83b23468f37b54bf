//! Checks that all formats share, and access to other programs and Python packages.
#![allow(dead_code, reason = "each feature uses some of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use napreduce::input::{InputError, InputFormat, RecordReader, Split};
use tempfile::TempDir;

/// A file in its own folder.
pub struct TestFile {
    _folder: TempDir,
    pub path: PathBuf,
    pub size: u64,
}

impl TestFile {
    pub fn new(name: &str, bytes: impl AsRef<[u8]>) -> TestFile {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join(name);
        fs::write(&path, bytes.as_ref()).expect("a written file");
        TestFile {
            _folder: folder,
            path,
            size: bytes.as_ref().len() as u64,
        }
    }

    pub fn whole(&self) -> Split {
        Split::whole(&self.path, self.size)
    }

    /// Returns splits of this many bytes.
    pub fn pieces(&self, bytes: u64) -> Vec<Split> {
        let starts = (0..self.size).step_by(usize::try_from(bytes).expect("a size"));
        starts
            .map(|offset| {
                let length = bytes.min(self.size - offset);
                Split {
                    path: self.path.clone(),
                    offset,
                    length,
                    file_length: self.size,
                    version: None,
                }
            })
            .collect()
    }
}

/// Reads all records of a split; if `resume`, with a new reader after each batch.
pub fn read<F: InputFormat>(
    format: &F,
    split: &Split,
    resume: bool,
    show: impl Fn(F::Record<'_>) -> String,
) -> Result<Vec<String>, InputError> {
    const MEMORY: usize = 8 << 20;
    let mut records = Vec::new();
    let mut reader = format.open(split, MEMORY)?;
    loop {
        let mut repeated = reader.records_before();
        let more = reader.read_batch(&mut |record: F::Record<'_>| -> Result<(), InputError> {
            match repeated.checked_sub(1) {
                Some(left) => repeated = left,
                None => records.push(show(record)),
            }
            Ok(())
        })?;
        assert!(
            reader.consumed() <= split.length,
            "{} of {} bytes",
            reader.consumed(),
            split.length
        );
        if !more {
            return Ok(records);
        }
        if resume {
            reader = format.open_at(split, reader.offset(), MEMORY)?;
        }
    }
}

/// Returns the records of the whole file; checks that splits of every size give the same records.
pub fn same_at_every_cut<F: InputFormat>(
    format: &F,
    file: &TestFile,
    sizes: impl IntoIterator<Item = u64>,
    show: impl Fn(F::Record<'_>) -> String + Copy,
) -> Vec<String> {
    assert!(
        format.splittable(&file.path),
        "{} is one split",
        file.path.display()
    );
    let whole = read(format, &file.whole(), false, show).expect("it is intact");
    assert_eq!(
        read(format, &file.whole(), true, show).expect("it is intact"),
        whole,
        "resumed"
    );
    for size in sizes {
        let pieces = file.pieces(size);
        let read = pieces
            .iter()
            .flat_map(|piece| read(format, piece, false, show).expect("it is intact"));
        let read: Vec<String> = read.collect();
        assert!(
            read == whole,
            "cut every {size} bytes: {}",
            first_difference(&whole, &read)
        );
    }
    whole
}

fn first_difference(expected: &[String], found: &[String]) -> String {
    let same = expected
        .iter()
        .zip(found)
        .take_while(|(one, other)| one == other)
        .count();
    format!(
        "{} records instead of {}, from record {same} on {:?} instead of {:?}",
        found.len(),
        expected.len(),
        found.get(same),
        expected.get(same)
    )
}

/// Reads a damaged file. It must be rejected with an error that names it, or give only records of the intact
/// file. Returns the error.
pub fn refused_or_intact<F: InputFormat>(
    format: &F,
    file: &TestFile,
    intact: &[String],
    show: impl Fn(F::Record<'_>) -> String + Copy,
) -> Option<String> {
    match read(format, &file.whole(), false, show) {
        Ok(records) => {
            assert!(
                records.iter().all(|record| intact.contains(record)),
                "records were read that are not there: {records:?}"
            );
            None
        }
        Err(error) => {
            let message = error.to_string();
            assert!(
                message.contains(&file.path.display().to_string()),
                "it does not say which file: {message}"
            );
            Some(message)
        }
    }
}

/// Returns the output of a program for this input; `None`, with a message, if the program is missing.
pub fn filtered(program: &str, arguments: &[&str], input: &[u8], package: &str) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("input");
    fs::write(&path, input).expect("a written file");
    let from = fs::File::open(&path).expect("the written file");
    let child = Command::new(program)
        .args(arguments)
        .stdin(from)
        .stderr(Stdio::inherit())
        .output();
    match child {
        Ok(ended) => {
            assert!(
                ended.status.success(),
                "{program} {arguments:?} ended with {}",
                ended.status
            );
            Some(ended.stdout)
        }
        Err(error) => {
            missing(&format!(
                "{program} cannot be run ({error}); install {package}"
            ));
            None
        }
    }
}

/// Runs a Python script in the folder; returns its output, or `None` if a package is missing.
pub fn python(packages: &[&str], script: &str, folder: &Path) -> Option<String> {
    let imports = format!("import {}", packages.join(", "));
    let known = Command::new("python3")
        .args(["-c", &imports])
        .stderr(Stdio::null())
        .status();
    if !known.is_ok_and(|status| status.success()) {
        missing(&format!(
            "python3 has no {0}; install {0} (pip install {0})",
            packages.join(" ")
        ));
        return None;
    }
    let ended = Command::new("python3")
        .args(["-c", script])
        .current_dir(folder)
        .output()
        .expect("python3 runs");
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    Some(String::from_utf8(ended.stdout).expect("Python prints text"))
}

/// Skips a test, unless `NAPREDUCE_REQUIRE` names `formats`.
fn missing(why: &str) {
    let required = std::env::var("NAPREDUCE_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|one| one == "formats"),
        "a format cannot be tried: {why}"
    );
    eprintln!("skipped: {why}");
}

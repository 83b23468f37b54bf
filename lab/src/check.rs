//! The reference outputs of wordcount and terasort, computed once per input by simple code that shares nothing with our
//! programs. Outputs are compared with them outside of the measured time.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use datagen::tera::Checksum;
use datagen::validate::{ValidateSettings, validate_with};

use crate::error::cannot;
use crate::outputs::output_files;
use crate::process::Interrupt;
use crate::program::BenchmarkJob;

#[derive(Debug)]
pub enum Truth {
    /// Each word of the input exactly once with its exact number, in any order.
    Counts(WordCounts),
    /// The records of the input, in order over all files.
    Order {
        records: u64,
        /// The sum of their checksums, which does not depend on their order.
        checksum: Checksum,
    },
}

impl Truth {
    pub fn of(program: BenchmarkJob, input: &Path, interrupt: &Interrupt) -> Result<Truth> {
        match program {
            BenchmarkJob::Wordcount => Ok(Truth::Counts(WordCounts::of(input, interrupt)?)),
            BenchmarkJob::Terasort => {
                let report = validate(input, interrupt)?;
                Ok(Truth::Order {
                    records: report.records,
                    checksum: report.checksum,
                })
            }
        }
    }

    /// Compares the part files in `output` with the truth.
    pub fn verify(&self, output: &Path, interrupt: &Interrupt) -> Result<()> {
        match self {
            Truth::Counts(counts) => {
                let files = output_files(output).map_err(cannot("read", output))?;
                counts.verify(&files, interrupt)
            }
            Truth::Order { records, checksum } => {
                let report = validate(output, interrupt)?;
                if report.records != *records {
                    bail!(
                        "wrong output: {} records where the input has {records}",
                        report.records
                    );
                }
                if report.checksum != *checksum {
                    bail!(
                        "wrong output: checksum {} where the input has {checksum}",
                        report.checksum
                    );
                }
                if let Some(place) = report.first_unordered {
                    let file = place.file.display();
                    bail!(
                        "wrong output: not in order, first at record {} of {file}",
                        place.record
                    );
                }
                Ok(())
            }
        }
    }
}

fn validate(input: &Path, interrupt: &Interrupt) -> Result<datagen::validate::ValidationReport> {
    let settings = ValidateSettings {
        inputs: vec![input.to_owned()],
        format: Some(datagen::tera::Format::Ascii),
        threads: 0,
        watch: interrupt.watch(),
    };
    let report = validate_with(&settings);
    interrupt.check()?;
    Ok(report?)
}

const BUFFER_BYTES: usize = 1 << 20;
/// Lines between two checks of the interrupt.
const LINES_PER_CHECK: usize = 1 << 16;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct WordCounts {
    counts: HashMap<Box<[u8]>, u64>,
}

impl WordCounts {
    pub fn of(path: &Path, interrupt: &Interrupt) -> Result<WordCounts> {
        let mut counts = WordCounts::default();
        each_line(path, interrupt, |_, line| {
            line.split(u8::is_ascii_whitespace)
                .for_each(|word| counts.add(word));
            Ok(())
        })?;
        Ok(counts)
    }

    fn add(&mut self, word: &[u8]) {
        if word.is_empty() {
            return;
        }
        match self.counts.get_mut(word) {
            Some(count) => *count += 1,
            None => {
                self.counts.insert(word.into(), 1);
            }
        }
    }

    /// Compares lines of `word TAB count` with the counts: every word once, with its count.
    pub fn verify(&self, files: &[PathBuf], interrupt: &Interrupt) -> Result<()> {
        let mut seen: HashSet<&[u8]> = HashSet::with_capacity(self.counts.len());
        for path in files {
            each_line(path, interrupt, |number, line| {
                self.verify_line(line, &mut seen).map_err(|what| {
                    let file = path
                        .file_name()
                        .unwrap_or(path.as_os_str())
                        .to_string_lossy();
                    anyhow!("wrong output: {file} line {number}: {what}")
                })
            })?;
        }
        if let Some(word) = self
            .counts
            .keys()
            .find(|word| !seen.contains(word.as_ref()))
        {
            let missing = self.counts.len() - seen.len();
            let word = word.escape_ascii();
            bail!("wrong output: {missing} words are missing, one is \"{word}\"");
        }
        Ok(())
    }

    fn verify_line<'a>(&'a self, line: &[u8], seen: &mut HashSet<&'a [u8]>) -> Result<(), String> {
        let shown = || line.escape_ascii().to_string();
        let body = line
            .strip_suffix(b"\n")
            .ok_or_else(|| format!("\"{}\" has no newline", shown()))?;
        let tab = body.iter().rposition(|&byte| byte == b'\t');
        let tab = tab.ok_or_else(|| format!("\"{}\" has no tab", shown()))?;
        let word = &body[..tab];
        let count = &body[tab + 1..];
        let count = std::str::from_utf8(count)
            .ok()
            .and_then(|text| text.parse::<u64>().ok());
        let count = count.ok_or_else(|| format!("\"{}\" has no count", shown()))?;
        let (word, expected) = self
            .counts
            .get_key_value(word)
            .ok_or_else(|| format!("\"{}\" is not a word of the input", word.escape_ascii()))?;
        if count != *expected {
            let word = word.escape_ascii();
            return Err(format!("\"{word}\" occurs {expected} times, not {count}"));
        }
        if !seen.insert(word) {
            return Err(format!("\"{}\" occurs on two lines", word.escape_ascii()));
        }
        Ok(())
    }
}

/// Calls `take` with the number of each line and the line with its newline.
fn each_line(
    path: &Path,
    interrupt: &Interrupt,
    mut take: impl FnMut(usize, &[u8]) -> Result<()>,
) -> Result<()> {
    let failed = cannot("read", path);
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, File::open(path).map_err(failed)?);
    let mut line = Vec::new();
    for number in 1.. {
        if number % LINES_PER_CHECK == 0 {
            interrupt.check()?;
        }
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        take(number, &line)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use napreduce_protocol::ByteSize;
    use proptest::prelude::*;

    use super::*;
    use crate::input;

    #[test]
    fn only_sorted_rows_pass() {
        let folder = tempfile::tempdir().unwrap();
        let never = Interrupt::never();
        let made = input::generate(
            BenchmarkJob::Terasort,
            ByteSize::new(1_000),
            &folder.path().join("in"),
            &never,
        )
        .unwrap();
        let truth = Truth::of(BenchmarkJob::Terasort, &made.file, &never).unwrap();
        let text = fs::read(&made.file).unwrap();
        let mut rows: Vec<&[u8]> = text.chunks(100).collect();
        let check = |rows: &[&[u8]]| {
            let output = folder.path().join("out");
            fs::create_dir_all(&output).unwrap();
            fs::write(output.join("part-r-00000"), rows.concat()).unwrap();
            truth
                .verify(&output, &never)
                .map_err(|error| error.to_string())
        };
        let unsorted = check(&rows).unwrap_err();
        assert!(unsorted.contains("not in order"), "{unsorted}");
        rows.sort();
        assert_eq!(check(&rows), Ok(()));
        let short = check(&rows[1..]).unwrap_err();
        assert!(
            short.contains("9 records where the input has 10"),
            "{short}"
        );
        rows[3] = rows[4];
        let repeated = check(&rows).unwrap_err();
        assert!(repeated.contains("checksum"), "{repeated}");
    }

    fn counted(text: &[u8]) -> WordCounts {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        fs::write(&path, text).unwrap();
        WordCounts::of(&path, &Interrupt::never()).unwrap()
    }

    fn check(output: &str) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part");
        fs::write(&path, output).unwrap();
        let counts = counted(b"to be or not to be\n");
        counts
            .verify(&[path], &Interrupt::never())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn counts_pass_in_any_order() {
        assert_eq!(check("to\t2\nbe\t2\nor\t1\nnot\t1\n"), Ok(()));
        assert_eq!(check("not\t1\nor\t1\nbe\t2\nto\t2\n"), Ok(()));
    }

    #[test]
    fn every_difference_is_named() {
        let wrong = |output: &str, part: &str| {
            let error = check(output).unwrap_err();
            assert!(error.contains(part), "{output:?}: {error}");
        };
        wrong("to\t3\n", "part line 1: \"to\" occurs 2 times, not 3");
        wrong("or\t1\nor\t1\n", "part line 2: \"or\" occurs on two lines");
        wrong("is\t1\n", "\"is\" is not a word of the input");
        wrong(
            "to\t2\nbe\t2\nor\t1\n",
            "1 words are missing, one is \"not\"",
        );
        wrong("to 2\n", "has no tab");
        wrong("to\tmany\n", "has no count");
        wrong("to\t2", "has no newline");
        wrong("", "4 words are missing");
    }

    #[test]
    fn words_that_cross_a_buffer_are_counted_whole() {
        let text = [
            vec![b' '; BUFFER_BYTES - 2],
            b"word".to_vec(),
            vec![b'x'; 2 * BUFFER_BYTES],
        ]
        .concat();
        let counts = counted(&text);
        assert_eq!(counts.counts.len(), 1);
        assert_eq!(
            counts.counts.keys().next().unwrap().len(),
            4 + 2 * BUFFER_BYTES
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn counts_match_naive_splitting(text in prop::collection::vec(prop::sample::select(b"ab \t\r\n\xff".to_vec()), 0..200)) {
            let mut expected: HashMap<Box<[u8]>, u64> = HashMap::new();
            for word in text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
                *expected.entry(word.into()).or_default() += 1;
            }
            prop_assert_eq!(counted(&text).counts, expected);
        }
    }
}

//! Reading traces of the SWIM workload suite, in all their variants.
//!
//! Owns the format: a job a line, six fields separated by tabs (or nine: an input path and two empty ones).
//! Whatever is wrong is told with file, line and column. Does not own what tasks a job has: `sizes` does.

use std::collections::HashSet;
use std::io::{self, BufRead, Read};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// No line of a trace is this long.
const LINE_BYTES_MAX: u64 = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwimTrace {
    /// The jobs, in the order of their submission.
    pub jobs: Vec<SwimJob>,
}

/// A line of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwimJob {
    /// Its name, which no other job of the file has.
    pub name: Box<str>,
    /// When it is submitted, in seconds from the start of the day.
    pub submit: u64,
    /// Seconds since the job before, as the file says.
    pub gap: u64,
    /// Bytes the maps read.
    pub map_input: u64,
    /// Bytes from maps to reduces; zero usually means that there are no reduces.
    pub shuffle: u64,
    /// Bytes of output.
    pub output: u64,
    /// What it reads, in the variant that says it: equal names are the same data.
    pub input_path: Option<Box<str>>,
    /// How many fields its line has.
    pub fields: u8,
}

/// What is wrong with a trace.
#[derive(Debug, thiserror::Error)]
pub enum SwimError {
    /// A field is not as it must be.
    #[error("{file}:{line}:{column}: {found}; expected {expected}")]
    Field {
        file: Arc<str>,
        /// The line, from 1.
        line: u64,
        /// The first byte of the field in its line, from 1.
        column: usize,
        found: String,
        /// What should be there.
        expected: String,
    },
    #[error("{file} is empty; a trace has a job on each line")]
    Empty { file: Arc<str> },
    #[error("cannot read {file} after line {line}: {error}")]
    Read {
        file: Arc<str>,
        /// The last line that could be read.
        line: u64,
        error: io::Error,
    },
}

struct TraceLine<'a> {
    file: &'a Arc<str>,
    number: u64,
    text: &'a str,
}

impl SwimTrace {
    /// Reads a trace; `file` is what errors call it.
    ///
    /// # Errors
    /// Names the file, the line, the column and what is expected there.
    pub fn read(file: &str, mut from: impl BufRead) -> Result<SwimTrace, SwimError> {
        let file: Arc<str> = file.into();
        let (mut jobs, mut names): (Vec<SwimJob>, HashSet<Box<str>>) = (Vec::new(), HashSet::new());
        let mut bytes = Vec::new();
        for number in 1.. {
            bytes.clear();
            let read = from.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut bytes);
            let length =
                read.map_err(|error| SwimError::Read { file: file.clone(), line: number - 1, error })?;
            if length == 0 {
                break;
            }
            let job = parse_line(&file, number, &bytes)?;
            let line = TraceLine { file: &file, number, text: "" };
            if let Some(last) = jobs.last().filter(|last| job.submit < last.submit) {
                let column = job.name.len() + 2;
                let found = format!("submit time {} after {}", job.submit, last.submit);
                return Err(line.wrong(column, found, "jobs in the order of their submit times"));
            }
            if !names.insert(job.name.clone()) {
                let found = format!("job {:?} again", job.name);
                return Err(line.wrong(1, found, "a name that no other job of the file has"));
            }
            jobs.push(job);
        }
        if jobs.is_empty() { Err(SwimError::Empty { file }) } else { Ok(SwimTrace { jobs }) }
    }

    /// The same workload for a cluster of another size: all bytes times `machines / original`, all times as
    /// they are.
    #[must_use]
    pub fn scaled(mut self, machines: u32, original: u32) -> SwimTrace {
        let scale = |bytes: u64| {
            let scaled = u128::from(bytes) * u128::from(machines) / u128::from(original.max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        for job in &mut self.jobs {
            // What there was is still there, be it a byte: a job does not become map-only by scaling.
            let keep = |bytes: u64| scale(bytes).max(bytes.min(1));
            job.map_input = keep(job.map_input);
            job.shuffle = keep(job.shuffle);
            job.output = keep(job.output);
        }
        self
    }
}

fn parse_line(file: &Arc<str>, number: u64, bytes: &[u8]) -> Result<SwimJob, SwimError> {
    let line = TraceLine { file, number, text: "" };
    if bytes.len() as u64 > LINE_BYTES_MAX {
        let found = format!("a line of more than {LINE_BYTES_MAX} bytes");
        return Err(line.wrong(1, found, "six or nine fields separated by tabs"));
    }
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        line.wrong(error.valid_up_to() + 1, "a byte that is no UTF-8".to_owned(), "UTF-8 text")
    })?;
    TraceLine { file, number, text }.parse()
}

impl TraceLine<'_> {
    fn parse(&self) -> Result<SwimJob, SwimError> {
        let mut fields: Vec<(usize, &str)> = Vec::with_capacity(9);
        let mut column = 1;
        for field in self.text.split('\t') {
            fields.push((column, field));
            column += field.len() + 1;
        }
        if fields.len() != 6 && fields.len() != 9 {
            let (last, _) = fields[fields.len() - 1];
            let found = format!("{} fields, the last one here", fields.len());
            return Err(self.wrong(
                last,
                found,
                "six fields separated by tabs (job, submit time, gap, map input, shuffle and output bytes), or nine (an \
                 input path and two empty ones)",
            ));
        }
        if fields[0].1.trim().is_empty() {
            return Err(self.wrong(1, "no job name".to_owned(), "the name of the job"));
        }
        if let Some((column, field)) = fields.iter().skip(7).find(|(_, field)| !field.is_empty()) {
            return Err(self.wrong(*column, format!("{field:?}"), "an empty field"));
        }
        Ok(SwimJob {
            name: fields[0].1.into(),
            submit: self.number(fields[1], "the submit time in whole seconds")?,
            gap: self.number(fields[2], "the seconds since the job before, a whole number")?,
            map_input: self.number(fields[3], "the bytes of map input, a whole number")?,
            shuffle: self.number(fields[4], "the bytes of the shuffle, a whole number")?,
            output: self.number(fields[5], "the bytes of output, a whole number")?,
            input_path: fields.get(6).map(|(_, path)| (*path).into()),
            fields: fields.len() as u8,
        })
    }

    fn number(&self, (column, field): (usize, &str), expected: &str) -> Result<u64, SwimError> {
        let digits = !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit());
        let number = field.parse::<u64>().ok().filter(|_| digits);
        number.ok_or_else(|| self.wrong(column, shown(field), expected))
    }

    fn wrong(&self, column: usize, found: String, expected: &str) -> SwimError {
        SwimError::Field {
            file: self.file.clone(),
            line: self.number,
            column,
            found,
            expected: expected.to_owned(),
        }
    }
}

/// A field as an error shows it: never the whole of something long.
fn shown(field: &str) -> String {
    if field.is_empty() {
        return "an empty field".to_owned();
    }
    match field.char_indices().nth(40) {
        Some((end, _)) => format!("{:?}...", &field[..end]),
        None => format!("{field:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<SwimTrace, SwimError> {
        SwimTrace::read("day.tsv", text)
    }

    fn refused(text: &[u8]) -> String {
        read(text).expect_err("it is malformed").to_string()
    }

    #[test]
    fn both_variants_are_read() {
        let text = b"job0\t49\t49\t10\t20\t30\njob1\t49\t0\t1\t0\t3\tinputPath7\t\t\r\njob2\t50\t1\t0\t0\t0";
        let trace = read(text).expect("a trace");
        assert_eq!(trace.jobs.len(), 3);
        assert_eq!((trace.jobs[0].fields, trace.jobs[1].fields), (6, 9));
        assert_eq!(trace.jobs[1].input_path.as_deref(), Some("inputPath7"));
        assert_eq!((trace.jobs[2].submit, trace.jobs[2].map_input), (50, 0));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        assert_eq!(
            refused(b"job0\t1\t1\t0\t0\t0\njob1\t2\t1\tten\t0\t0\n"),
            "day.tsv:2:10: \"ten\"; expected the bytes of map input, a whole number"
        );
        assert_eq!(
            refused(b"job0\t-1\t1\t0\t0\t0\n"),
            "day.tsv:1:6: \"-1\"; expected the submit time in whole seconds"
        );
        assert!(refused(b"job0\t1\t1\t0\t0\n").starts_with("day.tsv:1:12: 5 fields, the last one here"));
        assert!(refused(b"\n").starts_with("day.tsv:1:1: 1 fields"));
        assert_eq!(refused(b"\t1\t1\t0\t0\t0\n"), "day.tsv:1:1: no job name; expected the name of the job");
        assert_eq!(
            refused(b"job0\t5\t5\t0\t0\t0\njob1\t4\t0\t0\t0\t0\n"),
            "day.tsv:2:6: submit time 4 after 5; expected jobs in the order of their submit times"
        );
        assert_eq!(
            refused(b"a\t5\t5\t0\t0\t0\na\t5\t0\t0\t0\t0\n"),
            "day.tsv:2:1: job \"a\" again; expected a name that no other job of the file has"
        );
        assert_eq!(refused(b"a\t5\t5\t0\t0\t0\tp\tx\t\n"), "day.tsv:1:15: \"x\"; expected an empty field");
    }

    #[test]
    fn hostile_files_are_refused_without_reading_them_whole() {
        assert_eq!(refused(b""), "day.tsv is empty; a trace has a job on each line");
        assert_eq!(refused(b"job\xff\t1"), "day.tsv:1:4: a byte that is no UTF-8; expected UTF-8 text");
        let endless = io::BufReader::new(io::repeat(b'7'));
        let text = SwimTrace::read("day.tsv", endless).expect_err("it never ends").to_string();
        assert!(text.starts_with("day.tsv:1:1: a line of more than 65536 bytes"), "{text}");
        let large = refused(b"j\t18446744073709551616\t0\t0\t0\t0\n");
        assert!(
            large.starts_with("day.tsv:1:3: \"18446744073709551616\"; expected the submit time"),
            "{large}"
        );
        assert!(refused(b"j\t1e3\t0\t0\t0\t0\n").contains("\"1e3\""));
        assert!(refused(b"j\t\t0\t0\t0\t0\n").contains("an empty field"));
    }

    #[test]
    fn scaling_multiplies_bytes_and_keeps_what_there_is() {
        let trace = read(b"a\t1\t1\t3000\t1\t0\n").expect("a trace").scaled(10, 300);
        assert_eq!((trace.jobs[0].map_input, trace.jobs[0].shuffle, trace.jobs[0].output), (100, 1, 0));
    }
}

//! Traces of the SWIM workload suite. One job per line, with six tab-separated or nine: an input path
//! and two empty ones. Errors report file, line and column.

use std::collections::HashSet;
use std::io::{self, BufRead, Read};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Maximum length of a line.
const LINE_BYTES_MAX: u64 = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwimTrace {
    /// In order of submission.
    pub jobs: Vec<SwimJob>,
}

/// A line of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwimJob {
    /// Unique in the file.
    pub name: Box<str>,
    /// Submit time in seconds from the start of the day.
    pub submit: u64,
    /// Seconds since the previous job, as recorded.
    pub gap: u64,
    /// Bytes read by the maps.
    pub map_input: u64,
    /// Bytes from maps to reduces; zero usually means no reduces.
    pub shuffle: u64,
    /// Output bytes.
    pub output: u64,
    /// Input path, in the variant with nine fields; equal paths are the same data.
    pub input_path: Option<Box<str>>,
    /// Number of fields of its line.
    pub fields: u8,
}

/// An error in a trace.
#[derive(Debug, thiserror::Error)]
pub enum SwimError {
    /// A field is invalid.
    #[error("{file}:{line}:{column}: {found}; expected {expected}")]
    Field {
        file: Arc<str>,
        /// Starting at 1.
        line: u64,
        /// Position of the field in its line in bytes, starting at 1.
        column: usize,
        found: String,
        expected: String,
    },
    #[error("{file} is empty; a trace has a job on each line")]
    Empty { file: Arc<str> },
    #[error("cannot read {file} after line {line}: {error}")]
    Read {
        file: Arc<str>,
        /// The last line that was read.
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
    /// Parses a trace; `file` is its name in errors.
    ///
    /// # Errors
    /// Fails on the first invalid field; names file, line, column and what is expected.
    pub fn read(file: &str, mut from: impl BufRead) -> Result<SwimTrace, SwimError> {
        let file: Arc<str> = file.into();
        let (mut jobs, mut names): (Vec<SwimJob>, HashSet<Box<str>>) = (Vec::new(), HashSet::new());
        let mut bytes = Vec::new();
        for number in 1.. {
            bytes.clear();
            let read = from
                .by_ref()
                .take(LINE_BYTES_MAX + 1)
                .read_until(b'\n', &mut bytes);
            let length = read.map_err(|error| SwimError::Read {
                file: file.clone(),
                line: number - 1,
                error,
            })?;
            if length == 0 {
                break;
            }
            let job = parse_line(&file, number, &bytes)?;
            let line = TraceLine {
                file: &file,
                number,
                text: "",
            };
            if let Some(last) = jobs.last().filter(|last| job.submit < last.submit) {
                let column = job.name.len() + 2;
                let found = format!("submit time {} after {}", job.submit, last.submit);
                return Err(line.error(column, found, "jobs in the order of their submit times"));
            }
            if !names.insert(job.name.clone()) {
                let found = format!("duplicate job {:?}", job.name);
                return Err(line.error(1, found, "a unique name"));
            }
            jobs.push(job);
        }
        if jobs.is_empty() {
            Err(SwimError::Empty { file })
        } else {
            Ok(SwimTrace { jobs })
        }
    }

    /// Scales the workload to another cluster size: multiplies all bytes by `machines / original`; times are
    /// unchanged.
    #[must_use]
    pub fn scaled(mut self, machines: u32, original: u32) -> SwimTrace {
        let scale = |bytes: u64| {
            let scaled = u128::from(bytes) * u128::from(machines) / u128::from(original.max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        for job in &mut self.jobs {
            // Keeps at least one byte: scaling must not turn a job into a map-only one.
            let keep = |bytes: u64| scale(bytes).max(bytes.min(1));
            job.map_input = keep(job.map_input);
            job.shuffle = keep(job.shuffle);
            job.output = keep(job.output);
        }
        self
    }
}

fn parse_line(file: &Arc<str>, number: u64, bytes: &[u8]) -> Result<SwimJob, SwimError> {
    let line = TraceLine {
        file,
        number,
        text: "",
    };
    if bytes.len() as u64 > LINE_BYTES_MAX {
        let found = format!("a line of more than {LINE_BYTES_MAX} bytes");
        return Err(line.error(1, found, "six or nine fields separated by tabs"));
    }
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        line.error(
            error.valid_up_to() + 1,
            "an invalid UTF-8 byte".to_owned(),
            "UTF-8 text",
        )
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
            let found = format!("{} fields", fields.len());
            return Err(self.error(
                last,
                found,
                "six fields separated by tabs (job, submit time, gap, map input, shuffle and output bytes), or nine (an \
                 input path and two empty ones)",
            ));
        }
        if fields[0].1.trim().is_empty() {
            return Err(self.error(1, "no job name".to_owned(), "the name of the job"));
        }
        if let Some((column, field)) = fields.iter().skip(7).find(|(_, field)| !field.is_empty()) {
            return Err(self.error(*column, format!("{field:?}"), "an empty field"));
        }
        Ok(SwimJob {
            name: fields[0].1.into(),
            submit: self.number(fields[1], "the submit time in whole seconds")?,
            gap: self.number(
                fields[2],
                "the seconds since the previous job, a whole number",
            )?,
            map_input: self.number(fields[3], "the bytes of map input, a whole number")?,
            shuffle: self.number(fields[4], "the bytes of the shuffle, a whole number")?,
            output: self.number(fields[5], "the bytes of output, a whole number")?,
            input_path: fields.get(6).map(|(_, path)| (*path).into()),
            fields: fields.len() as u8,
        })
    }

    fn number(&self, field: (usize, &str), expected: &str) -> Result<u64, SwimError> {
        let (column, field) = field;
        let digits = !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit());
        let number = field.parse::<u64>().ok().filter(|_| digits);
        number.ok_or_else(|| self.error(column, abbreviated(field), expected))
    }

    fn error(&self, column: usize, found: String, expected: &str) -> SwimError {
        SwimError::Field {
            file: self.file.clone(),
            line: self.number,
            column,
            found,
            expected: expected.to_owned(),
        }
    }
}

/// Formats a field for an error, truncated if it is long.
fn abbreviated(field: &str) -> String {
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
        read(text).expect_err("the trace is malformed").to_string()
    }

    #[test]
    fn both_variants_are_parsed() {
        let text = b"job0\t49\t49\t10\t20\t30\njob1\t49\t0\t1\t0\t3\tinputPath7\t\t\r\njob2\t50\t1\t0\t0\t0";
        let trace = read(text).expect("the trace is valid");
        assert_eq!(trace.jobs.len(), 3);
        assert_eq!((trace.jobs[0].fields, trace.jobs[1].fields), (6, 9));
        assert_eq!(trace.jobs[1].input_path.as_deref(), Some("inputPath7"));
        assert_eq!((trace.jobs[2].submit, trace.jobs[2].map_input), (50, 0));
    }

    #[test]
    fn errors_report_line_and_column() {
        assert_eq!(
            refused(b"job0\t1\t1\t0\t0\t0\njob1\t2\t1\tten\t0\t0\n"),
            "day.tsv:2:10: \"ten\"; expected the bytes of map input, a whole number"
        );
        assert_eq!(
            refused(b"job0\t-1\t1\t0\t0\t0\n"),
            "day.tsv:1:6: \"-1\"; expected the submit time in whole seconds"
        );
        assert!(refused(b"job0\t1\t1\t0\t0\n").starts_with("day.tsv:1:12: 5 fields"));
        assert!(refused(b"\n").starts_with("day.tsv:1:1: 1 fields"));
        assert_eq!(
            refused(b"\t1\t1\t0\t0\t0\n"),
            "day.tsv:1:1: no job name; expected the name of the job"
        );
        assert_eq!(
            refused(b"job0\t5\t5\t0\t0\t0\njob1\t4\t0\t0\t0\t0\n"),
            "day.tsv:2:6: submit time 4 after 5; expected jobs in the order of their submit times"
        );
        assert_eq!(
            refused(b"a\t5\t5\t0\t0\t0\na\t5\t0\t0\t0\t0\n"),
            "day.tsv:2:1: duplicate job \"a\"; expected a unique name"
        );
        assert_eq!(
            refused(b"a\t5\t5\t0\t0\t0\tp\tx\t\n"),
            "day.tsv:1:15: \"x\"; expected an empty field"
        );
    }

    #[test]
    fn hostile_files_are_rejected_early() {
        assert_eq!(
            refused(b""),
            "day.tsv is empty; a trace has a job on each line"
        );
        assert_eq!(
            refused(b"job\xff\t1"),
            "day.tsv:1:4: an invalid UTF-8 byte; expected UTF-8 text"
        );
        let endless = io::BufReader::new(io::repeat(b'7'));
        let text = SwimTrace::read("day.tsv", endless)
            .expect_err("the line is too long")
            .to_string();
        assert!(
            text.starts_with("day.tsv:1:1: a line of more than 65536 bytes"),
            "{text}"
        );
        let large = refused(b"j\t18446744073709551616\t0\t0\t0\t0\n");
        assert!(
            large.starts_with("day.tsv:1:3: \"18446744073709551616\"; expected the submit time"),
            "{large}"
        );
        assert!(refused(b"j\t1e3\t0\t0\t0\t0\n").contains("\"1e3\""));
        assert!(refused(b"j\t\t0\t0\t0\t0\n").contains("an empty field"));
    }

    #[test]
    fn scaling_multiplies_bytes_and_keeps_at_least_one() {
        let trace = read(b"a\t1\t1\t3000\t1\t0\n")
            .expect("the trace is valid")
            .scaled(10, 300);
        assert_eq!(
            (
                trace.jobs[0].map_input,
                trace.jobs[0].shuffle,
                trace.jobs[0].output
            ),
            (100, 1, 0)
        );
    }
}

//! The formats that need no feature: lines of text, and fixed-length records.

use std::io;

use napreduce_protocol::TaskError;

use super::{Output, OutputFormat, TextField, write_line};
use crate::state::Save;

/// Lines of `key TAB value`; a unit value omits the tab. The default format.
///
/// Keys and values are not escaped: a tab or newline inside one is written unchanged.
///
/// ```
/// use napreduce::Job;
/// use napreduce::output::Text;
/// use napreduce::testing::JobTest;
///
/// let job = || Job::text().map_only_to(Text, |line: &str, out| out.emit((line.len(), line), Some(1.5)));
/// assert_eq!(JobTest::new(job).input("to be\n").run().text(), "5\tto be\t1.5\n");
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Text;

/// Fixed-length records without separators.
///
/// ```
/// use napreduce::Job;
/// use napreduce::output::FixedBytes;
/// use napreduce::testing::JobTest;
///
/// let swapped = || {
///     Job::fixed_records(4).map_only_to(FixedBytes { length: 4 }, |record: &[u8], out| {
///         let (start, rest) = record.split_at(2);
///         out.write_parts(rest, start);
///     })
/// };
/// assert_eq!(JobTest::new(swapped).input("abcdefgh").run().text(), "cdabghef");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct FixedBytes {
    /// Length of each record in bytes; at least 1.
    pub length: usize,
}

impl OutputFormat for Text {
    type Item = String;

    fn save(&self, _: &mut Vec<u8>) -> Result<Save, TaskError> {
        Ok(Save::Stateless)
    }
}

impl OutputFormat for FixedBytes {
    type Item = Vec<u8>;

    fn save(&self, _: &mut Vec<u8>) -> Result<Save, TaskError> {
        Ok(Save::Stateless)
    }
}

impl Output<Text> {
    /// Writes one line: the key, a tab and the value; only the key if the type of the value is empty, like
    /// `()`.
    #[inline]
    pub fn emit<K: TextField, V: TextField>(&mut self, key: K, value: V) {
        self.record(|_, buffer| write_line(&key, &value, buffer));
    }
}

impl Output<FixedBytes> {
    /// Writes one record.
    #[inline]
    pub fn write(&mut self, record: &[u8]) {
        self.write_parts(record, &[]);
    }

    /// Writes one record given in two pieces, so that the caller need not join them.
    #[inline]
    pub fn write_parts(&mut self, start: &[u8], rest: &[u8]) {
        if start.len() + rest.len() != self.format.length {
            self.part.fail(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "record {} has {} bytes; the output format needs {}",
                    self.part.records,
                    start.len() + rest.len(),
                    self.format.length
                ),
            ));
            return;
        }
        self.record(|_, buffer| {
            buffer.extend_from_slice(start);
            buffer.extend_from_slice(rest);
        });
    }
}

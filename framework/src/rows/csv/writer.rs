//! Writing rows of comma-separated values.

use napreduce_connectors::csv::RowWriter;
use serde::Serialize;

use crate::codec::{Key, Value};
use crate::output::{Output, OutputFormat};
use crate::records::{PairOutput, WritePair};
use crate::state::Save;
use crate::task::TaskError;

/// Lines of comma-separated values, one per serde value; for structs, each part file begins with a header
/// line.
///
/// A field with a separator, a quote or a newline is quoted as in RFC 4180. Lines end in `\n`.
///
/// ```
/// use napreduce::Job;
/// use napreduce::rows::Csv;
/// use napreduce::testing::JobTest;
/// use serde::Serialize;
///
/// #[derive(Serialize)]
/// struct Measured<'a> {
///     line: &'a str,
///     length: usize,
/// }
///
/// let job = || {
///     Job::text().map_only_to(Csv::default(), |line: &str, out| {
///         out.emit(&Measured { line, length: line.len() });
///     })
/// };
/// let test = JobTest::new(job).input("to be, or\nnot\n");
/// assert_eq!(test.run().text(), "line,length\n\"to be, or\",9\nnot,3\n");
/// test.assert_preemption_safe();
///
/// let plain = || {
///     Job::text().map_only_to(Csv::default().delimiter(b'\t').without_header(), |line: &str, out| out.emit(&(line, 1)))
/// };
/// assert_eq!(JobTest::new(plain).input("to be\n").run().text(), "to be\t1\n");
/// ```
pub struct Csv {
    delimiter: u8,
    quote: u8,
    header: bool,
    /// Fields of the rows of this part, if it has a row already.
    width: Option<u32>,
    writer: Option<RowWriter>,
}

impl Default for Csv {
    fn default() -> Self {
        Csv {
            delimiter: b',',
            quote: b'"',
            header: true,
            width: None,
            writer: None,
        }
    }
}

/// A clone has no rows yet.
impl Clone for Csv {
    fn clone(&self) -> Self {
        Csv {
            delimiter: self.delimiter,
            quote: self.quote,
            header: self.header,
            ..Csv::default()
        }
    }
}

impl Csv {
    /// Sets the separator of fields instead of a comma, such as `b'\t'` or `b';'`.
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.delimiter = delimiter;
        self
    }

    /// Sets the quote character instead of `"`. Inside quotes it is doubled.
    pub fn quote(mut self, quote: u8) -> Self {
        self.quote = quote;
        self
    }

    /// Omits the header line.
    pub fn without_header(mut self) -> Self {
        self.header = false;
        self
    }

    fn write<T: Serialize + ?Sized>(&mut self, row: &T, out: &mut Vec<u8>) -> Result<(), String> {
        let header = self.header && self.width.is_none();
        let delimiter = self.delimiter;
        let quote = self.quote;
        let width = self.width;
        let writer = self
            .writer
            .get_or_insert_with(|| RowWriter::new(delimiter, quote, header, width));
        self.width = Some(writer.write(row, out)?);
        Ok(())
    }
}

impl OutputFormat for Csv {
    /// A row is not typed.
    type Item = ();

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        Option::<u32>::encode_owned(&self.width, true, state);
        Ok(Save::Saved)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        self.width = Option::<u32>::decode_owned(state)
            .map_err(|_| TaskError::task("the saved csv output does not match this program"))?;
        Ok(())
    }
}

impl Output<Csv> {
    /// Writes one row. A row that is not representable as one line of fields fails the task, such as one with
    /// a map.
    pub fn emit<T: Serialize + ?Sized>(&mut self, row: &T) {
        self.try_record(|format, out| format.write(row, out));
    }
}

const LISTS: &str = "rows of csv have a fixed number of fields, which lists and byte strings do not have; write JsonLines, or a \
                     text made of the list";

/// A row of the fields of the key and of the value. These have a fixed number, so a list is refused by the compiler:
///
/// ```compile_fail
/// use napreduce::rows::Csv;
/// use napreduce::{Job, testing::JobTest};
///
/// let top = || {
///     Job::text().flat_map(|line: &str| Some((line.to_owned(), line.len() as u64))).output(Csv::default()).top(2)
/// };
/// let _ = JobTest::new(top).run();
/// ```
impl<K: Key, V: Value> PairOutput<K, V> for Csv {
    type Record = ();
    type Format = Csv;

    fn into_format(self) -> Csv {
        const { assert!(!(K::VARIES || V::VARIES), "{}", LISTS) };
        self
    }
}

impl<K: Key, V: Value> WritePair<K, V> for Csv
where
    for<'a> K::Ref<'a>: Serialize,
    V::Owned: Serialize,
{
    fn write(out: &mut Output<Csv>, key: K::Ref<'_>, value: V::Owned) {
        out.emit(&(key, value));
    }
}

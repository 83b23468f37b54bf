//! Rows of comma-separated values, in both directions.
//!
//! What is in a record is parsed by `napreduce_connectors::csv`; here is how files are cut, and where rows begin.

mod reader;
mod writer;

use std::marker::PhantomData;
use std::path::Path;

use napreduce_connectors::csv::Syntax;

pub use self::reader::CsvRowReader;
pub use self::writer::Csv;
use super::TypedRow;
use crate::input::{BadRows, Compression, InputError, InputFormat, Split, Splitting, lines_splitting};

/// Rows of comma-separated values as values of the serde type `R`; made by [`Job::csv`](crate::Job::csv) and
/// [`Job::tsv`](crate::Job::tsv).
///
/// The first line of each file that is not empty names its columns. A struct takes the columns that its fields
/// are called like, in any order, and no others are decoded; any other type takes all of them in their order.
/// Empty lines are passed over. Lines end in `\n`, `\r\n` or `\r`. A field in quotes may hold separators and
/// doubled quotes, and newlines only if [`multiline`](CsvRows::multiline) is asked for.
///
/// A type that takes any value, such as one behind `#[serde(flatten)]`, gets numbers where a number says the
/// same as the field, and the field as it is written otherwise, or if the type takes nothing but text.
///
/// ```
/// use napreduce::Job;
/// use napreduce::rows::CsvRows;
/// use napreduce::testing::JobTest;
///
/// let job = || {
///     let format = CsvRows::<(String, u64)>::default().delimiter(b';').without_header();
///     Job::input(format).map_only(|(name, count), out| out.emit(name, count + 1))
/// };
/// assert_eq!(JobTest::new(job).input("\"a;b\";1\nc;2\n").run().text(), "a;b\t2\nc\t3\n");
/// ```
pub struct CsvRows<R> {
    dialect: Dialect,
    bad_rows: BadRows,
    row: PhantomData<fn() -> R>,
}

/// How a file is written.
#[derive(Clone, Copy)]
struct Dialect {
    syntax: Syntax,
    header: bool,
    multiline: bool,
}

impl<R> Default for CsvRows<R> {
    fn default() -> Self {
        let dialect = Dialect { syntax: Syntax::default(), header: true, multiline: false };
        CsvRows { dialect, bad_rows: BadRows::default(), row: PhantomData }
    }
}

impl<R> CsvRows<R> {
    /// What stands between fields instead of a comma: `b'\t'` or `b';'`.
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.dialect.syntax.delimiter = delimiter;
        self
    }

    /// The quote character instead of `"`.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::rows::CsvRows;
    /// use napreduce::testing::JobTest;
    ///
    /// let job = || {
    ///     let format = CsvRows::<(String, u64)>::default().without_header().quote(b'\'');
    ///     Job::input(format).map_only(|(name, count), out| out.emit(name, count))
    /// };
    /// assert_eq!(JobTest::new(job).input("'a,\"b\"',1\n").run().text(), "a,\"b\"\t1\n");
    /// ```
    pub fn quote(mut self, quote: u8) -> Self {
        self.dialect.syntax.quote = quote;
        self
    }

    /// Whether fields can be quoted, which is the default. Otherwise a quote is a character as any other.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::rows::CsvRows;
    /// use napreduce::testing::JobTest;
    ///
    /// let job = || {
    ///     let format = CsvRows::<(String, u64)>::default().without_header().quoting(false);
    ///     Job::input(format).map_only(|(name, count), out| out.emit(name, count))
    /// };
    /// assert_eq!(JobTest::new(job).input("\"a,1\n").run().text(), "\"a\t1\n");
    /// ```
    pub fn quoting(mut self, quoting: bool) -> Self {
        self.dialect.syntax.quoting = quoting;
        self
    }

    /// A character that makes the next one inside quotes part of the field, such as `b'\\'`. Doubled quotes
    /// still stand for one, unless [`double_quote(false)`](CsvRows::double_quote) says otherwise.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::rows::CsvRows;
    /// use napreduce::testing::JobTest;
    ///
    /// let job = || {
    ///     let format = CsvRows::<(String, u64)>::default().without_header().escape(b'\\');
    ///     Job::input(format).map_only(|(text, count), out| out.emit(text, count))
    /// };
    /// assert_eq!(JobTest::new(job).input("\"say \\\"hi\\\"\",1\n").run().text(), "say \"hi\"\t1\n");
    /// ```
    pub fn escape(mut self, escape: impl Into<Option<u8>>) -> Self {
        self.dialect.syntax.escape = escape.into();
        self
    }

    /// Whether two quotes inside quotes stand for one, which is the default.
    pub fn double_quote(mut self, double_quote: bool) -> Self {
        self.dialect.syntax.double_quote = double_quote;
        self
    }

    /// Files begin with their first row. Fields of a struct are taken in their order.
    pub fn without_header(mut self) -> Self {
        self.dialect.header = false;
        self
    }

    /// Newlines may stand inside quotes, where a lone `\r` may stand in any case. Where a row begins is then known
    /// only to whoever reads from the start, so each file is read by one task.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::rows::CsvRows;
    /// use napreduce::testing::JobTest;
    ///
    /// let job = || {
    ///     let format = CsvRows::<(String, u64)>::default().multiline();
    ///     Job::input(format).map_only(|(text, _), out| out.emit(text.len(), ()))
    /// };
    /// assert_eq!(JobTest::new(job).input("text,count\n\"to be\nor not\",1\n").run().text(), "12\n");
    /// ```
    pub fn multiline(mut self) -> Self {
        self.dialect.multiline = true;
        self
    }
}

impl<R: TypedRow> InputFormat for CsvRows<R> {
    type Record<'a> = R::Of<'a>;
    type Reader = CsvRowReader<R>;

    fn splitting(&self, path: &Path) -> Splitting {
        match Compression::of(path) {
            Some(compression) if self.dialect.multiline => Splitting::Compressed(compression),
            None if self.dialect.multiline => Splitting::FromStart,
            _ => lines_splitting(path),
        }
    }

    fn open_at(&self, split: &Split, offset: u64, memory: usize) -> Result<CsvRowReader<R>, InputError> {
        CsvRowReader::open(self.dialect, self.bad_rows, split, offset, memory)
    }

    fn take_bad_rows(&mut self, bad_rows: BadRows) {
        self.bad_rows = bad_rows;
    }
}

//! Rows of comma-separated values, for input and output: cutting of files and search for rows. The parser of
//! records is in `napreduce_connectors::csv`.

mod reader;
mod writer;

use std::marker::PhantomData;
use std::path::Path;

use napreduce_connectors::csv::Syntax;

pub use self::reader::CsvRowReader;
pub use self::writer::Csv;
use super::TypedRow;
use crate::input::{Compression, InputError, InputFormat, Skip, Split, Splitting, lines_splitting};

/// Rows of comma-separated values as values of the serde type `R`; made by [`Job::csv`](crate::Job::csv) and
/// [`Job::tsv`](crate::Job::tsv).
///
/// The first nonempty line of each file names its columns. A struct takes the columns with the names of its
/// fields, in any order, and no others are decoded; any other type takes all in order. Empty lines are
/// skipped. Lines end in `\n`, `\r\n` or `\r`. A quoted field may contain separators and doubled quotes, and
/// newlines only with [`multiline`](CsvRows::multiline).
///
/// A type that takes any value, such as one behind `#[serde(flatten)]`, gets a number if that prints like the
/// field, and otherwise, or if the type only takes text, the field as written.
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
    skip: Skip,
    row: PhantomData<fn() -> R>,
}

/// The syntax of a file.
#[derive(Clone, Copy)]
struct Dialect {
    syntax: Syntax,
    header: bool,
    multiline: bool,
}

impl<R> Default for CsvRows<R> {
    fn default() -> Self {
        let dialect = Dialect {
            syntax: Syntax::default(),
            header: true,
            multiline: false,
        };
        CsvRows {
            dialect,
            skip: Skip::default(),
            row: PhantomData,
        }
    }
}

impl<R> CsvRows<R> {
    /// Sets the separator of fields instead of a comma, such as `b'\t'` or `b';'`.
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.dialect.syntax.delimiter = delimiter;
        self
    }

    /// Sets the quote character instead of `"`.
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

    /// Sets whether fields can be quoted (default true). Otherwise a quote is an ordinary character.
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

    /// Sets a character that makes the next one inside quotes literal, such as `b'\\'`. Doubled quotes still
    /// stand for one, unless disabled by [`double_quote(false)`](CsvRows::double_quote).
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

    /// Sets whether two quotes inside quotes stand for one (default true).
    pub fn double_quote(mut self, double_quote: bool) -> Self {
        self.dialect.syntax.double_quote = double_quote;
        self
    }

    /// Reads files without a header line. The fields of a struct are taken in order.
    pub fn without_header(mut self) -> Self {
        self.dialect.header = false;
        self
    }

    /// Allows newlines inside quotes, where a lone `\r` is always allowed. Row boundaries are then known only
    /// when reading from the start, so one task reads each file.
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

    fn open_at(
        &self,
        split: &Split,
        offset: u64,
        memory: usize,
    ) -> Result<CsvRowReader<R>, InputError> {
        CsvRowReader::open(self.dialect, self.skip, split, offset, memory)
    }

    fn on_bad_input(&mut self, skip: Skip) {
        self.skip = skip;
    }
}

//! Rows of comma-separated values, in both directions.
//!
//! Owns the input format and which columns of a file become a row. Does not own the reading of a split
//! (`reader`), nor what a field is (`fields`).

mod fields;
mod reader;
mod writer;

use std::marker::PhantomData;
use std::path::Path;

use csv::{ByteRecord, ErrorKind};

use self::fields::{Taken, Unclosed, take_record};
pub use self::reader::CsvRowReader;
pub use self::writer::Csv;
use super::TypedRow;
use super::columns::columns;
use crate::input::{BadRows, Compression, InputError, InputFormat, Split, Splitting, lines_splitting};

/// Rows of comma-separated values as values of the serde type `R`; made by [`Job::csv`](crate::Job::csv) and
/// [`Job::tsv`](crate::Job::tsv).
///
/// The first line of each file names its columns. A struct takes the columns that its fields are called like,
/// in any order, and no others are decoded; any other type takes all of them in their order. Empty lines are
/// passed over. A field in quotes may hold separators and doubled quotes, and newlines only if
/// [`multiline`](CsvRows::multiline) is asked for.
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
    delimiter: u8,
    header: bool,
    multiline: bool,
}

impl<R> Default for CsvRows<R> {
    fn default() -> Self {
        let dialect = Dialect { delimiter: b',', header: true, multiline: false };
        CsvRows { dialect, bad_rows: BadRows::default(), row: PhantomData }
    }
}

impl<R> CsvRows<R> {
    /// What stands between fields instead of a comma: `b'\t'` or `b';'`.
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.dialect.delimiter = delimiter;
        self
    }

    /// Files begin with their first row. Fields of a struct are taken in their order.
    pub fn without_header(mut self) -> Self {
        self.dialect.header = false;
        self
    }

    /// Newlines may stand inside quotes. Where a row begins is then known only to whoever reads from the
    /// start, so each file is read by one task.
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

/// Which columns become rows, and the row that is being read.
struct Table {
    delimiter: u8,
    /// Fields that every row must have; `None` where nothing says so.
    fields: Option<usize>,
    /// Names and positions of the columns that are decoded, in the order of the file; `None` for all.
    header: Option<ByteRecord>,
    positions: Option<Vec<usize>>,
    record: ByteRecord,
    scratch: Vec<u8>,
}

impl Table {
    fn without_header(delimiter: u8) -> Table {
        let (record, scratch) = (ByteRecord::new(), Vec::new());
        Table { delimiter, fields: None, header: None, positions: None, record, scratch }
    }

    /// The columns of `R` in a file with this header; what is wrong with it, if none of them is there.
    fn of<R: TypedRow>(delimiter: u8, header: &ByteRecord) -> Result<Table, String> {
        let mut table = Table::without_header(delimiter);
        table.fields = Some(header.len());
        let wanted = columns::<R>();
        let is_wanted = |name: &[u8]| wanted.is_none_or(|wanted| wanted.iter().any(|w| w.as_bytes() == name));
        let positions: Vec<usize> =
            header.iter().enumerate().filter(|(_, name)| is_wanted(name)).map(|(at, _)| at).collect();
        if let Some(wanted) = wanted
            && positions.is_empty()
            && !wanted.is_empty()
        {
            return Err(format!(
                "none of the columns {} is in its header, which begins {:?}; check the names, the separator, and whether \
                 there is a header",
                wanted.join(", "),
                header.iter().take(8).map(String::from_utf8_lossy).collect::<Vec<_>>().join(",")
            ));
        }
        table.header = Some(positions.iter().filter_map(|at| header.get(*at)).collect());
        table.positions = wanted.map(|_| positions);
        Ok(table)
    }

    /// Takes the next record off the front of `bytes`, keeping the columns that are wanted.
    fn take(&mut self, bytes: &[u8], all: bool) -> Result<Option<Taken>, Unclosed> {
        let Table { record, scratch, positions, .. } = self;
        record.clear();
        let mut next = 0;
        take_record(bytes, all, self.delimiter, scratch, |number, field| match positions {
            None => record.push_field(field),
            Some(positions) if positions.get(next) == Some(&number) => {
                record.push_field(field);
                next += 1;
            }
            Some(_) => {}
        })
    }

    /// The row that was taken; what is wrong with it, if something is.
    fn row<R: TypedRow>(&self, taken: Taken) -> Result<R::Of<'_>, String> {
        if let Some(fields) = self.fields
            && fields != taken.fields
        {
            return Err(format!("it has {} fields where the header has {fields}", taken.fields));
        }
        self.record.deserialize(self.header.as_ref()).map_err(|error| match error.kind() {
            ErrorKind::Deserialize { err, .. } => {
                let name = err.field().and_then(|at| self.header.as_ref()?.get(usize::try_from(at).ok()?));
                match name {
                    Some(name) => format!("column {}: {}", String::from_utf8_lossy(name), err.kind()),
                    None => err.to_string(),
                }
            }
            _ => error.to_string(),
        })
    }
}

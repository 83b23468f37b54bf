//! Rows of Parquet files, for input and output. The file format is in `napreduce_connectors::parquet`.

mod reader;
mod writer;

use std::marker::PhantomData;
use std::path::Path;

use napreduce_connectors::parquet;

pub use self::reader::ParquetRowReader;
pub use self::writer::Parquet;
use super::TypedRow;
use crate::input::{InputError, InputFormat, Skip, Split, Splitting, container};

/// Rows of Parquet files as values of the serde type `R`; made by [`Job::parquet`](crate::Job::parquet).
///
/// A struct takes the columns with the names of its fields, in any order, and no others are read; any other
/// type takes all columns in order. A nullable column is an `Option`, a group a struct, a list a `Vec`;
/// dates, times and timestamps are numbers or texts, decimals texts. Pages may be uncompressed or use snappy,
/// gzip, brotli, lz4, and with the feature `parquet-zstd` zstd. A row group belongs to the split with its
/// first byte.
///
/// ```
/// use napreduce::rows::{Parquet, ParquetRows};
/// use napreduce::testing::JobTest;
/// use napreduce::{Job, borrowed};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Word {
///     word: String,
///     count: u32,
/// }
///
/// let write = || {
///     Job::text().map_only_to(Parquet::<Word>::default(), |line: &str, out| {
///         out.emit(&Word { word: line.to_owned(), count: 1 });
///     })
/// };
/// let file = JobTest::new(write).input("to\nbe\n").run().parts.concat();
///
/// #[derive(Deserialize)]
/// struct Name<'a> {
///     word: &'a str,
/// }
///
/// let words = || Job::input(ParquetRows::<borrowed!(Name)>::default()).map_only(|row, out| out.emit(row.word, ()));
/// let test = JobTest::new(words).input(file);
/// assert_eq!(test.run().text(), "to\nbe\n");
/// test.assert_preemption_safe();
/// ```
pub struct ParquetRows<R> {
    skip: Skip,
    row: PhantomData<fn() -> R>,
}

impl<R> Default for ParquetRows<R> {
    fn default() -> Self {
        ParquetRows {
            skip: Skip::default(),
            row: PhantomData,
        }
    }
}

impl<R: TypedRow> InputFormat for ParquetRows<R> {
    type Record<'a> = R::Of<'a>;
    type Reader = ParquetRowReader<R>;

    fn splitting(&self, _: &Path) -> Splitting {
        Splitting::Anywhere
    }

    fn check(&self, path: &Path) -> Result<(), InputError> {
        container::check(path, parquet::check)
    }

    fn open_at(
        &self,
        split: &Split,
        offset: u64,
        memory: usize,
    ) -> Result<ParquetRowReader<R>, InputError> {
        ParquetRowReader::open(self.skip, split, offset, memory)
    }

    fn on_bad_input(&mut self, skip: Skip) {
        self.skip = skip;
    }
}

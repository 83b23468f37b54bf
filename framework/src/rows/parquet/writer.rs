//! Writing rows of Parquet files.
//!
//! Owns the output format, the rows of the group that is still open, and what of both is kept in a
//! checkpoint. Does not own how a group becomes bytes (`encoding`).

use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::super::TypedRow;
use super::encoding::{Encoded, MAGIC, OpenRows};
use crate::output::{Output, OutputFormat};
use crate::state::Save;
use crate::task::TaskError;

/// Rows in a group, unless said otherwise: as many as DuckDB writes.
const GROUP_ROWS: usize = 122_880;

/// Parquet files, one for each part, of serde values of the type `R`, which says the columns.
///
/// A struct has a column for each field, an `Option` may hold nulls, an enum without data is a text. Pages
/// are in snappy. The rows of a group are kept in memory until it is full.
///
/// # Panics
///
/// A part whose row type has no columns that Parquet knows panics when it is begun, which fails its task: an
/// enum with data, or a type that does not say what it is made of, as `serde_json::Value`.
///
/// ```
/// use napreduce::rows::Parquet;
/// use napreduce::testing::JobTest;
/// use napreduce::{Emit, Job};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Counted {
///     word: String,
///     count: u64,
/// }
///
/// let count = || {
///     Job::text()
///         .map(|line: &str, out: &mut Emit<String, u64>| line.split(' ').for_each(|word| out.emit(word, 1)))
///         .output(Parquet::<Counted>::default())
///         .reduce(|word, counts, out| out.emit(&Counted { word: word.to_owned(), count: counts.sum() }))
/// };
/// let test = JobTest::new(count).input("to be or not to be\n");
/// let file = test.run().parts.concat();
/// test.assert_preemption_safe();
///
/// let text = || Job::parquet::<Counted>().map_only(|row, out| out.emit(row.word, row.count));
/// assert_eq!(JobTest::new(text).input(file).run().text(), "be\t2\nnot\t1\nor\t1\nto\t2\n");
/// ```
pub struct Parquet<R> {
    group_rows: usize,
    part: Mutex<Option<Part>>,
    row: PhantomData<fn() -> R>,
}

/// A part file that is being written.
struct Part {
    encoded: Encoded,
    rows: OpenRows,
}

impl<R> Default for Parquet<R> {
    fn default() -> Self {
        Parquet { group_rows: GROUP_ROWS, part: Mutex::new(None), row: PhantomData }
    }
}

/// A clone is a fresh format: what was begun stays where it was begun.
impl<R> Clone for Parquet<R> {
    fn clone(&self) -> Self {
        Parquet { group_rows: self.group_rows, ..Parquet::default() }
    }
}

impl<R> Parquet<R> {
    /// How many rows a group has instead of 122,880; at least 1. Fewer take less memory, which large
    /// rows may need.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::rows::Parquet;
    ///
    /// let job = Job::text().map_only_to(Parquet::<(String,)>::default().group_rows(1000), |line: &str, out| {
    ///     out.emit(&(line.to_owned(),));
    /// });
    /// # let _ = job;
    /// ```
    pub fn group_rows(mut self, rows: usize) -> Self {
        self.group_rows = rows.max(1);
        self
    }

    /// Nobody leaves it half-changed: what panics ends the task.
    fn part(&mut self) -> &mut Option<Part> {
        self.part.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: TypedRow> Parquet<R> {
    fn open() -> Result<Part, String> {
        let rows = OpenRows::of::<R>()?;
        Ok(Part { encoded: Encoded::new(rows.none())?, rows })
    }

    fn write(&mut self, row: &impl Serialize, out: &mut Vec<u8>) -> Result<(), String> {
        let group_rows = self.group_rows;
        let Some(Part { encoded, rows }) = self.part() else {
            return Err("the part was not begun".to_owned());
        };
        rows.push(row)?;
        if rows.count() == group_rows {
            encoded.add_group(&rows.take()?, out)?;
        }
        Ok(())
    }
}

impl<R: TypedRow> OutputFormat for Parquet<R> {
    fn begin(&mut self, out: &mut Vec<u8>) {
        match Self::open() {
            Ok(part) => *self.part() = Some(part),
            Err(reason) => {
                panic!("rows of {} cannot be written as Parquet: {reason}", std::any::type_name::<R>())
            }
        }
        out.extend_from_slice(MAGIC);
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        let unsaved =
            |reason| TaskError::task(format!("the rows of a parquet part cannot be saved: {reason}"));
        if let Some(Part { encoded, rows }) =
            self.part.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
        {
            encoded.save(&rows.all().map_err(unsaved)?, state).map_err(unsaved)?;
        }
        Ok(Save::Saved)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        let restored = Self::open().and_then(|Part { mut encoded, mut rows }| {
            rows.put_back(encoded.restore(state)?);
            Ok(Part { encoded, rows })
        });
        *self.part() = Some(restored.map_err(|reason| {
            TaskError::task(format!("parquet output was saved in another form than this program's: {reason}"))
        })?);
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(Part { mut encoded, mut rows }) = self.part().take() {
            let ended =
                rows.take().and_then(|rows| encoded.add_group(&rows, out)).and_then(|()| encoded.end(out));
            if let Err(reason) = ended {
                panic!("a part cannot be ended as Parquet: {reason}");
            }
        }
    }
}

impl<R: TypedRow> Output<Parquet<R>>
where
    for<'a> R::Of<'a>: Serialize,
{
    /// Writes one row.
    pub fn emit(&mut self, row: &R::Of<'_>) {
        self.try_record(|format, out| format.write(row, out));
    }
}

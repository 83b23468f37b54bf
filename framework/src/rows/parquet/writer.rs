//! Writing rows of Parquet files. The encoding is in `napreduce_connectors::parquet`.

use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use napreduce_connectors::parquet::{MAGIC, PartWriter};
use napreduce_protocol::lock;
use serde::Serialize;

use super::super::TypedRow;
use crate::codec::{Key, Value};
use crate::output::{Output, OutputFormat};
use crate::records::{PairOutput, WritePair};
use crate::state::Save;
use crate::task::TaskError;

/// Default number of rows in a group, as in DuckDB.
const GROUP_ROWS: usize = 122_880;

/// Output as Parquet files of serde values of type `R`, one file per part.
///
/// A struct has a column for each field; an `Option` is a nullable column, an enum without data a text. Pages
/// are compressed with snappy. The rows of a group are kept in memory until it is full.
///
/// # Panics
///
/// Panics at the start of a part, which fails the task, if the row type has no Parquet columns: an enum with
/// data, or a type without a fixed structure such as `serde_json::Value`.
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
    part: Mutex<Option<PartWriter>>,
    row: PhantomData<fn() -> R>,
}

impl<R> Default for Parquet<R> {
    fn default() -> Self {
        Parquet {
            group_rows: GROUP_ROWS,
            part: Mutex::new(None),
            row: PhantomData,
        }
    }
}

/// A clone has no rows yet.
impl<R> Clone for Parquet<R> {
    fn clone(&self) -> Self {
        Parquet {
            group_rows: self.group_rows,
            ..Parquet::default()
        }
    }
}

impl<R> Parquet<R> {
    /// Sets the number of rows per group instead of 122,880; at least 1. Fewer rows take less memory.
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

    /// A poisoned lock is harmless: a panic ends the task.
    fn part(&mut self) -> &mut Option<PartWriter> {
        self.part.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: TypedRow> Parquet<R> {
    fn open() -> Result<PartWriter, String> {
        PartWriter::new::<R::Of<'static>>()
    }

    fn write(&mut self, row: &impl Serialize, out: &mut Vec<u8>) -> Result<(), String> {
        let group_rows = self.group_rows;
        match self.part() {
            Some(part) => part.push(row, group_rows, out),
            None => Err("a row was written before the part began".to_owned()),
        }
    }
}

impl<R: TypedRow> OutputFormat for Parquet<R> {
    type Item = R;

    fn begin(&mut self, out: &mut Vec<u8>) {
        match Self::open() {
            Ok(part) => *self.part() = Some(part),
            Err(reason) => {
                panic!(
                    "row type {} has no Parquet columns: {reason}",
                    std::any::type_name::<R>()
                )
            }
        }
        out.extend_from_slice(MAGIC);
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        let unsaved =
            |reason| TaskError::task(format!("cannot save the rows of a parquet part: {reason}"));
        if let Some(part) = lock(&self.part).as_mut() {
            part.save(state).map_err(unsaved)?;
        }
        Ok(Save::Saved)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        let restored = Self::open().and_then(|mut part| {
            part.restore(state)?;
            Ok(part)
        });
        *self.part() = Some(restored.map_err(|reason| {
            TaskError::task(format!(
                "the saved parquet output does not match this program: {reason}"
            ))
        })?);
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(Err(reason)) = self.part().take().map(|part| part.end(out)) {
            panic!("cannot finish a Parquet part: {reason}");
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

/// A row made of key and value.
impl<K: Key, V: Value, R: TypedRow> PairOutput<K, V> for Parquet<R> {
    type Record = R;
    type Format = Parquet<R>;

    fn into_format(self) -> Parquet<R> {
        self
    }
}

impl<K, V, R> WritePair<K, V> for Parquet<R>
where
    K: Key,
    V: Value,
    R: for<'a> TypedRow<Of<'a> = R> + From<(K::Owned, V::Owned)> + Serialize,
{
    fn write(out: &mut Output<Parquet<R>>, key: K::Ref<'_>, value: V::Owned) {
        out.emit(&R::from((K::to_owned(key), value)));
    }
}

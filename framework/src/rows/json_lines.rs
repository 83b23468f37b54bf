//! Rows with one JSON value per line, for input and output. The parser is in
//! `napreduce_connectors::json_lines`.

use std::marker::PhantomData;
use std::path::Path;

use napreduce_connectors::json_lines;
use napreduce_task::ReadPosition;
use serde::Serialize;

use super::TypedRow;
use super::bad::{BadRow, BadRowGate, RowPlace};
use crate::codec::{Key, Value};
use crate::input::{
    InputError, InputFormat, LineBlocks, RecordReader, Skip, Split, Splitting, TextLines,
    for_each_line,
};
use crate::output::{Output, OutputFormat};
use crate::records::{PairOutput, WritePair};
use crate::state::Save;
use crate::task::TaskError;

/// Rows with one JSON value per line, as values of the serde type `R`; made by
/// [`Job::json_lines`](crate::Job::json_lines).
///
/// Members without a field in the struct are skipped, and so are empty lines. A borrowed `&str` takes only
/// strings without escapes; `#[serde(borrow)] Cow<str>` takes all. A row is bad if a type that takes any
/// number, such as one behind `#[serde(flatten)]`, would get an integer of more than 64 bits as a double.
///
/// ```
/// use napreduce::rows::JsonRows;
/// use napreduce::testing::JobTest;
/// use napreduce::{Job, borrowed};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Visit<'a> {
///     page: &'a str,
///     millis: u64,
/// }
///
/// let slow = || {
///     Job::input(JsonRows::<borrowed!(Visit)>::default()).map_only(|visit, out| {
///         if visit.millis > 100 {
///             out.emit(visit.page, visit.millis);
///         }
///     })
/// };
/// let test = JobTest::new(slow).input("{\"page\":\"/\",\"millis\":250}\n{\"millis\":5,\"page\":\"/a\",\"by\":[1]}\n");
/// assert_eq!(test.run().text(), "/\t250\n");
/// ```
pub struct JsonRows<R> {
    skip: Skip,
    row: PhantomData<fn() -> R>,
}

impl<R> Default for JsonRows<R> {
    fn default() -> Self {
        JsonRows {
            skip: Skip::default(),
            row: PhantomData,
        }
    }
}

/// Reads [`JsonRows`].
pub struct JsonRowReader<R> {
    lines: LineBlocks,
    gate: BadRowGate,
    row: PhantomData<fn() -> R>,
}

impl<R: TypedRow> InputFormat for JsonRows<R> {
    type Record<'a> = R::Of<'a>;
    type Reader = JsonRowReader<R>;

    fn splitting(&self, path: &Path) -> Splitting {
        TextLines.splitting(path)
    }

    fn open_at(
        &self,
        split: &Split,
        offset: u64,
        memory: usize,
    ) -> Result<JsonRowReader<R>, InputError> {
        let lines = LineBlocks::open(split, offset, memory)?;
        Ok(JsonRowReader {
            lines,
            gate: BadRowGate::new(self.skip, split, memory),
            row: PhantomData,
        })
    }

    fn on_bad_input(&mut self, skip: Skip) {
        self.skip = skip;
    }
}

impl<R: TypedRow> RecordReader<JsonRows<R>> for JsonRowReader<R> {
    fn read_batch<E: From<InputError>>(
        &mut self,
        each: &mut impl FnMut(R::Of<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        if !self.lines.advance()? {
            return Ok(false);
        }
        let mark = self.lines.mark()?;
        let block = self.lines.block();
        for_each_line(block, mark, |range| {
            let row = &block.bytes[range];
            if row.trim_ascii().is_empty() {
                return Ok(());
            }
            match json_lines::parse::<R::Of<'_>>(row, |line| json_lines::is_row::<R::Of<'_>>(line))
            {
                Ok(row) => each(row),
                Err(reason) => {
                    let place = RowPlace::Offset(block.line.get());
                    Ok(self.gate.pass(BadRow { place, row, reason })?)
                }
            }
        })?;
        Ok(true)
    }

    fn offset(&self) -> u64 {
        self.lines.offset()
    }

    fn consumed(&self) -> u64 {
        self.lines.consumed()
    }

    fn position(&self) -> Option<ReadPosition> {
        Some(self.lines.position())
    }

    fn byte_position(&self) -> Option<ReadPosition> {
        self.position()
    }
}

/// An output format with one JSON value per line.
///
/// ```
/// use napreduce::Job;
/// use napreduce::rows::JsonLines;
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
///     Job::text().map_only_to(JsonLines, |line: &str, out| out.emit(&Measured { line, length: line.len() }))
/// };
/// let test = JobTest::new(job).input("to \"be\"\n");
/// assert_eq!(test.run().text(), "{\"line\":\"to \\\"be\\\"\",\"length\":7}\n");
/// test.assert_preemption_safe();
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct JsonLines;

impl OutputFormat for JsonLines {
    type Item = String;

    fn save(&self, _: &mut Vec<u8>) -> Result<Save, TaskError> {
        Ok(Save::Stateless)
    }
}

impl Output<JsonLines> {
    /// Writes one row. A value without a JSON form fails the task, such as a map whose keys are not strings.
    /// Floats that are not finite are written as `null`.
    pub fn emit<T: Serialize + ?Sized>(&mut self, row: &T) {
        self.try_record(|_, out| json_lines::write(row, out));
    }
}

/// An array of key and value.
impl<K: Key, V: Value> PairOutput<K, V> for JsonLines {
    type Record = String;
    type Format = JsonLines;

    fn into_format(self) -> JsonLines {
        self
    }
}

impl<K: Key, V: Value> WritePair<K, V> for JsonLines
where
    for<'a> K::Ref<'a>: Serialize,
    V::Owned: Serialize,
{
    fn write(out: &mut Output<JsonLines>, key: K::Ref<'_>, value: V::Owned) {
        out.emit(&(key, value));
    }
}

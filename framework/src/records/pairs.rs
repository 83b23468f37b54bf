//! Typed pairs: text for people, records for programs.

use napreduce_protocol::TaskError;

use super::Records;
use crate::codec::{Field, Key, Value};
use crate::output::{Output, OutputFormat, Text, TextField, write_line};
use crate::state::Save;

/// Pairs of key and value in the form that their reader needs: lines of `key TAB value`, as [`Text`](crate::output::Text)
/// writes them, for a person, and [`Records`] for another job or the program itself.
///
/// The run chooses the form. A job has this format if it is finished by
/// [`count`](crate::builder::MapStage::count) or another method that returns pairs.
///
/// ```
/// use napreduce::records::Pairs;
/// use napreduce::testing::JobTest;
/// use napreduce::{Emit, Job};
///
/// fn longest() -> Job<(u64, String)> {
///     Job::text()
///         .map(|line: &str, out: &mut Emit<u64, String>| out.emit(line.len() as u64 % 2, line))
///         .output(Pairs::default())
///         .reduce(|is_odd, lines, out| {
///             let longest = lines.owned().max_by_key(String::len);
///             out.emit(is_odd, longest.unwrap_or_default());
///         })
/// }
/// assert_eq!(JobTest::new(longest).input("to\nbring\nmore\n").run().text(), "0\tmore\n1\tbring\n");
/// ```
pub struct Pairs<K, V> {
    /// `None` for text.
    records: Option<Records<K, V>>,
}

impl<K, V> Default for Pairs<K, V> {
    fn default() -> Self {
        Pairs { records: None }
    }
}

impl<K, V> Clone for Pairs<K, V> {
    fn clone(&self) -> Self {
        Pairs {
            records: self.records.clone(),
        }
    }
}

impl<K: Key, V: Value> OutputFormat for Pairs<K, V> {
    type Item = (K, V);

    fn take_records(&mut self, records: bool) {
        self.records = records.then(Records::default);
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if let Some(records) = &mut self.records {
            records.begin(out);
        }
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        self.records
            .as_ref()
            .map_or(Ok(Save::Stateless), |records| records.save(state))
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        self.records
            .as_mut()
            .map_or(Ok(()), |records| records.restore(state))
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(records) = &mut self.records {
            records.end(out);
        }
    }
}

impl<K: Key, V: Value> Output<Pairs<K, V>> {
    /// Writes one pair.
    #[inline]
    pub fn emit<A, B>(&mut self, key: A, value: B)
    where
        A: Field<Family = K> + TextField,
        B: Field<Family = V> + TextField,
    {
        self.record(|format, out| match &mut format.records {
            None => write_line(&key, &value, out),
            Some(records) => records.add(key.lend(), |out| V::encode(value.lend(), true, out), out),
        });
    }
}

/// An output format of pairs of key and value, which a fold such as [`count`](crate::builder::MapStage::count) can
/// write: [`Text`], which becomes [`Pairs`], [`Records`], and with their features `Csv`, `JsonLines` and
/// `Parquet<R>`, whose rows are made by `R::from((key, value))`.
///
/// The format is set before the fold:
///
/// ```
/// use napreduce::records::Records;
/// use napreduce::{Job, words};
///
/// fn wordcount() -> Job<(String, u64)> {
///     Job::text().flat_map(words).output(Records::default()).count()
/// }
/// # let test = napreduce::testing::JobTest::new(wordcount).input("to be\n");
/// # assert_eq!(test.run(), napreduce::testing::JobTest::new(|| Job::text().flat_map(words).count()).input("to be\n").for_next_job().run());
/// ```
#[diagnostic::on_unimplemented(
    message = "the output format `{Self}` cannot write pairs of `{K}` and `{V}`",
    label = "a fold cannot write this format",
    note = "set another format with `output` before the fold, such as `Records::default()`"
)]
pub trait PairOutput<K: Key, V: Value>: OutputFormat {
    /// The type as which a pair is read back.
    type Record;
    /// The format of the part files.
    type Format: OutputFormat<Item = Self::Record>;

    /// Returns the format of the part files.
    fn into_format(self) -> Self::Format;
}

/// An output format with a method for pairs of these types.
///
/// ```
/// use napreduce::output::Text;
/// use napreduce::records::{PairOutput, Pairs, WritePair};
///
/// fn is_written_by_folds<O: PairOutput<String, u64, Format: WritePair<String, u64>>>(_: O) {}
/// is_written_by_folds(Text);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot write pairs of `{K}` and `{V}`",
    label = "cannot be written",
    note = "lines of text need a `TextField` for key and value, csv and JSON lines need `serde::Serialize`, and \
            `Parquet<R>` needs `R: From<(key, value)>`; or set another format with `output` before the fold, such as \
            `Records::default()`"
)]
pub trait WritePair<K: Key, V: Value>: OutputFormat {
    /// Writes one pair.
    fn write(out: &mut Output<Self>, key: K::Ref<'_>, value: V::Owned);
}

impl<K: Key, V: Value> PairOutput<K, V> for Text {
    type Record = (K, V);
    type Format = Pairs<K, V>;

    fn into_format(self) -> Pairs<K, V> {
        Pairs::default()
    }
}

impl<K: Key, V: Value> WritePair<K, V> for Pairs<K, V>
where
    for<'a> K::Ref<'a>: TextField,
    V::Owned: TextField,
{
    #[inline]
    fn write(out: &mut Output<Pairs<K, V>>, key: K::Ref<'_>, value: V::Owned) {
        out.record(|format, out| match &mut format.records {
            None => write_line(&key, &value, out),
            Some(records) => records.add(key, |out| V::encode_owned(&value, true, out), out),
        });
    }
}

impl<K: Key, V: Value> PairOutput<K, V> for Records<K, V> {
    type Record = (K, V);
    type Format = Records<K, V>;

    fn into_format(self) -> Records<K, V> {
        self
    }
}

impl<K: Key, V: Value> WritePair<K, V> for Records<K, V> {
    #[inline]
    fn write(out: &mut Output<Records<K, V>>, key: K::Ref<'_>, value: V::Owned) {
        out.record(|format, out| format.add(key, |out| V::encode_owned(&value, true, out), out));
    }
}

//! Typed pairs: text for people, records for programs.

use napreduce_protocol::TaskError;

use super::Records;
use crate::codec::{Field, Key, Value};
use crate::output::{Output, OutputFormat, TextField, write_line};
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
/// fn longest(_: &()) -> Job<(u64, String)> {
///     Job::text()
///         .map(|line: &str, out: &mut Emit<u64, String>| out.emit(line.len() as u64 % 2, line))
///         .output(Pairs::default())
///         .reduce(|is_odd, lines, out| {
///             let longest = lines.owned().max_by_key(String::len);
///             out.emit(is_odd, longest.unwrap_or_default());
///         })
/// }
/// assert_eq!(JobTest::new(|| longest(&())).input("to\nbring\nmore\n").run().text(), "0\tmore\n1\tbring\n");
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
        Pairs { records: self.records.clone() }
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
        self.records.as_ref().map_or(Ok(Save::Stateless), |records| records.save(state))
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        self.records.as_mut().map_or(Ok(()), |records| records.restore(state))
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

    /// Writes a pair of the key of a group and an owned value.
    #[inline]
    pub(crate) fn emit_owned<'a>(&mut self, key: K::Ref<'a>, value: &V::Owned)
    where
        K::Ref<'a>: TextField,
        V::Owned: TextField,
    {
        self.record(|format, out| match &mut format.records {
            None => write_line(&key, value, out),
            Some(records) => records.add(key, |out| V::encode_owned(value, true, out), out),
        });
    }
}

//! The handle through which a map emits records. It encodes typed keys and values for the collector, or takes
//! a sample of keys.

use std::any::Any;

use napreduce_data::{
    CollectError, CollectStatistics, Collector, SavePlace, SavedCollection, SealedSegment,
};

use crate::codec::{Key, Value};
use crate::input::InputPlace;

/// The destination of the records of a map. `K` and `V` are families: `Emit<String, u64>` emits `&str` keys.
///
/// It is the last parameter of a map, and its type determines the types of keys and values:
///
/// ```
/// use napreduce::testing::JobTest;
/// use napreduce::{Emit, Job};
///
/// let by_length = || {
///     Job::text()
///         .map(|line: &str, out: &mut Emit<u64, String>| {
///             out.emit(line.len() as u64, line);
///             assert!(out.records() > 0);
///         })
///         .reduce(|length, lines, out| out.emit(length, lines.count()))
/// };
/// assert_eq!(JobTest::new(by_length).input("to\nbe\nnot\n").run().text(), "2\t2\n3\t1\n");
/// ```
pub struct Emit<K: Key, V: Value> {
    sink: Sink<K, V>,
    key_buffer: Vec<u8>,
    value_buffer: Vec<u8>,
    records: u64,
    input: Option<InputPlace>,
}

#[allow(
    clippy::large_enum_variant,
    reason = "the large variant is the one on the hot path"
)]
enum Sink<K: Key, V: Value> {
    Collect(Collector<V::Owned>),
    /// Keys only, to find the cuts of a total order.
    Sample(Vec<Vec<u8>>),
    /// Values are emitted as the second field of their keys.
    InKeys(Box<dyn EmitInKeys<K, V>>),
}

/// An [`Emit`] of compound keys. A trait object, because not every value can be a field of a key.
trait EmitInKeys<K: Key, V: Value>: Any {
    fn emit(&mut self, key: K::Ref<'_>, value: V::Ref<'_>);
    fn check(&mut self) -> Result<(), CollectError>;
    fn sampled(&self) -> usize;
}

impl<K: Key, V: Key> EmitInKeys<K, V> for Emit<(K, V), ()> {
    /// Encodes the fields one by one, because they have different lifetimes.
    fn emit(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) {
        self.records += 1;
        let bytes = &mut self.key_buffer;
        bytes.clear();
        K::encode_key(key, false, bytes);
        V::encode_key(value, true, bytes);
        match &mut self.sink {
            Sink::Collect(collector) if collector.combines() => collector.emit_value(bytes, (), 0),
            Sink::Collect(collector) => collector.emit_bytes(bytes, &[]),
            Sink::Sample(keys) => keys.push(bytes.clone()),
            Sink::InKeys(_) => {
                unreachable!("compound keys are emitted into a collector or a sample")
            }
        }
    }

    fn check(&mut self) -> Result<(), CollectError> {
        Emit::check(self)
    }

    fn sampled(&self) -> usize {
        Emit::sampled(self)
    }
}

impl<K: Key, V: Key> Emit<(K, V), ()> {
    /// Takes values instead of the second field of the key.
    pub(crate) fn take_values(self) -> Emit<K, V> {
        Emit {
            records: self.records,
            ..Emit::new(Sink::InKeys(Box::new(self)))
        }
    }
}

impl<K: Key, V: Key> Emit<K, V> {
    /// Undoes [`take_values`](Emit::take_values).
    pub(crate) fn into_keys_with_values(self) -> Emit<(K, V), ()> {
        let Sink::InKeys(out) = self.sink else {
            unreachable!("it was made by `take_values`")
        };
        let out: Box<dyn Any> = out;
        *out.downcast()
            .expect("the types of key and value are the same")
    }
}

impl<K: Key, V: Value> Emit<K, V> {
    /// Continues after `records` records of earlier attempts.
    pub(crate) fn into_collector(collector: Collector<V::Owned>, records: u64) -> Self {
        Emit {
            records,
            ..Self::new(Sink::Collect(collector))
        }
    }

    pub(crate) fn into_sample() -> Self {
        Self::new(Sink::Sample(Vec::new()))
    }

    fn new(sink: Sink<K, V>) -> Self {
        let key_buffer = Vec::new();
        let value_buffer = Vec::new();
        Emit {
            sink,
            key_buffer,
            value_buffer,
            records: 0,
            input: None,
        }
    }

    /// Emits one record. An error, such as a full disk while spilling, ends the task after the current batch.
    #[inline]
    pub fn emit(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) {
        self.records += 1;
        match &mut self.sink {
            Sink::Collect(collector) if collector.combines() => {
                let value = V::to_owned(value);
                let heap_bytes = V::heap_bytes(&value);
                collector.emit_value(K::key_bytes(key, &mut self.key_buffer), value, heap_bytes);
            }
            Sink::Collect(collector) => {
                let key = K::key_bytes(key, &mut self.key_buffer);
                collector.emit_bytes(key, V::bytes(value, &mut self.value_buffer));
            }
            Sink::Sample(keys) => keys.push(K::key_bytes(key, &mut self.key_buffer).to_vec()),
            Sink::InKeys(out) => out.emit(key, value),
        }
    }

    /// Returns the number of records emitted so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns the position of the current record: file, byte and line. They are computed on demand.
    ///
    /// ```
    /// use napreduce::testing::JobTest;
    /// use napreduce::{Emit, Job, words};
    ///
    /// /// On which lines each word is.
    /// let index = || {
    ///     Job::text()
    ///         .map(|text: &str, out: &mut Emit<String, u64>| {
    ///             let line = out.input().line().unwrap_or(0);
    ///             words(text).for_each(|word| out.emit(word, line));
    ///         })
    ///         .reduce(|word, lines, out| out.emit(word, lines.owned().map(|line| format!(" {line}")).collect::<String>()))
    /// };
    /// let test = JobTest::new(index).input("to be or\nnot\nto be\n");
    /// assert_eq!(test.run().text(), "be\t 1 3\nnot\t 2\nor\t 1\nto\t 1 3\n");
    /// test.assert_preemption_safe();
    /// ```
    pub fn input(&self) -> InputPlace {
        self.input
            .clone()
            .expect("a map emits when it has begun to read")
    }

    /// Returns the place of the current record, if records are being read.
    pub(crate) fn place(&self) -> Option<&InputPlace> {
        self.input.as_ref()
    }

    pub(crate) fn enter(&mut self, place: InputPlace) {
        self.input = Some(place);
    }

    pub(crate) fn check(&mut self) -> Result<(), CollectError> {
        match &mut self.sink {
            Sink::Collect(collector) => collector.check(),
            Sink::Sample(_) => Ok(()),
            Sink::InKeys(out) => out.check(),
        }
    }

    pub(crate) fn seal(self) -> Result<(SealedSegment, CollectStatistics), CollectError> {
        match self.sink {
            Sink::Collect(collector) => collector.finish(),
            Sink::Sample(_) | Sink::InKeys(_) => unreachable!("only a map task seals its output"),
        }
    }

    /// Saves the emitted records for a checkpoint.
    pub(crate) fn save(self, place: &SavePlace) -> Result<SavedCollection, CollectError> {
        match self.sink {
            Sink::Collect(collector) => collector.save(place),
            Sink::Sample(_) | Sink::InKeys(_) => unreachable!("only a map task saves its output"),
        }
    }

    pub(crate) fn sampled(&self) -> usize {
        match &self.sink {
            Sink::Collect(_) => 0,
            Sink::Sample(keys) => keys.len(),
            Sink::InKeys(out) => out.sampled(),
        }
    }

    pub(crate) fn into_sampled_keys(self) -> Vec<Vec<u8>> {
        match self.sink {
            Sink::Collect(_) | Sink::InKeys(_) => Vec::new(),
            Sink::Sample(keys) => keys,
        }
    }
}

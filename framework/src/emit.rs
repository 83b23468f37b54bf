//! The handle through which a map emits records. It encodes typed keys and values for the collector, or takes
//! a sample of keys.

use std::any::Any;
use std::sync::Arc;

use napreduce_data::{CollectError, CollectStatistics, Collector, SavePlace, SavedCollection, SealedSegment};

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

#[allow(clippy::large_enum_variant, reason = "the large variant is the one on the hot path")]
enum Sink<K: Key, V: Value> {
    Collect(Collector<V::Owned>),
    /// Keys only, to find the cuts of a total order.
    Sample(Vec<Vec<u8>>),
    /// Records of other types are emitted instead.
    Convert(Box<dyn Conversion<K, V>>),
}

/// The conversion of emitted records, with the types of its result erased.
trait Conversion<K: Key, V: Value>: Any {
    fn emit(&mut self, key: K::Ref<'_>, value: V::Ref<'_>);
    fn check(&mut self) -> Result<(), CollectError>;
    fn sampled(&self) -> usize;
}

/// A conversion by a function from one record to records of other types.
struct Converter<K: Key, V: Value, F> {
    out: Emit<K, V>,
    convert: Arc<F>,
}

impl<K, V, L, W, F> Conversion<K, V> for Converter<L, W, F>
where
    K: Key,
    V: Value,
    L: Key,
    W: Value,
    F: Fn(K::Ref<'_>, V::Ref<'_>, &mut Emit<L, W>) + 'static,
{
    #[inline]
    fn emit(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) {
        (self.convert)(key, value, &mut self.out);
    }

    fn check(&mut self) -> Result<(), CollectError> {
        self.out.check()
    }

    fn sampled(&self) -> usize {
        self.out.sampled()
    }
}

impl<A: Key, B: Key, V: Value> Emit<(A, B), V> {
    /// Emits a record whose key fields have different lifetimes.
    #[inline]
    pub(crate) fn emit_fields(&mut self, first: A::Ref<'_>, second: B::Ref<'_>, value: V::Owned) {
        self.records += 1;
        self.key_buffer.clear();
        A::encode(first, false, &mut self.key_buffer);
        B::encode(second, true, &mut self.key_buffer);
        put_owned(&mut self.sink, &self.key_buffer, value, &mut self.value_buffer);
    }
}

/// Puts an encoded key and an owned value into a sink.
#[inline]
fn put_owned<K: Key, V: Value>(sink: &mut Sink<K, V>, key: &[u8], value: V::Owned, buffer: &mut Vec<u8>) {
    match sink {
        Sink::Collect(collector) if collector.combines() => collector.emit_value(key, value),
        Sink::Collect(collector) => {
            buffer.clear();
            V::encode_owned(&value, true, buffer);
            collector.emit_bytes(key, buffer);
        }
        Sink::Sample(keys) => keys.push(key.to_vec()),
        Sink::Convert(_) => unreachable!("a conversion emits into a collector or a sample"),
    }
}

impl<K: Key, V: Value> Emit<K, V> {
    /// Continues after `records` records of earlier attempts.
    pub(crate) fn into_collector(collector: Collector<V::Owned>, records: u64) -> Self {
        Emit { records, ..Self::new(Sink::Collect(collector)) }
    }

    pub(crate) fn into_sample() -> Self {
        Self::new(Sink::Sample(Vec::new()))
    }

    /// Converts each record by `convert` and emits the result into `out`.
    pub(crate) fn converting<L, W, F>(out: Emit<L, W>, convert: Arc<F>) -> Self
    where
        L: Key,
        W: Value,
        F: Fn(K::Ref<'_>, V::Ref<'_>, &mut Emit<L, W>) + 'static,
    {
        let records = out.records;
        Emit { records, ..Self::new(Sink::Convert(Box::new(Converter { out, convert }))) }
    }

    /// Returns the output of a conversion by a function of the type of `convert`.
    pub(crate) fn into_converted<L: Key, W: Value, F: 'static>(self, _convert: &F) -> Emit<L, W> {
        let Sink::Convert(conversion) = self.sink else { unreachable!("it was made by `converting`") };
        let conversion: Box<dyn Any> = conversion;
        let converter: Box<Converter<L, W, F>> = conversion.downcast().expect("its types are unchanged");
        converter.out
    }

    fn new(sink: Sink<K, V>) -> Self {
        let (key_buffer, value_buffer) = (Vec::new(), Vec::new());
        Emit { sink, key_buffer, value_buffer, records: 0, input: None }
    }

    /// Emits one record. An error, such as a full disk while spilling, ends the task after the current batch.
    #[inline]
    pub fn emit(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) {
        self.records += 1;
        match &mut self.sink {
            Sink::Collect(collector) if collector.combines() => {
                collector.emit_value(K::bytes(key, &mut self.key_buffer), V::to_owned(value));
            }
            Sink::Collect(collector) => {
                let key = K::bytes(key, &mut self.key_buffer);
                collector.emit_bytes(key, V::bytes(value, &mut self.value_buffer));
            }
            Sink::Sample(keys) => keys.push(K::bytes(key, &mut self.key_buffer).to_vec()),
            Sink::Convert(conversion) => conversion.emit(key, value),
        }
    }

    /// As `emit`, for a value in owned form.
    #[inline]
    pub(crate) fn emit_owned(&mut self, key: K::Ref<'_>, value: V::Owned) {
        self.records += 1;
        let key = K::bytes(key, &mut self.key_buffer);
        put_owned(&mut self.sink, key, value, &mut self.value_buffer);
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
        self.input.clone().expect("a map emits when it has begun to read")
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
            Sink::Convert(conversion) => conversion.check(),
        }
    }

    pub(crate) fn seal(self) -> Result<(SealedSegment, CollectStatistics), CollectError> {
        match self.sink {
            Sink::Collect(collector) => collector.finish(),
            Sink::Sample(_) | Sink::Convert(_) => unreachable!("only a map task seals its output"),
        }
    }

    /// Saves the emitted records for a checkpoint.
    pub(crate) fn save(self, place: &SavePlace) -> Result<SavedCollection, CollectError> {
        match self.sink {
            Sink::Collect(collector) => collector.save(place),
            Sink::Sample(_) | Sink::Convert(_) => unreachable!("only a map task saves its output"),
        }
    }

    pub(crate) fn sampled(&self) -> usize {
        match &self.sink {
            Sink::Collect(_) => 0,
            Sink::Sample(keys) => keys.len(),
            Sink::Convert(conversion) => conversion.sampled(),
        }
    }

    pub(crate) fn into_sampled_keys(self) -> Vec<Vec<u8>> {
        match self.sink {
            Sink::Collect(_) | Sink::Convert(_) => Vec::new(),
            Sink::Sample(keys) => keys,
        }
    }
}

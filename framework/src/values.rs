//! The values of one group, lent one at a time, so that a group of any size takes constant memory.

use std::iter;
use std::marker::PhantomData;

use napreduce_data::{ReduceError, ReduceInput};
use napreduce_protocol::TaskError;
use napreduce_task::{Boundary, TaskContext};

use crate::codec::{DecodeError, Key, Scratch, Value};
use crate::numbers::Sum;

/// The reason why the values ended before their group.
pub(crate) enum ValuesError {
    Input(ReduceError),
    /// A suspend or checkpoint request between two values.
    Boundary(TaskError),
    Decode {
        what: &'static str,
        error: DecodeError,
    },
}

/// The values of one group, ordered by the rest of the key, then by map task, then as emitted.
///
/// | values are | read them by |
/// |---|---|
/// | added up, counted, folded | [`sum`](Values::sum), [`count`](Values::count), [`fold`](Values::fold) |
/// | numbers, or other values that are `Copy` | `for value in values` |
/// | looked at one after another | `while let Some(value) = values.next()`: text and bytes are borrowed until the next call |
/// | kept | [`owned`](Values::owned), an iterator that clones each: `values.owned().collect()` |
///
/// Values are read once. After a method that reads all of them, such as [`sum`](Values::sum),
/// [`count`](Values::count) returns how many they were; other methods then fail the task. Several results of one pass
/// are computed in a loop or by [`fold`](Values::fold):
///
/// ```
/// # let _ = |delays: &mut napreduce::Values<'_, String, u64>| {
/// let mean = delays.sum() as f64 / delays.count() as f64;
/// # mean
/// # };
/// # let _ = |delays: &mut napreduce::Values<'_, String, u64>| {
/// let (least, most) = delays.fold((u64::MAX, 0), |(least, most), next| (next.min(least), next.max(most)));
/// # (least, most)
/// # };
/// ```
///
/// ```
/// use napreduce::testing::JobTest;
/// use napreduce::{Emit, Job};
///
/// let longest = || {
///     Job::text()
///         .map(|line: &str, out: &mut Emit<(), String>| out.emit((), line))
///         .reduce(|(), lines, out| {
///             let mut longest = String::new();
///             while let Some(line) = lines.next() {
///                 if line.len() > longest.len() {
///                     longest = line.to_owned();
///                 }
///             }
///             out.emit(longest, ());
///         })
/// };
/// assert_eq!(JobTest::new(longest).input("or\nnot\nbe\n").run().text(), "not\n");
/// ```
///
/// Values are ordered by the key fields after the group: the key `(String, u64)`, grouped by `String`, orders
/// the values of each string by the number, which [`next_entry`](Values::next_entry) returns with them.
pub struct Values<'g, K: Key, V: Value> {
    input: &'g mut ReduceInput,
    scratch: &'g mut Scratch,
    pub(crate) gate: GroupGate<'g>,
    /// The method that has read all values.
    pass: Option<Pass>,
    types: PhantomData<fn(K, V)>,
}

/// A method that has read all remaining values.
#[derive(Clone, Copy)]
struct Pass {
    method: &'static str,
    values: u64,
}

/// Checks for suspend and checkpoint requests between two values.
pub(crate) struct GroupGate<'c> {
    context: &'c TaskContext,
    /// The reducer can be called again for the rest of a group.
    resumes: bool,
    /// This call has returned a value, so the reducer has made progress.
    moved: bool,
    /// The error that ended the values early.
    pub(crate) error: Option<ValuesError>,
    /// The rest of the group is for another call of the reducer.
    pub(crate) cut: bool,
    /// A checkpoint was requested and waits for the end of the group.
    pub(crate) due: bool,
}

impl<'c> GroupGate<'c> {
    pub(crate) fn new(context: &'c TaskContext, resumes: bool) -> Self {
        GroupGate {
            context,
            resumes,
            moved: false,
            error: None,
            cut: false,
            due: false,
        }
    }

    /// Returns whether there may be another value.
    #[inline]
    fn is_open(&mut self, input: &ReduceInput) -> bool {
        if self.error.is_some() || self.cut {
            return false;
        }
        if self.context.is_asked() {
            self.pass(input)
        } else {
            true
        }
    }

    /// Handles a pending request for progress, suspend or checkpoint. A reducer that can be called again
    /// returns first, so that its hooks can be called. Another one is suspended here, or reduces the group to
    /// its end before its checkpoint.
    #[cold]
    fn pass(&mut self, input: &ReduceInput) -> bool {
        if !self.context.tell(Some(input.statistics().bytes)) {
            return true;
        }
        if self.resumes {
            self.cut = std::mem::replace(&mut self.moved, true);
            return !self.cut;
        }
        if !self.due {
            match self.context.boundary_within(&mut ()) {
                Ok(boundary) => self.due = boundary == Boundary::Checkpoint,
                Err(error) => self.error = Some(ValuesError::Boundary(error)),
            }
        }
        self.error.is_none()
    }
}

impl<'g, K: Key, V: Value> Values<'g, K, V> {
    pub(crate) fn new(
        input: &'g mut ReduceInput,
        scratch: &'g mut Scratch,
        gate: GroupGate<'g>,
    ) -> Self {
        Values {
            input,
            scratch,
            gate,
            pass: None,
            types: PhantomData,
        }
    }

    /// Returns the next value; `None` at the end of the group.
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "an Iterator cannot lend")]
    pub fn next(&mut self) -> Option<V::Ref<'_>> {
        if !self.gate.is_open(self.input) {
            return None;
        }
        self.scratch.reset();
        match self.input.next_value() {
            Ok(Some((_, bytes))) => {
                keep(decode_value::<V>(bytes, self.scratch), &mut self.gate.error)
            }
            Ok(None) => {
                reject_second_pass(self.pass, "next");
                None
            }
            Err(error) => keep(Err(ValuesError::Input(error)), &mut self.gate.error),
        }
    }

    /// Returns the next value with its full key, for groups made by a prefix of the key.
    ///
    /// ```
    /// use napreduce::testing::JobTest;
    /// use napreduce::{Emit, Job};
    ///
    /// let first_line_of_each_length = || {
    ///     Job::text()
    ///         .map(|line: &str, out: &mut Emit<(u64, String), ()>| out.emit((line.len() as u64, line), ()))
    ///         .group_by::<u64>()
    ///         .reduce(|length, lines, out| {
    ///             if let Some(((_, line), ())) = lines.next_entry() {
    ///                 out.emit(length, line);
    ///             }
    ///         })
    /// };
    /// let output = JobTest::new(first_line_of_each_length).input("to\nbe\nor\nnot\n").run();
    /// assert_eq!(output.text(), "2\tbe\n3\tnot\n");
    /// ```
    #[inline]
    pub fn next_entry(&mut self) -> Option<(K::Ref<'_>, V::Ref<'_>)> {
        if !self.gate.is_open(self.input) {
            return None;
        }
        self.scratch.reset();
        match self.input.next_value() {
            Ok(Some((key, value))) => {
                let entry = K::decode_whole(key, self.scratch)
                    .map_err(|error| ValuesError::Decode { what: "key", error })
                    .and_then(|key| Ok((key, decode_value::<V>(value, self.scratch)?)));
                keep(entry, &mut self.gate.error)
            }
            Ok(None) => {
                reject_second_pass(self.pass, "next_entry");
                None
            }
            Err(error) => keep(Err(ValuesError::Input(error)), &mut self.gate.error),
        }
    }

    /// Returns the encodings of the next key and value.
    pub(crate) fn next_encoded(&mut self) -> Option<(&[u8], &[u8])> {
        if !self.gate.is_open(self.input) {
            return None;
        }
        keep(
            self.input.next_value().map_err(ValuesError::Input),
            &mut self.gate.error,
        )?
    }

    /// Returns whether the values ended before the group because the task must stop here. Only a reducer that
    /// [`resumes_in_group`](crate::Reducer::resumes_in_group) sees `true`: it returns and is called again for
    /// the rest.
    ///
    /// ```
    /// # use napreduce::output::Text;
    /// # use napreduce::{Output, TaskError, Values};
    /// # #[derive(Clone)]
    /// # struct Count(u64);
    /// # impl napreduce::Reducer for Count {
    /// #     type Group = String;
    /// #     type Key = String;
    /// #     type Value = u64;
    /// #     type Output = Text;
    /// fn resumes_in_group(&self) -> bool {
    ///     true
    /// }
    ///
    /// fn reduce(
    ///     &mut self,
    ///     word: &str,
    ///     ones: &mut Values<'_, String, u64>,
    ///     out: &mut Output<Text>,
    /// ) -> Result<(), TaskError> {
    ///     self.0 += ones.sum();
    ///     if !ones.is_cut() {
    ///         out.emit(word, std::mem::take(&mut self.0));
    ///     }
    ///     Ok(())
    /// }
    /// # }
    /// ```
    pub fn is_cut(&self) -> bool {
        self.gate.cut
    }

    /// Folds the remaining values.
    ///
    /// ```
    /// # let _ = |maxima: &mut napreduce::Values<'_, String, u64>| {
    /// let largest = maxima.fold(0, |largest, next| next.max(largest));
    /// # largest
    /// # };
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if another method has read all values, which fails the task.
    #[inline]
    pub fn fold<A>(&mut self, start: A, fold: impl FnMut(A, V::Ref<'_>) -> A) -> A {
        self.read_all("fold", start, fold)
    }

    /// Adds up the remaining values. Integers are added exactly, as by the
    /// [`sum`](crate::builder::MapStage::sum) of a job, in every build; floats in their order.
    ///
    /// The values of a group that [is cut](Values::is_cut) are added up to the cut.
    ///
    /// # Panics
    ///
    /// Panics if the sum of integers is outside the range of their type, or if another method has read all values.
    /// This fails the task.
    #[inline]
    pub fn sum(&mut self) -> V
    where
        V: Sum,
    {
        let total = self.read_all("sum", V::Total::zero(), |mut total, value| {
            total.add(V::to_owned(value).widen());
            total
        });
        V::narrow(total)
    }

    /// Counts the remaining values. If a method such as [`sum`](Values::sum) has read all values before, returns how
    /// many it has read.
    pub fn count(&mut self) -> u64 {
        if let Some(pass) = self.pass {
            return pass.values;
        }
        self.read_all("count", (), |(), _| ());
        self.pass.map_or(0, |pass| pass.values)
    }

    /// Reads the values to their end on behalf of a method.
    #[inline]
    fn read_all<A>(
        &mut self,
        method: &'static str,
        start: A,
        mut fold: impl FnMut(A, V::Ref<'_>) -> A,
    ) -> A {
        reject_second_pass(self.pass, method);
        let mut result = start;
        let mut values = 0;
        while let Some(value) = self.next() {
            values += 1;
            result = fold(result, value);
        }
        self.pass = Some(Pass { method, values });
        result
    }

    /// Returns the remaining values as an iterator that clones each, for values that are kept.
    ///
    /// An adapter such as `take` or `map` may leave values, so a method after it reads the rest and does not fail: after
    /// `owned().map(..).collect()` there are none.
    ///
    /// ```
    /// # let _ = |lines: &mut napreduce::Values<'_, String, String>| {
    /// let mut sorted: Vec<String> = lines.owned().collect();
    /// sorted.sort_by_key(String::len);
    /// # };
    /// ```
    pub fn owned(&mut self) -> OwnedValues<'_, 'g, K, V> {
        OwnedValues { values: self }
    }
}

/// Makes `for value in values` a loop over numbers and other values that are `Copy`. Text and bytes would be cloned:
/// borrow them with [`next`](Values::next), or clone them with [`owned`](Values::owned).
///
/// ```
/// use napreduce::testing::JobTest;
/// use napreduce::{Emit, Job};
///
/// let largest = || {
///     Job::text()
///         .map(|line: &str, out: &mut Emit<(), u64>| out.emit((), line.len() as u64))
///         .reduce(|(), lengths, out| {
///             let mut largest = 0;
///             for length in lengths {
///                 largest = length.max(largest);
///             }
///             out.emit(largest, ());
///         })
/// };
/// assert_eq!(JobTest::new(largest).input("to\nbring\nmore\n").run().text(), "5\n");
/// ```
impl<'v, 'g, K: Key, V: Value<Owned: Copy>> IntoIterator for &'v mut Values<'g, K, V> {
    type Item = V::Owned;
    type IntoIter = OwnedValues<'v, 'g, K, V>;

    fn into_iter(self) -> OwnedValues<'v, 'g, K, V> {
        self.owned()
    }
}

/// An iterator that clones the values of a group; made by [`Values::owned`].
pub struct OwnedValues<'v, 'g, K: Key, V: Value> {
    values: &'v mut Values<'g, K, V>,
}

impl<K: Key, V: Value> Iterator for OwnedValues<'_, '_, K, V> {
    type Item = V::Owned;

    #[inline]
    fn next(&mut self) -> Option<V::Owned> {
        self.values.next().map(V::to_owned)
    }

    #[inline]
    fn fold<A, F: FnMut(A, V::Owned) -> A>(self, start: A, mut fold: F) -> A {
        self.values.read_all("owned", start, |result, value| {
            fold(result, V::to_owned(value))
        })
    }

    /// Reads all values, as `fold` does. An adapter such as `take` collects by `next`, and may leave some.
    fn collect<C: FromIterator<V::Owned>>(mut self) -> C {
        reject_second_pass(self.values.pass, "owned");
        let mut count = 0;
        let mut has_ended = false;
        let counted = iter::from_fn(|| {
            let value = self.next();
            match value {
                Some(_) => count += 1,
                None => has_ended = true,
            }
            value
        });
        let collection = C::from_iter(counted);
        // A collection of options ends at the first `None`.
        if has_ended {
            self.values.pass = Some(Pass {
                method: "owned",
                values: count,
            });
        }
        collection
    }
}

/// Fails the task if a method reads values that another one has read to their end: it would find none.
#[inline]
fn reject_second_pass(pass: Option<Pass>, method: &str) {
    if let Some(Pass {
        method: before,
        values,
    }) = pass
    {
        panic!(
            "`{method}` finds no values, because `{before}` has read all {values}: the values of a group are read once; \
             compute both results in one pass with `fold`, or keep the values with `owned().collect()`"
        );
    }
}

#[inline]
fn decode_value<'a, V: Value>(
    bytes: &'a [u8],
    scratch: &'a Scratch,
) -> Result<V::Ref<'a>, ValuesError> {
    V::decode_whole(bytes, scratch).map_err(|error| ValuesError::Decode {
        what: "value",
        error,
    })
}

/// Keeps the first error for the task to report; user code only sees the end of the group.
#[inline]
fn keep<T>(result: Result<T, ValuesError>, error: &mut Option<ValuesError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(first) => {
            *error = Some(first);
            None
        }
    }
}

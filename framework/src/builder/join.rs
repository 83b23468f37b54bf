//! Joins of two typed inputs by key. A row travels with its key and the side it is of, so that a reduce gets the
//! left rows of a key before the right ones.

use std::fmt::Display;
use std::marker::PhantomData;
use std::sync::Arc;

use napreduce_protocol::TaskError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::codec::{Field, Key, Serde, Value, tagged};
use crate::emit::Emit;
use crate::input::InputFormat;
use crate::output::{Output, OutputFormat, Text};
use crate::records::{Pairs, TypedRecords};
use crate::state::Save;
use crate::user_code::{NoCombine, Outcome, Reducer, TaskInfo};
use crate::values::Values;

use super::Job;
use super::inputs::InputMaps;
use super::stages::MapStage;

/// Left rows of one key may take this part of the memory of a task.
const MEMORY_SHARE: u64 = 2;

/// A row of either input.
#[derive(Serialize, Deserialize)]
pub enum Row<L, R> {
    /// A row of the left input.
    Left(L),
    /// A row of the right input.
    Right(R),
}

/// A row with its key, as a join reads it: a pair, an `Option` to leave rows out, or a `Result` whose error fails
/// the task as that of [`map`](super::Source::map) does.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a row with its key",
    label = "not a pair of key and row",
    note = "return `(key, row)`, or an `Option` or a `Result` of it"
)]
pub trait Keyed {
    /// The family of the key.
    type Key: Key;
    /// The row.
    type Row;

    /// Passes key and row on, if there are any.
    fn pass(
        self,
        to: impl FnOnce(<Self::Key as Value>::Ref<'_>, Self::Row),
    ) -> Result<(), TaskError>;
}

impl<A: Field<Family: Key>, T> Keyed for (A, T) {
    type Key = A::Family;
    type Row = T;

    #[inline]
    fn pass(self, to: impl FnOnce(<A::Family as Value>::Ref<'_>, T)) -> Result<(), TaskError> {
        let (key, row) = self;
        to(key.lend(), row);
        Ok(())
    }
}

impl<T: Keyed> Keyed for Option<T> {
    type Key = T::Key;
    type Row = T::Row;

    #[inline]
    fn pass(self, to: impl FnOnce(<T::Key as Value>::Ref<'_>, T::Row)) -> Result<(), TaskError> {
        self.map_or(Ok(()), |keyed| keyed.pass(to))
    }
}

impl<T: Keyed, E: Display + 'static> Keyed for Result<T, E> {
    type Key = T::Key;
    type Row = T::Row;

    #[inline]
    fn pass(self, to: impl FnOnce(<T::Key as Value>::Ref<'_>, T::Row)) -> Result<(), TaskError> {
        match self {
            Ok(keyed) => keyed.pass(to),
            Err(error) => Err::<(), E>(error).outcome(),
        }
    }
}

/// A type of rows that a join can shuffle: any serde type that owns what it holds.
pub trait JoinRow: Serialize + DeserializeOwned + Send + Sync + 'static {}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> JoinRow for T {}

/// The left input of a join; made by [`Job::join`].
#[must_use = "a join has two inputs: call `with`"]
pub struct JoinLeft<I, F> {
    name: String,
    format: I,
    keyed: F,
}

impl<I: InputFormat, F> JoinLeft<I, F> {
    pub(super) fn new(name: &str, format: I, keyed: F) -> JoinLeft<I, F> {
        JoinLeft {
            name: name.to_owned(),
            format,
            keyed,
        }
    }

    /// Adds the right input, with the same type of key.
    pub fn with<T, J, H, U>(self, name: &str, format: J, keyed: H) -> Join<T::Key, T::Row, U::Row>
    where
        F: Fn(I::Record<'_>) -> T + Send + Sync + 'static,
        T: Keyed<Row: JoinRow>,
        J: InputFormat,
        H: Fn(J::Record<'_>) -> U + Send + Sync + 'static,
        U: Keyed<Key = T::Key, Row: JoinRow>,
    {
        let JoinLeft {
            name: left_name,
            format: left_format,
            keyed: left_keyed,
        } = self;
        let stage = MapStage::over(InputMaps::none(), Text, Vec::new())
            .add(
                &left_name,
                left_format,
                move |record: I::Record<'_>, out: &mut Rows<T::Key, T::Row, U::Row>| {
                    left_keyed(record).pass(|key, row| out.emit((key, false), Row::Left(row)))
                },
            )
            .add(
                name,
                format,
                move |record: J::Record<'_>, out: &mut Rows<T::Key, T::Row, U::Row>| {
                    keyed(record).pass(|key, row| out.emit((key, true), Row::Right(row)))
                },
            )
            .group_by::<T::Key>();
        Join {
            stage,
            left_name,
            output: (),
        }
    }
}

/// The output of both maps. The flag is true for right rows, which come after left ones.
type Rows<K, L, R> = Emit<(K, bool), Serde<Row<L, R>>>;

/// Both maps, grouped by the key of the join.
type RowStage<K, L, R> = MapStage<(K, bool), Serde<Row<L, R>>, NoCombine, K, Text>;

/// Two inputs by key, without a choice of rows yet.
///
/// The closure of each method is called for pairs of a left and a right row with equal keys: for each right row in
/// the order of its input, with all left rows. It writes pairs of key and value, whose types are inferred, unless
/// [`output`](Join::output) chooses another format, `O`. The left rows of one key are kept in memory; so choose the input
/// with fewer rows per key as the left one.
///
/// A task can be checkpointed between any two rows.
#[must_use = "a join is no job before its rows are chosen: call `inner`, `left`, `right` or `full`"]
pub struct Join<K: Key, L: JoinRow, R: JoinRow, O = ()> {
    stage: RowStage<K, L, R>,
    left_name: String,
    output: O,
}

/// The names of the inputs of [`Join::of_records`].
pub(crate) const RECORD_INPUTS: [&str; 2] = ["left", "right"];

impl<K: Key, L: JoinRow, R: JoinRow> Join<K, L, R> {
    /// Joins two inputs of typed records, whose values are the rows.
    pub(crate) fn of_records<V: Value<Owned = L>, W: Value<Owned = R>>() -> Join<K, L, R> {
        let [left, right] = RECORD_INPUTS;
        let stage = MapStage::over(InputMaps::none(), Text, Vec::new())
            .add(
                left,
                TypedRecords::<K, V>::default(),
                |(key, row), out: &mut Rows<K, L, R>| {
                    out.emit((key, false), Row::Left(V::to_owned(row)));
                },
            )
            .add(
                right,
                TypedRecords::<K, W>::default(),
                |(key, row), out: &mut Rows<K, L, R>| {
                    out.emit((key, true), Row::Right(W::to_owned(row)));
                },
            )
            .group_by::<K>();
        Join {
            stage,
            left_name: left.to_owned(),
            output: (),
        }
    }
}

impl<K: Key, L: JoinRow, R: JoinRow, O> Join<K, L, R, O> {
    /// Sets the number of reduce tasks, unless the command line or the driver sets it.
    pub fn reduces(self, reduces: u32) -> Self {
        Join {
            stage: self.stage.reduces(reduces),
            ..self
        }
    }

    /// Sets another output format than pairs.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::input::TextLines;
    /// use napreduce::output::FixedBytes;
    /// use napreduce::testing::JobTest;
    ///
    /// let common = || {
    ///     Job::join("one", TextLines, |letter| (letter.to_owned(), ()))
    ///         .with("other", TextLines, |letter| (letter.to_owned(), ()))
    ///         .output(FixedBytes { length: 1 })
    ///         .inner(|letter, (), (), out| out.write(letter.as_bytes()))
    /// };
    /// let test = JobTest::new(common).input_named("one", "a\nb\nc\n").input_named("other", "c\na\n");
    /// assert_eq!(test.run().text(), "ac");
    /// ```
    pub fn output<P: OutputFormat>(self, format: P) -> Join<K, L, R, P> {
        Join {
            stage: self.stage,
            left_name: self.left_name,
            output: format,
        }
    }
}

/// The output is pairs of key and value: text, or typed records where another job or the program reads it.
impl<K: Key, L: JoinRow, R: JoinRow> Join<K, L, R>
where
    for<'a> K::Ref<'a>: Copy,
{
    /// Joins the rows whose key is in both inputs.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::input::TextLines;
    /// use napreduce::testing::JobTest;
    ///
    /// fn fields(line: &str) -> Option<(String, String)> {
    ///     line.split_once(',').map(|(id, field)| (id.to_owned(), field.to_owned()))
    /// }
    ///
    /// fn named() -> Job<(String, String)> {
    ///     Job::join("users", TextLines, fields)
    ///         .with("orders", TextLines, fields)
    ///         .inner(|_, user, amount, out| out.emit(user, amount))
    /// }
    ///
    /// let test = JobTest::new(named)
    ///     .input_named("users", "1,ann\n2,bob\n")
    ///     .input_named("orders", "2,30\n1,12\n3,99\n2,7\n");
    /// assert_eq!(test.run().text(), "ann\t12\nbob\t30\nbob\t7\n");
    /// test.assert_preemption_safe();
    /// ```
    pub fn inner<A: Key, B: Value, F, O>(self, each: F) -> Job<(A, B)>
    where
        F: Fn(K::Ref<'_>, &L, &R, &mut Output<Pairs<A, B>>) -> O + Send + Sync + 'static,
        O: Outcome,
    {
        self.output(Pairs::default()).inner(each)
    }

    /// Joins all left rows; those without a right row once, with `None`.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::input::TextLines;
    /// use napreduce::testing::JobTest;
    ///
    /// let idle = || {
    ///     Job::join("users", TextLines, |name| (name.to_owned(), ()))
    ///         .with("orders", TextLines, |user| (user.to_owned(), ()))
    ///         .left(|name, (), order, out| if order.is_none() { out.emit(name, ()) })
    /// };
    /// let test = JobTest::new(idle).input_named("users", "ann\nbob\n").input_named("orders", "bob\neve\n");
    /// assert_eq!(test.run().text(), "ann\n");
    /// ```
    pub fn left<A: Key, B: Value, F, O>(self, each: F) -> Job<(A, B)>
    where
        F: Fn(K::Ref<'_>, &L, Option<&R>, &mut Output<Pairs<A, B>>) -> O + Send + Sync + 'static,
        O: Outcome,
    {
        self.output(Pairs::default()).left(each)
    }

    /// Joins all right rows; those without a left row once, with `None`.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::input::TextLines;
    /// use napreduce::testing::JobTest;
    ///
    /// let strangers = || {
    ///     Job::join("users", TextLines, |name| (name.to_owned(), ()))
    ///         .with("orders", TextLines, |user| (user.to_owned(), ()))
    ///         .right(|name, user, (), out| if user.is_none() { out.emit(name, ()) })
    /// };
    /// let test = JobTest::new(strangers).input_named("users", "ann\nbob\n").input_named("orders", "bob\neve\n");
    /// assert_eq!(test.run().text(), "eve\n");
    /// ```
    pub fn right<A: Key, B: Value, F, O>(self, each: F) -> Job<(A, B)>
    where
        F: Fn(K::Ref<'_>, Option<&L>, &R, &mut Output<Pairs<A, B>>) -> O + Send + Sync + 'static,
        O: Outcome,
    {
        self.output(Pairs::default()).right(each)
    }

    /// Joins all rows; those without a row of the other input once, with `None`.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::input::TextLines;
    /// use napreduce::testing::JobTest;
    ///
    /// let changes = || {
    ///     Job::join("old", TextLines, |line| (line.to_owned(), ()))
    ///         .with("new", TextLines, |line| (line.to_owned(), ()))
    ///         .full(|line, old, new, out| match (old, new) {
    ///             (None, _) => out.emit("+", line),
    ///             (_, None) => out.emit("-", line),
    ///             _ => {}
    ///         })
    /// };
    /// let test = JobTest::new(changes).input_named("old", "be\nto\n").input_named("new", "be\nor\n");
    /// assert_eq!(test.run().text(), "+\tor\n-\tto\n");
    /// ```
    pub fn full<A: Key, B: Value, F, O>(self, each: F) -> Job<(A, B)>
    where
        F: Fn(K::Ref<'_>, Option<&L>, Option<&R>, &mut Output<Pairs<A, B>>) -> O
            + Send
            + Sync
            + 'static,
        O: Outcome,
    {
        self.output(Pairs::default()).full(each)
    }
}

/// The output has a chosen format.
impl<K: Key, L: JoinRow, R: JoinRow, O: OutputFormat> Join<K, L, R, O>
where
    for<'a> K::Ref<'a>: Copy,
{
    /// Joins the rows whose key is in both inputs.
    pub fn inner<F, T>(self, each: F) -> Job<O::Item>
    where
        F: Fn(K::Ref<'_>, &L, &R, &mut Output<O>) -> T + Send + Sync + 'static,
        T: Outcome,
    {
        self.reduce(false, false, move |key, left, right, out| {
            match (left, right) {
                (Some(left), Some(right)) => each(key, left, right, out).outcome(),
                _ => Ok(()),
            }
        })
    }

    /// Joins all left rows; those without a right row once, with `None`.
    pub fn left<F, T>(self, each: F) -> Job<O::Item>
    where
        F: Fn(K::Ref<'_>, &L, Option<&R>, &mut Output<O>) -> T + Send + Sync + 'static,
        T: Outcome,
    {
        self.reduce(true, false, move |key, left, right, out| match left {
            Some(left) => each(key, left, right, out).outcome(),
            None => Ok(()),
        })
    }

    /// Joins all right rows; those without a left row once, with `None`.
    pub fn right<F, T>(self, each: F) -> Job<O::Item>
    where
        F: Fn(K::Ref<'_>, Option<&L>, &R, &mut Output<O>) -> T + Send + Sync + 'static,
        T: Outcome,
    {
        self.reduce(false, true, move |key, left, right, out| match right {
            Some(right) => each(key, left, right, out).outcome(),
            None => Ok(()),
        })
    }

    /// Joins all rows; those without a row of the other input once, with `None`.
    pub fn full<F, T>(self, each: F) -> Job<O::Item>
    where
        F: Fn(K::Ref<'_>, Option<&L>, Option<&R>, &mut Output<O>) -> T + Send + Sync + 'static,
        T: Outcome,
    {
        self.reduce(true, true, move |key, left, right, out| {
            each(key, left, right, out).outcome()
        })
    }

    fn reduce<F>(self, keep_left: bool, keep_right: bool, each: F) -> Job<O::Item>
    where
        F: Fn(K::Ref<'_>, Option<&L>, Option<&R>, &mut Output<O>) -> Result<(), TaskError>
            + Send
            + Sync
            + 'static,
    {
        let join = JoinReducer {
            each: Arc::new(each),
            left_name: self.left_name,
            keep_left,
            keep_right,
            bytes_max: u64::MAX,
            group: Group::default(),
            types: PhantomData,
        };
        self.stage.output(self.output).reducer(join)
    }
}

/// The reduce of a join.
struct JoinReducer<K, L, R, O, F> {
    each: Arc<F>,
    left_name: String,
    keep_left: bool,
    keep_right: bool,
    /// Limit of the left rows of one key.
    bytes_max: u64,
    group: Group<L>,
    types: PhantomData<fn(K, R) -> O>,
}

/// The rows of one key that were read so far.
#[derive(Serialize, Deserialize)]
struct Group<L> {
    left: Vec<L>,
    /// Encoded length of the left rows.
    bytes: u64,
    has_right: bool,
}

impl<L> Default for Group<L> {
    fn default() -> Self {
        Group {
            left: Vec::new(),
            bytes: 0,
            has_right: false,
        }
    }
}

/// A clone has read no rows.
impl<K, L, R, O, F> Clone for JoinReducer<K, L, R, O, F> {
    fn clone(&self) -> Self {
        let each = Arc::clone(&self.each);
        let left_name = self.left_name.clone();
        JoinReducer {
            each,
            left_name,
            group: Group::default(),
            ..*self
        }
    }
}

impl<K, L, R, O, F> Reducer for JoinReducer<K, L, R, O, F>
where
    K: Key,
    for<'a> K::Ref<'a>: Copy,
    L: JoinRow,
    R: JoinRow,
    O: OutputFormat,
    F: Fn(K::Ref<'_>, Option<&L>, Option<&R>, &mut Output<O>) -> Result<(), TaskError>
        + Send
        + Sync
        + 'static,
{
    type Group = K;
    type Key = (K, bool);
    type Value = Serde<Row<L, R>>;
    type Output = O;

    fn setup(&mut self, task: &TaskInfo, _: &mut Output<O>) -> Result<(), TaskError> {
        if let Some(context) = task.context {
            self.bytes_max = context.memory() / MEMORY_SHARE;
        }
        Ok(())
    }

    fn reduce(
        &mut self,
        key: K::Ref<'_>,
        rows: &mut Values<'_, (K, bool), Serde<Row<L, R>>>,
        out: &mut Output<O>,
    ) -> Result<(), TaskError> {
        let group = &mut self.group;
        while let Some((_, encoded)) = rows.next_encoded() {
            match Serde::<Row<L, R>>::decode_owned(encoded)? {
                Row::Left(row) => {
                    group.bytes += encoded.len() as u64;
                    if group.bytes > self.bytes_max {
                        return Err(too_many(&self.left_name, self.bytes_max));
                    }
                    group.left.push(row);
                }
                Row::Right(row) => {
                    group.has_right = true;
                    if group.left.is_empty() && self.keep_right {
                        (self.each)(key, None, Some(&row), out)?;
                    }
                    for left in &group.left {
                        (self.each)(key, Some(left), Some(&row), out)?;
                    }
                }
            }
        }
        if rows.is_cut() {
            return Ok(());
        }
        if self.keep_left && !group.has_right {
            for left in &group.left {
                (self.each)(key, Some(left), None, out)?;
            }
        }
        *group = Group::default();
        Ok(())
    }

    fn resumes_in_group(&self) -> bool {
        true
    }

    fn has_suspend_hooks(&self) -> bool {
        false
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        // Each row was checked when it was emitted.
        tagged::append_unchecked(&self.group, state).map_err(|error| {
            TaskError::fatal(format!("the rows of a join cannot be saved: {error}"))
        })?;
        Ok(Save::Saved)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        let restored = tagged::decode(state);
        self.group = restored.map_err(|error| {
            TaskError::task(format!("the rows of a join cannot be restored: {error}"))
        })?;
        Ok(())
    }
}

#[cold]
fn too_many(left: &str, bytes_max: u64) -> TaskError {
    TaskError::fatal(format!(
        "join: the rows of one key in the left input {left:?} take more than {bytes_max} bytes, half of the memory of \
         the task; make the other input the left one, or raise --task-memory"
    ))
}

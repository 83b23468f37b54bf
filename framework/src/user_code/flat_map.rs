//! Maps that return what they emit: a function from a record to keys, or to pairs of key and value.

use std::fmt::Display;
use std::marker::PhantomData;
use std::sync::Arc;

use napreduce_protocol::TaskError;

use crate::codec::{Field, Key, KeyAlone, Value};
use crate::emit::Emit;
use crate::input::InputFormat;
use crate::state::Save;

use super::mapper::Mapper;
use super::outcome::Outcome;

/// An item that a map emits: a pair of key and value, or a key alone, whose value is `()`.
///
/// A tuple of two is always a pair; a key of several fields is the first of a pair: `((a, b), ())`. An item may be
/// a `Result`, whose error fails the task as that of [`map`](crate::builder::Source::map) does.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a key nor a pair of key and value",
    label = "cannot be emitted",
    note = "return items like `key`, `(key, value)` or a `Result` of them; a key of several fields is `((a, b), ())`",
    note = "keys and values are text, bytes, numbers of a fixed size (not `usize`), tuples of these, and types that \
            implement `codec::Field`; or use `map`, whose `Emit<K, V>` names the types"
)]
pub trait KeyOrPair {
    /// The family of the key.
    type Key: Key;
    /// The family of the value.
    type Value: Value;

    /// Emits the item.
    fn emit(self, out: &mut Emit<Self::Key, Self::Value>) -> Result<(), TaskError>;
}

impl<T: KeyAlone<Family: Key>> KeyOrPair for T {
    type Key = T::Family;
    type Value = ();

    #[inline]
    fn emit(self, out: &mut Emit<T::Family, ()>) -> Result<(), TaskError> {
        out.emit(self.lend(), ());
        Ok(())
    }
}

impl<A: Field<Family: Key>, B: Field> KeyOrPair for (A, B) {
    type Key = A::Family;
    type Value = B::Family;

    #[inline]
    fn emit(self, out: &mut Emit<A::Family, B::Family>) -> Result<(), TaskError> {
        out.emit(self.0.lend(), self.1.lend());
        Ok(())
    }
}

impl<T: KeyOrPair, E: Display + 'static> KeyOrPair for Result<T, E> {
    type Key = T::Key;
    type Value = T::Value;

    #[inline]
    fn emit(self, out: &mut Emit<T::Key, T::Value>) -> Result<(), TaskError> {
        match self {
            Ok(item) => item.emit(out),
            Err(error) => Err::<(), E>(error).outcome(),
        }
    }
}

/// A function from a record to the items that it emits; implemented by functions and closures that return an
/// iterator.
///
/// Sealed: made for [`flat_map`](crate::builder::Source::flat_map).
#[diagnostic::on_unimplemented(
    message = "this does not map a record to keys or pairs",
    label = "not a map from a record to an iterator of keys or pairs",
    note = "pass a function, or a closure with the type of its parameter that returns owned items: \
            `|line: &str| Some(line.len() as u64)`",
    note = "a closure cannot return an iterator that borrows from its parameter: pass the function itself, such as \
            `words`, or use `map` with `Emit`"
)]
pub trait FlatMap<'r, I: InputFormat, K: Key, V: Value> {
    /// Returns whether the function returns a `Result` as its iterator, which would drop errors.
    fn drops_errors() -> bool;

    /// Emits all items of a record.
    fn emit_all(&self, record: I::Record<'r>, out: &mut Emit<K, V>) -> Result<(), TaskError>;
}

impl<'r, I, K, V, F, T> FlatMap<'r, I, K, V> for F
where
    I: InputFormat,
    K: Key,
    V: Value,
    F: Fn(I::Record<'r>) -> T,
    T: IntoIterator<Item: KeyOrPair<Key = K, Value = V>>,
{
    fn drops_errors() -> bool {
        std::any::type_name::<T>().starts_with("core::result::Result<")
    }

    #[inline]
    fn emit_all(&self, record: I::Record<'r>, out: &mut Emit<K, V>) -> Result<(), TaskError> {
        for item in self(record) {
            item.emit(out)?;
        }
        Ok(())
    }
}

/// A function from a record to items, as a mapper.
pub(crate) struct FlatMapper<I, K, V, F> {
    function: Arc<F>,
    types: PhantomData<fn(I) -> (K, V)>,
}

impl<I, K, V, F> FlatMapper<I, K, V, F>
where
    I: InputFormat,
    K: Key,
    V: Value,
    F: for<'r> FlatMap<'r, I, K, V>,
{
    pub(crate) fn new(function: F) -> Self {
        assert!(
            !F::drops_errors(),
            "flat_map: the closure returns a `Result`, so its errors would be dropped; return `[result]` to fail the \
             task at an error, or `result.ok()` to drop it"
        );
        FlatMapper {
            function: Arc::new(function),
            types: PhantomData,
        }
    }
}

impl<I, K, V, F> Clone for FlatMapper<I, K, V, F> {
    fn clone(&self) -> Self {
        FlatMapper {
            function: Arc::clone(&self.function),
            types: PhantomData,
        }
    }
}

impl<I, K, V, F> Mapper for FlatMapper<I, K, V, F>
where
    I: InputFormat,
    K: Key,
    V: Value,
    F: for<'r> FlatMap<'r, I, K, V> + Send + Sync + 'static,
{
    type Input = I;
    type Key = K;
    type Value = V;

    #[inline]
    fn map(&mut self, record: I::Record<'_>, out: &mut Emit<K, V>) -> Result<(), TaskError> {
        self.function.emit_all(record, out)
    }

    /// A closure cannot change its captures, except through interior mutability.
    fn save(&self, _: &mut Vec<u8>) -> Result<Save, TaskError> {
        Ok(Save::Stateless)
    }

    fn has_suspend_hooks(&self) -> bool {
        false
    }
}

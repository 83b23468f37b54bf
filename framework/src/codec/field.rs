//! Rust values as fields of a record: each type names the family as which it travels.

use std::borrow::Cow;
use std::cmp::Reverse;

use super::{List, Value};

/// A Rust value, borrowed or owned, that names its family: `&str` and `String` travel as a `String`, numbers as
/// themselves, and tuples as tuples of the families of their fields.
///
/// [`flat_map`](crate::builder::Source::flat_map) infers the types of keys and values by it. A type with
/// `#[derive(Key)]` or `#[derive(Value)]` has it, too:
///
/// ```
/// use napreduce::testing::JobTest;
/// use napreduce::{Job, Key};
///
/// #[derive(Key)]
/// struct Cell(i32, i32);
///
/// let cells = || {
///     Job::text()
///         .flat_map(|line: &str| Some((Cell(line.len() as i32, 0), 1u64)))
///         .reduce(|Cell(x, y), ones, out| out.emit((x, y), ones.sum()))
/// };
/// assert_eq!(JobTest::new(cells).input("to\nbe\nnot\n").run().text(), "2\t0\t2\n3\t0\t1\n");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name the type as which it travels in a record",
    label = "not a field of a record",
    note = "return text, bytes, numbers of a fixed size (not `usize`), or tuples of these; implement `codec::Field` \
            for your own type; or use `map`, whose `Emit<K, V>` names the types"
)]
pub trait Field {
    /// The family as which it travels.
    type Family: Value;

    /// Lends it to be encoded, without a copy of text or bytes.
    fn lend(&self) -> <Self::Family as Value>::Ref<'_>;
}

/// A field that [`flat_map`](crate::builder::Source::flat_map) can emit as a key without a value: any but a tuple,
/// because a tuple of two is a pair of key and value.
///
/// ```
/// use napreduce::codec::KeyAlone;
///
/// fn is_a_key_alone<K: KeyAlone>(_: K) {}
/// is_a_key_alone("word");
/// is_a_key_alone(Some(7u64));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key without a value",
    label = "not a key",
    note = "a key of several fields is the first of a pair: `((a, b), ())`"
)]
pub trait KeyAlone: Field {}

impl<T: Field + ?Sized> Field for &T {
    type Family = T::Family;

    #[inline]
    fn lend(&self) -> <T::Family as Value>::Ref<'_> {
        T::lend(self)
    }
}

macro_rules! fields_by_value {
    ($($type:ty)*) => {$(
        impl Field for $type {
            type Family = $type;

            #[inline]
            fn lend(&self) -> $type {
                *self
            }
        }

        impl KeyAlone for $type {}
    )*};
}

fields_by_value!(() bool char u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64);

impl<const N: usize> Field for [u8; N] {
    type Family = [u8; N];

    #[inline]
    fn lend(&self) -> [u8; N] {
        *self
    }
}

impl<const N: usize> KeyAlone for [u8; N] {}

macro_rules! fields_by_reference {
    ($($type:ty: $family:ty, $borrowed:ty;)*) => {$(
        impl Field for $type {
            type Family = $family;

            #[inline]
            fn lend(&self) -> &$borrowed {
                self
            }
        }

        impl KeyAlone for $type {}
    )*};
}

fields_by_reference! {
    str: String, str;
    String: String, str;
    Cow<'_, str>: String, str;
    [u8]: Vec<u8>, [u8];
    Vec<u8>: Vec<u8>, [u8];
}

/// A field that a `Vec` may hold to travel as a [`List`]: every one but `u8`, since a `Vec<u8>` travels as bytes.
///
/// ```
/// use napreduce::Job;
/// use napreduce::testing::JobTest;
///
/// let lengths = || {
///     Job::text()
///         .flat_map(|line: &str| Some((line[..1].to_owned(), line.len() as u64)))
///         .map_groups(|letter, lengths| (letter.to_owned(), lengths.owned().collect::<Vec<u64>>()))
/// };
/// assert_eq!(JobTest::new(lengths).input("to\nbe\ntree\n").run().text(), "b\t2\nt\t2\t4\n");
/// ```
#[diagnostic::on_unimplemented(
    message = "a list of `{Self}` does not name the type as which it travels in a record",
    label = "not an element of a list",
    note = "return lists of text, numbers of a fixed size (not `usize`) or tuples of these"
)]
pub trait ListElement: Field {}

impl<T: ListElement> Field for Vec<T> {
    type Family = List<T::Family>;

    fn lend(&self) -> Vec<<T::Family as Value>::Ref<'_>> {
        self.iter().map(T::lend).collect()
    }
}

impl<T: ListElement> KeyAlone for Vec<T> {}

impl ListElement for () {}
impl ListElement for bool {}
impl ListElement for char {}
impl ListElement for u16 {}
impl ListElement for u32 {}
impl ListElement for u64 {}
impl ListElement for u128 {}
impl ListElement for i8 {}
impl ListElement for i16 {}
impl ListElement for i32 {}
impl ListElement for i64 {}
impl ListElement for i128 {}
impl ListElement for f32 {}
impl ListElement for f64 {}
impl ListElement for str {}
impl ListElement for String {}
impl<T: ListElement + ?Sized> ListElement for &T {}
impl<T: ListElement> ListElement for Vec<T> {}
impl<T: Field> ListElement for Option<T> {}
impl<T: Field> ListElement for Reverse<T> {}
impl<const N: usize> ListElement for [u8; N] {}

impl<T: KeyAlone + ?Sized> KeyAlone for &T {}
impl<T: Field> KeyAlone for Option<T> {}
impl<T: Field> KeyAlone for Reverse<T> {}

impl<T: Field> Field for Option<T> {
    type Family = Option<T::Family>;

    #[inline]
    fn lend(&self) -> Option<<T::Family as Value>::Ref<'_>> {
        self.as_ref().map(T::lend)
    }
}

impl<T: Field> Field for Reverse<T> {
    type Family = Reverse<T::Family>;

    #[inline]
    fn lend(&self) -> Reverse<<T::Family as Value>::Ref<'_>> {
        Reverse(self.0.lend())
    }
}

macro_rules! field_tuple {
    ($($name:ident $value:ident)*) => {
        impl<$($name: Field),*> Field for ($($name,)*) {
            type Family = ($($name::Family,)*);

            #[inline]
            fn lend(&self) -> <Self::Family as Value>::Ref<'_> {
                let ($($value,)*) = self;
                ($($value.lend(),)*)
            }
        }

        impl<$($name: Field),*> ListElement for ($($name,)*) {}
    };
}

field_tuple!(A a);
field_tuple!(A a B b);
field_tuple!(A a B b C c);
field_tuple!(A a B b C c D d);
field_tuple!(A a B b C c D d E e);
field_tuple!(A a B b C c D d E e F f);

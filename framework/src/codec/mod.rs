//! Typed keys and values as bytes, and back.
//!
//! Owns the traits `Value`, `Key` and `GroupBy` and the encodings of all built-in types. Order is defined by
//! the encoded bytes alone: the data plane never calls back into these types to compare. Does not own
//! records, blocks or text.
//!
//! ```
//! use std::cmp::Reverse;
//!
//! use napreduce::Value;
//!
//! /// Encoded keys in the order in which a reduce would get them.
//! fn sorted<K: Value>(keys: impl IntoIterator<Item = K::Owned>) -> Vec<Vec<u8>> {
//!     let encode = |key| {
//!         let mut bytes = Vec::new();
//!         K::encode_owned(&key, true, &mut bytes);
//!         bytes
//!     };
//!     let mut encoded: Vec<_> = keys.into_iter().map(encode).collect();
//!     encoded.sort();
//!     encoded
//! }
//!
//! let order = sorted::<(Reverse<u32>, String)>([(Reverse(1), "a".into()), (Reverse(2), "b".into())]);
//! let first = <(Reverse<u32>, String)>::decode_owned(&order[0])?;
//! assert_eq!(first, (Reverse(2), "b".to_owned()));
//! # Ok::<(), napreduce::codec::DecodeError>(())
//! ```

mod arrays;
#[doc(hidden)]
pub mod derive_support;
mod error;
mod grouping;
mod numbers;
mod option;
mod reverse;
mod serde_value;
mod strings;
mod tuples;

/// What decoding puts somewhere because the bytes do not hold it as it is: text with escapes, reversed
/// fields. Reset between records, it costs no allocation for each.
///
/// ```
/// use std::cmp::Reverse;
///
/// use napreduce::Value;
/// use napreduce::codec::Scratch;
///
/// let mut bytes = Vec::new();
/// Reverse::<String>::encode(Reverse("last"), true, &mut bytes);
/// let mut scratch = Scratch::new();
/// assert_eq!(Reverse::<String>::decode_whole(&bytes, &scratch)?, Reverse("last"));
/// scratch.reset();
/// # Ok::<(), napreduce::codec::DecodeError>(())
/// ```
pub use bumpalo::Bump as Scratch;
pub use napreduce_derive::{Key, Value};

pub use self::error::DecodeError;
pub use self::grouping::GroupBy;
pub use self::serde_value::Serde;

/// A type whose values travel as bytes, written as a *family*: the type names what is meant, `Ref<'a>` what
/// is handed around. `String` is emitted and received as `&str`, `Vec<u8>` as `&[u8]`, `(String, u64)` as
/// `(&str, u64)`, `u64` as itself, so that reading a value copies and allocates nothing.
///
/// Every [`Key`] is a value with the same encoding; [`Serde`] makes one of any serde type; `#[derive(Value)]`
/// of a struct or enum whose fields are values.
///
/// An encoding has two forms. As the *last* field of a record its end is the end of the bytes. Anywhere else
/// it ends itself, and no such encoding is a prefix of another one.
///
/// ```
/// use napreduce::codec::Scratch;
/// use napreduce::Value;
///
/// let mut bytes = Vec::new();
/// <(String, u64)>::encode(("hello", 7), true, &mut bytes);
///
/// let scratch = Scratch::new();
/// let (word, count) = <(String, u64)>::decode_whole(&bytes, &scratch)?;
/// assert_eq!((word, count), ("hello", 7));
/// # Ok::<(), napreduce::codec::DecodeError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a value of a record",
    label = "not a value",
    note = "derive(Value) or derive(Key) for it, or wrap a serde type: `Serde<{Self}>`"
)]
pub trait Value: 'static {
    /// A value as it is emitted and received; borrows where that saves a copy.
    type Ref<'a>;

    /// A value that borrows nothing, which a combiner can keep and fold into.
    type Owned: Send + 'static;

    /// The length of every encoding in bytes, where it is the same for all values and in both forms.
    const FIXED: Option<usize>;

    /// Appends the encoding of `value` to `out`. With `last` nothing follows it in the record.
    fn encode(value: Self::Ref<'_>, last: bool, out: &mut Vec<u8>);

    /// As [`encode`](Value::encode), for a value that is held in its owned form.
    fn encode_owned(owned: &Self::Owned, last: bool, out: &mut Vec<u8>);

    /// The encoding of `value` as the only field of a record. Text and bytes are returned as they are,
    /// without a copy; everything else is written into `buffer`, whose content is replaced.
    #[inline]
    fn bytes<'b, 'a: 'b>(value: Self::Ref<'a>, buffer: &'b mut Vec<u8>) -> &'b [u8] {
        buffer.clear();
        Self::encode(value, true, buffer);
        buffer
    }

    /// Takes one value off the front of `input`. What cannot be borrowed from `input` is put into `scratch`,
    /// which the caller resets between records. After an error `input` stands anywhere.
    fn decode<'a>(
        input: &mut &'a [u8],
        last: bool,
        scratch: &'a Scratch,
    ) -> Result<Self::Ref<'a>, DecodeError>;

    /// The length in bytes of the encoding at the front of `bytes`, whose every byte was complemented where
    /// `flip` is `0xFF`, and none where it is 0. Looks only at the bytes that decide the length.
    fn measure(bytes: &[u8], last: bool, flip: u8) -> Result<usize, DecodeError>;

    /// Copies what `value` borrows.
    fn to_owned(value: Self::Ref<'_>) -> Self::Owned;

    /// The length in bytes of the encoding at the front of `bytes`.
    ///
    /// ```
    /// use napreduce::Value;
    ///
    /// let mut bytes = Vec::new();
    /// <(String, u64)>::encode(("word", 7), true, &mut bytes);
    /// // Text that is not last ends with two zeros.
    /// assert_eq!(String::skip(&bytes, false)?, 6);
    /// # Ok::<(), napreduce::codec::DecodeError>(())
    /// ```
    #[inline]
    fn skip(bytes: &[u8], last: bool) -> Result<usize, DecodeError> {
        Self::measure(bytes, last, 0)
    }

    /// Decodes `bytes` as the only field of a record, of which nothing may be left over.
    #[inline]
    fn decode_whole<'a>(bytes: &'a [u8], scratch: &'a Scratch) -> Result<Self::Ref<'a>, DecodeError> {
        let mut rest = bytes;
        let value = Self::decode(&mut rest, true, scratch)?;
        if rest.is_empty() { Ok(value) } else { Err(left_over(bytes, rest)) }
    }

    /// As [`decode_whole`](Value::decode_whole), in owned form.
    #[inline]
    fn decode_owned(bytes: &[u8]) -> Result<Self::Owned, DecodeError> {
        let scratch = Scratch::new();
        Self::decode_whole(bytes, &scratch).map(Self::to_owned)
    }
}

#[cold]
fn left_over(bytes: &[u8], rest: &[u8]) -> DecodeError {
    DecodeError::new("the end", bytes.len() - rest.len())
}

/// A [`Value`] whose encodings compare, byte by byte and the shorter prefix first, as its values do.
///
/// Keys are integers, floats (−0 and 0 are one key, so are all NaN; NaN comes last), `bool`, `char`, `()`,
/// `String`, `Vec<u8>`, `[u8; N]`, `Option` (`None` first), [`Reverse`](std::cmp::Reverse), tuples of up to
/// six, and structs and enums with `#[derive(Key)]`. Of these, `&'static str`, `&'static [u8]` and `&'static
/// [u8; N]` are further names of the families of borrowed text and bytes.
///
/// ```
/// use napreduce::{Key, Value};
///
/// /// The visits of one user, in order of time.
/// #[derive(Key)]
/// struct Visit<'a> {
///     user: &'a str,
///     time: u64,
/// }
///
/// fn encoded(user: &str, time: u64) -> Vec<u8> {
///     let mut bytes = Vec::new();
///     Visit::encode(Visit { user, time }, true, &mut bytes);
///     bytes
/// }
///
/// assert!(encoded("ann", 9) < encoded("ann", 10));
/// assert!(encoded("ann", 10) < encoded("anna", 1));
/// ```
///
/// An implementation by hand promises that order, and that no encoding in the form that is not last is a
/// prefix of another. One that only gives another type a name is made of the methods of that:
///
/// ```
/// use napreduce::codec::{DecodeError, Scratch};
/// use napreduce::{Key, Value};
///
/// /// Cents, which are counted as an `i64`.
/// #[derive(Debug, Clone, Copy, PartialEq)]
/// struct Cents(i64);
///
/// impl Value for Cents {
///     type Ref<'a> = Cents;
///     type Owned = Cents;
///     const FIXED: Option<usize> = i64::FIXED;
///
///     fn encode(Cents(cents): Cents, last: bool, out: &mut Vec<u8>) {
///         i64::encode(cents, last, out);
///     }
///
///     fn encode_owned(owned: &Cents, last: bool, out: &mut Vec<u8>) {
///         Cents::encode(*owned, last, out);
///     }
///
///     fn decode<'a>(input: &mut &'a [u8], last: bool, scratch: &'a Scratch) -> Result<Cents, DecodeError> {
///         i64::decode(input, last, scratch).map(Cents)
///     }
///
///     fn measure(bytes: &[u8], last: bool, flip: u8) -> Result<usize, DecodeError> {
///         i64::measure(bytes, last, flip)
///     }
///
///     fn to_owned(value: Cents) -> Cents {
///         value
///     }
/// }
///
/// impl Key for Cents {}
///
/// let mut bytes = Vec::new();
/// <(Cents, String)>::encode((Cents(-5), "debt"), true, &mut bytes);
/// assert_eq!(<(Cents, String)>::decode_owned(&bytes)?, (Cents(-5), "debt".to_owned()));
/// # Ok::<(), DecodeError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key: it has no order-preserving encoding",
    label = "not a key",
    note = "derive(Key) for it"
)]
pub trait Key: Value {}

/// The length of an encoding that is `length` bytes long whatever they are.
#[inline]
pub(crate) fn measure_fixed(
    bytes: &[u8],
    length: usize,
    expected: &'static str,
) -> Result<usize, DecodeError> {
    if bytes.len() >= length { Ok(length) } else { Err(DecodeError::new(expected, bytes.len())) }
}

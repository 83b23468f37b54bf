//! Encodings of typed keys and values. Their order is that of the encoded bytes, so the data plane never
//! calls these types to compare.
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
mod field;
mod grouping;
mod heap;
mod list;
pub(crate) mod names;
mod numbers;
mod option;
mod reverse;
mod serde_value;
mod strings;
pub(crate) mod tagged;
mod tuples;

/// Memory for decoded data that the encoded bytes do not contain literally: text with escapes, reversed
/// fields. It is reset between records, so it costs no allocation for each.
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

pub use self::arrays::Bytes;
pub use self::error::DecodeError;
pub use self::field::{Field, KeyAlone, ListElement};
pub use self::grouping::GroupBy;
pub use self::list::List;
pub use self::serde_value::Serde;

/// A type whose values can be encoded, written as a *family*: the type is the name, `Ref<'a>` the value
/// passed around. `String` is emitted and received as `&str`, `Vec<u8>` as `&[u8]`, `(String, u64)` as
/// `(&str, u64)`, `u64` as itself, so reading a value copies and allocates nothing.
///
/// Every [`Key`] is a value with the same encoding; [`Serde`] makes a value of any serde type;
/// `#[derive(Value)]` works on a struct or enum whose fields are values.
///
/// An encoding has two forms. The *last* field of a record ends with the bytes. Any other field is
/// self-delimiting: no such encoding is a prefix of another one.
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
    note = "integers have a fixed size (`u64`, not `usize`), and a list is a `codec::List<V>`; for a type of your own \
            derive(Value) or derive(Key), or wrap a serde type: `Serde<{Self}>`"
)]
pub trait Value: 'static {
    /// An emitted or received value; borrows where that avoids a copy.
    type Ref<'a>;

    /// A value that borrows nothing, which a combiner can keep and fold into.
    type Owned: Send + 'static;

    /// The length of the encoding in bytes, if it is the same for all values and in both forms.
    const FIXED: Option<usize>;

    /// Whether two values may differ in their number of fields, as lists and byte strings do. Formats of rows with a
    /// fixed number of fields refuse such a type.
    const VARIES: bool = false;

    /// Appends the encoding of `value` to `out`. `last` is set for the last field of a record.
    fn encode(value: Self::Ref<'_>, last: bool, out: &mut Vec<u8>);

    /// As [`encode`](Value::encode), for a value in owned form.
    fn encode_owned(owned: &Self::Owned, last: bool, out: &mut Vec<u8>);

    /// Returns the encoding of `value` as the only field of a record. Text and bytes are returned without a
    /// copy; other types are written into `buffer`, whose content is replaced.
    #[inline]
    fn bytes<'b, 'a: 'b>(value: Self::Ref<'a>, buffer: &'b mut Vec<u8>) -> &'b [u8] {
        buffer.clear();
        Self::encode(value, true, buffer);
        buffer
    }

    /// Decodes one value from the front of `input` and advances it. Data that cannot be borrowed from `input`
    /// is put into `scratch`, which the caller resets between records. After an error the position of `input`
    /// is unspecified.
    fn decode<'a>(
        input: &mut &'a [u8],
        last: bool,
        scratch: &'a Scratch,
    ) -> Result<Self::Ref<'a>, DecodeError>;

    /// Returns the length in bytes of the encoding at the front of `bytes`. All bytes are complemented if
    /// `flip` is `0xFF`, and none if it is 0. Reads only the bytes that determine the length.
    fn measure(bytes: &[u8], last: bool, flip: u8) -> Result<usize, DecodeError>;

    /// Copies what `value` borrows.
    fn to_owned(value: Self::Ref<'_>) -> Self::Owned;

    /// Returns about how many bytes of heap memory a value in owned form takes. A combiner keeps values in memory, and
    /// counts them by this method as part of the task's memory.
    ///
    /// By default it is 0 for types that own no heap memory; for others it is estimated from the encoding, which takes
    /// time. A type that is often combined should return the capacities of its texts and lists.
    ///
    /// ```
    /// use napreduce::Value;
    ///
    /// let text = "a text of some length".repeat(10);
    /// assert_eq!(u64::heap_bytes(&7), 0);
    /// assert!(<(u64, String)>::heap_bytes(&(7, text)) > 200);
    /// ```
    #[inline]
    fn heap_bytes(owned: &Self::Owned) -> usize {
        if !std::mem::needs_drop::<Self::Owned>() {
            return 0;
        }
        let mut encoded = Vec::new();
        Self::encode_owned(owned, true, &mut encoded);
        heap::allocation(2 * encoded.len())
    }

    /// Returns the name of the family, which files of typed records carry: a file is read only by the types that it was
    /// written with. Types of one name must have one encoding.
    ///
    /// By default the name of the type without its modules. A derived type names its fields, too.
    ///
    /// ```
    /// use napreduce::Value;
    ///
    /// assert_eq!(<(&'static str, Option<u64>)>::family(), "(String, Option<u64>)");
    /// ```
    fn family() -> String {
        names::short_name(std::any::type_name::<Self>())
    }

    /// Returns the length in bytes of the encoding at the front of `bytes`.
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

    /// Decodes `bytes` as the only field of a record. Fails if bytes are left over.
    #[inline]
    fn decode_whole<'a>(
        bytes: &'a [u8],
        scratch: &'a Scratch,
    ) -> Result<Self::Ref<'a>, DecodeError> {
        let mut rest = bytes;
        let value = Self::decode(&mut rest, true, scratch)?;
        if rest.is_empty() {
            Ok(value)
        } else {
            Err(left_over(bytes, rest))
        }
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

/// A [`Value`] whose encodings compare like its values: byte by byte, the shorter prefix first.
///
/// Keys are integers, floats (−0 and 0 are one key, the 0, though −0 stays −0 as a value; all NaN are one key, which
/// comes last), `bool`, `char`, `()`,
/// `String`, `Vec<u8>`, `[u8; N]`, [`Bytes<N>`](Bytes), `Option` (`None` first), [`Reverse`](std::cmp::Reverse),
/// tuples of up to six, and structs and enums with `#[derive(Key)]`.
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
/// A manual implementation must guarantee that order, and that no encoding in the self-delimiting form is a
/// prefix of another. A wrapper of another type delegates to its methods, and if that type holds floats to its
/// [`encode_key`](Key::encode_key), too:
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
    note = "integers have a fixed size (`u64`, not `usize`), and a list is a `codec::List<K>`; for a type of your own \
            derive(Key)"
)]
pub trait Key: Value {
    /// Appends the encoding of `key`, as [`encode`](Value::encode) does, but with one encoding for keys that are equal:
    /// a job sorts, groups and distributes records by these bytes. They differ from those of the value only in floats,
    /// where −0 is written as 0.
    ///
    /// ```
    /// use napreduce::{Key, Value};
    ///
    /// let mut key = Vec::new();
    /// f64::encode_key(-0.0, true, &mut key);
    /// let mut value = Vec::new();
    /// f64::encode(-0.0, true, &mut value);
    ///
    /// assert!(f64::decode_owned(&key)?.is_sign_positive());
    /// assert!(f64::decode_owned(&value)?.is_sign_negative());
    /// # Ok::<(), napreduce::codec::DecodeError>(())
    /// ```
    #[inline]
    fn encode_key(key: Self::Ref<'_>, last: bool, out: &mut Vec<u8>) {
        Self::encode(key, last, out);
    }

    /// Returns the encoding of `key` as the only field of a record's key. Text and bytes are returned without a copy;
    /// other types are written into `buffer`, whose content is replaced.
    #[inline]
    fn key_bytes<'b, 'a: 'b>(key: Self::Ref<'a>, buffer: &'b mut Vec<u8>) -> &'b [u8] {
        buffer.clear();
        Self::encode_key(key, true, buffer);
        buffer
    }
}

/// Returns the length of a fixed-length encoding.
#[inline]
pub(crate) fn measure_fixed(
    bytes: &[u8],
    length: usize,
    expected: &'static str,
) -> Result<usize, DecodeError> {
    if bytes.len() >= length {
        Ok(length)
    } else {
        Err(DecodeError::new(expected, bytes.len()))
    }
}

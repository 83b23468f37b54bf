//! Byte strings of constant length: `[u8; N]`, passed by value, and `Bytes<N>`, passed by reference,
//! for longer ones. Both are encoded unchanged.

use super::{DecodeError, Key, Scratch, Value, measure_fixed};

#[cold]
fn too_short(wanted: usize, found: usize) -> DecodeError {
    DecodeError::new(format!("{wanted} bytes"), found)
}

#[inline]
fn take<'a, const N: usize>(input: &mut &'a [u8]) -> Result<&'a [u8; N], DecodeError> {
    match input.split_first_chunk::<N>() {
        Some((bytes, rest)) => {
            *input = rest;
            Ok(bytes)
        }
        None => Err(too_short(N, input.len())),
    }
}

impl<const N: usize> Value for [u8; N] {
    type Ref<'a> = [u8; N];
    type Owned = [u8; N];
    const FIXED: Option<usize> = Some(N);

    #[inline]
    fn encode(value: [u8; N], _: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(&value);
    }

    #[inline]
    fn encode_owned(owned: &[u8; N], _: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(owned);
    }

    #[inline]
    fn decode<'a>(input: &mut &'a [u8], _: bool, _: &'a Scratch) -> Result<[u8; N], DecodeError> {
        take(input).copied()
    }

    #[inline]
    fn measure(bytes: &[u8], _: bool, _: u8) -> Result<usize, DecodeError> {
        measure_fixed(bytes, N, "an array of bytes")
    }

    #[inline]
    fn to_owned(value: [u8; N]) -> [u8; N] {
        value
    }
}

impl<const N: usize> Key for [u8; N] {}

/// Byte strings of `N` bytes that are passed by reference: `Emit<Bytes<10>, Bytes<90>>` takes `&[u8; 10]` and `&[u8; 90]`,
/// and a reduce gets the same.
///
/// It only names the type; a record holds the bytes. Short ones are passed by value, as `[u8; N]`; both have one encoding.
///
/// ```
/// use napreduce::codec::Bytes;
/// use napreduce::testing::JobTest;
/// use napreduce::{Emit, Job};
///
/// /// Sorts records of four bytes by their first two.
/// let sorted = || {
///     Job::fixed_records(4)
///         .map(|record: &[u8], out: &mut Emit<Bytes<2>, Bytes<2>>| {
///             if let Some((key, rest)) = record.split_first_chunk() {
///                 out.emit(key, rest.first_chunk().expect("two bytes are left"));
///             }
///         })
///         .reduce(|key, rests, out| {
///             while let Some(rest) = rests.next() {
///                 out.emit(str::from_utf8(key)?, str::from_utf8(rest)?);
///             }
///             Ok::<(), std::str::Utf8Error>(())
///         })
/// };
/// assert_eq!(JobTest::new(sorted).input("b2zzb1yya1xx").run().text(), "a1\txx\nb1\tyy\nb2\tzz\n");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bytes<const N: usize> {}

impl<const N: usize> Value for Bytes<N> {
    type Ref<'a> = &'a [u8; N];
    type Owned = [u8; N];
    const FIXED: Option<usize> = Some(N);

    #[inline]
    fn encode(value: &[u8; N], _: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(value);
    }

    #[inline]
    fn encode_owned(owned: &[u8; N], _: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(owned);
    }

    #[inline]
    fn bytes<'b, 'a: 'b>(value: &'a [u8; N], _: &'b mut Vec<u8>) -> &'b [u8] {
        value
    }

    #[inline]
    fn decode<'a>(
        input: &mut &'a [u8],
        _: bool,
        _: &'a Scratch,
    ) -> Result<&'a [u8; N], DecodeError> {
        take(input)
    }

    #[inline]
    fn measure(bytes: &[u8], _: bool, _: u8) -> Result<usize, DecodeError> {
        measure_fixed(bytes, N, "an array of bytes")
    }

    #[inline]
    fn to_owned(value: &[u8; N]) -> [u8; N] {
        *value
    }

    fn family() -> String {
        <[u8; N]>::family()
    }
}

impl<const N: usize> Key for Bytes<N> {}

/// The type of a field `&'a [u8; N]` of a struct with `derive(Key)` or `derive(Value)`.
impl<const N: usize> Value for &'static [u8; N] {
    type Ref<'a> = &'a [u8; N];
    type Owned = [u8; N];
    const FIXED: Option<usize> = Some(N);

    #[inline]
    fn encode(value: &[u8; N], last: bool, out: &mut Vec<u8>) {
        Bytes::<N>::encode(value, last, out);
    }

    #[inline]
    fn encode_owned(owned: &[u8; N], last: bool, out: &mut Vec<u8>) {
        Bytes::<N>::encode_owned(owned, last, out);
    }

    #[inline]
    fn bytes<'b, 'a: 'b>(value: &'a [u8; N], buffer: &'b mut Vec<u8>) -> &'b [u8] {
        Bytes::<N>::bytes(value, buffer)
    }

    #[inline]
    fn decode<'a>(
        input: &mut &'a [u8],
        last: bool,
        scratch: &'a Scratch,
    ) -> Result<&'a [u8; N], DecodeError> {
        Bytes::<N>::decode(input, last, scratch)
    }

    #[inline]
    fn measure(bytes: &[u8], last: bool, flip: u8) -> Result<usize, DecodeError> {
        Bytes::<N>::measure(bytes, last, flip)
    }

    #[inline]
    fn to_owned(value: &[u8; N]) -> [u8; N] {
        *value
    }

    fn family() -> String {
        Bytes::<N>::family()
    }
}

impl<const N: usize> Key for &'static [u8; N] {}

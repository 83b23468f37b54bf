//! Byte strings of constant length: `[u8; N]`, passed by value, and `&'static [u8; N]`, passed by reference,
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

impl<const N: usize> Value for &'static [u8; N] {
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

impl<const N: usize> Key for &'static [u8; N] {}

//! `Reverse`: a key in descending order, encoded as the complement of the inner encoding. This is always the
//! self-delimiting form, even in the last field: the complement reverses the order only if no encoding is a
//! prefix of another.

use std::cmp::Reverse;

use super::{DecodeError, Key, Scratch, Value};

#[inline]
fn complement(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = !*byte;
    }
}

impl<T: Value> Value for Reverse<T> {
    type Ref<'a> = Reverse<T::Ref<'a>>;
    type Owned = Reverse<T::Owned>;
    const FIXED: Option<usize> = T::FIXED;
    const VARIES: bool = T::VARIES;

    #[inline]
    fn encode(Reverse(value): Self::Ref<'_>, _: bool, out: &mut Vec<u8>) {
        let start = out.len();
        T::encode(value, false, out);
        complement(&mut out[start..]);
    }

    #[inline]
    fn encode_owned(Reverse(owned): &Self::Owned, _: bool, out: &mut Vec<u8>) {
        let start = out.len();
        T::encode_owned(owned, false, out);
        complement(&mut out[start..]);
    }

    #[inline]
    fn decode<'a>(
        input: &mut &'a [u8],
        _: bool,
        scratch: &'a Scratch,
    ) -> Result<Self::Ref<'a>, DecodeError> {
        let (encoded, rest) = input.split_at(T::measure(input, false, 0xFF)?);
        *input = rest;
        let plain = scratch.alloc_slice_copy(encoded);
        complement(plain);
        let mut plain: &'a [u8] = plain;
        T::decode(&mut plain, false, scratch).map(Reverse)
    }

    #[inline]
    fn measure(bytes: &[u8], _: bool, flip: u8) -> Result<usize, DecodeError> {
        T::measure(bytes, false, !flip)
    }

    #[inline]
    fn to_owned(Reverse(value): Self::Ref<'_>) -> Self::Owned {
        Reverse(T::to_owned(value))
    }

    #[inline]
    fn heap_bytes(Reverse(owned): &Self::Owned) -> usize {
        T::heap_bytes(owned)
    }

    fn family() -> String {
        format!("Reverse<{}>", T::family())
    }
}

impl<T: Key> Key for Reverse<T> {
    #[inline]
    fn encode_key(Reverse(key): Self::Ref<'_>, _: bool, out: &mut Vec<u8>) {
        let start = out.len();
        T::encode_key(key, false, out);
        complement(&mut out[start..]);
    }
}

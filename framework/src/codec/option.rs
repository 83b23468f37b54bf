//! `Option` as a key or value, with a tag byte: 0 for `None`, which comes first, and 1 for `Some`.

use super::{DecodeError, Key, Scratch, Value};

const TAG_EXPECTED: &str = "the tag of an Option (0 or 1)";
const NONE: u8 = 0;
const SOME: u8 = 1;

impl<T: Value> Value for Option<T> {
    type Ref<'a> = Option<T::Ref<'a>>;
    type Owned = Option<T::Owned>;
    const FIXED: Option<usize> = None;
    const VARIES: bool = T::VARIES;

    #[inline]
    fn encode(value: Self::Ref<'_>, last: bool, out: &mut Vec<u8>) {
        match value {
            None => out.push(NONE),
            Some(inner) => {
                out.push(SOME);
                T::encode(inner, last, out);
            }
        }
    }

    #[inline]
    fn encode_owned(owned: &Self::Owned, last: bool, out: &mut Vec<u8>) {
        match owned {
            None => out.push(NONE),
            Some(inner) => {
                out.push(SOME);
                T::encode_owned(inner, last, out);
            }
        }
    }

    #[inline]
    fn decode<'a>(
        input: &mut &'a [u8],
        last: bool,
        scratch: &'a Scratch,
    ) -> Result<Self::Ref<'a>, DecodeError> {
        match input.split_first() {
            Some((&NONE, rest)) => {
                *input = rest;
                Ok(None)
            }
            Some((&SOME, rest)) => {
                *input = rest;
                T::decode(input, last, scratch)
                    .map(Some)
                    .map_err(|error| error.after(1))
            }
            _ => Err(DecodeError::new(TAG_EXPECTED, 0)),
        }
    }

    #[inline]
    fn measure(bytes: &[u8], last: bool, flip: u8) -> Result<usize, DecodeError> {
        match bytes.split_first().map(|(tag, rest)| (tag ^ flip, rest)) {
            Some((NONE, _)) => Ok(1),
            Some((SOME, rest)) => match T::measure(rest, last, flip) {
                Ok(length) => Ok(1 + length),
                Err(error) => Err(error.after(1)),
            },
            _ => Err(DecodeError::new(TAG_EXPECTED, 0)),
        }
    }

    #[inline]
    fn to_owned(value: Self::Ref<'_>) -> Self::Owned {
        value.map(T::to_owned)
    }

    #[inline]
    fn heap_bytes(owned: &Self::Owned) -> usize {
        owned.as_ref().map_or(0, T::heap_bytes)
    }

    fn family() -> String {
        format!("Option<{}>", T::family())
    }
}

impl<T: Key> Key for Option<T> {
    #[inline]
    fn encode_key(key: Self::Ref<'_>, last: bool, out: &mut Vec<u8>) {
        match key {
            None => out.push(NONE),
            Some(inner) => {
                out.push(SOME);
                T::encode_key(inner, last, out);
            }
        }
    }
}

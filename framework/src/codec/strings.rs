//! Text and bytes of any length. The last field is encoded unchanged; in others 00 is escaped as 00 FF, and
//! 00 00 is the end.

use super::heap::allocation;
use super::{DecodeError, Key, Scratch, Value};

const END_EXPECTED: &str = "the end of a byte string (00 00)";

/// Appends `bytes` in the self-delimiting form.
#[inline]
fn encode_terminated(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 2);
    let mut rest = bytes;
    while let Some(zero) = memchr::memchr(0, rest) {
        out.extend_from_slice(&rest[..zero]);
        out.extend_from_slice(&[0, 0xFF]);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, 0]);
}

#[inline]
fn encode_bytes(bytes: &[u8], last: bool, out: &mut Vec<u8>) {
    if last {
        out.extend_from_slice(bytes)
    } else {
        encode_terminated(bytes, out)
    }
}

#[inline]
fn measure_bytes(bytes: &[u8], last: bool, flip: u8) -> Result<usize, DecodeError> {
    if last {
        return Ok(bytes.len());
    }
    let mut from = 0;
    while let Some(zero) = memchr::memchr(flip, &bytes[from..]) {
        let next = from + zero + 1;
        match bytes.get(next).map(|byte| byte ^ flip) {
            Some(0) => return Ok(next + 1),
            Some(0xFF) => from = next + 1,
            _ => return Err(DecodeError::new(END_EXPECTED, next)),
        }
    }
    Err(DecodeError::new(END_EXPECTED, bytes.len()))
}

#[inline]
fn decode_bytes<'a>(
    input: &mut &'a [u8],
    last: bool,
    scratch: &'a Scratch,
) -> Result<&'a [u8], DecodeError> {
    let (encoded, rest) = input.split_at(measure_bytes(input, last, 0)?);
    *input = rest;
    if last {
        return Ok(encoded);
    }
    // Measuring found the two bytes of the end.
    let escaped = &encoded[..encoded.len() - 2];
    if memchr::memchr(0, escaped).is_none() {
        Ok(escaped)
    } else {
        Ok(unescape(escaped, scratch))
    }
}

#[cold]
fn unescape<'a>(escaped: &[u8], scratch: &'a Scratch) -> &'a [u8] {
    let escapes = memchr::memchr_iter(0, escaped).count();
    let plain = scratch.alloc_slice_fill_copy(escaped.len() - escapes, 0);
    let mut from = 0;
    let mut to = 0;
    while let Some(zero) = memchr::memchr(0, &escaped[from..]) {
        let part = zero + 1;
        plain[to..to + part].copy_from_slice(&escaped[from..from + part]);
        to += part;
        // Measuring checked that FF follows.
        from += part + 1;
    }
    plain[to..].copy_from_slice(&escaped[from..]);
    plain
}

#[inline]
fn decode_text<'a>(
    input: &mut &'a [u8],
    last: bool,
    scratch: &'a Scratch,
) -> Result<&'a str, DecodeError> {
    let bytes = decode_bytes(input, last, scratch)?;
    std::str::from_utf8(bytes).map_err(|error| not_text(bytes, error.valid_up_to(), last))
}

#[cold]
fn not_text(bytes: &[u8], valid: usize, last: bool) -> DecodeError {
    let escapes = if last {
        0
    } else {
        memchr::memchr_iter(0, &bytes[..valid]).count()
    };
    DecodeError::new("UTF-8 text", valid + escapes)
}

/// Implements a family of borrowed bytes or text: `$family` is passed as `&'a $borrowed` and owned as
/// `$owned`. `$name` is the name of all families with this encoding.
macro_rules! string_key {
    ($name:literal, $family:ty, $borrowed:ty, $owned:ty, $varies:literal, $view:expr, $decode:expr) => {
        impl Value for $family {
            type Ref<'a> = &'a $borrowed;
            type Owned = $owned;
            const FIXED: Option<usize> = None;
            const VARIES: bool = $varies;

            #[inline]
            fn encode(value: &$borrowed, last: bool, out: &mut Vec<u8>) {
                encode_bytes($view(value), last, out);
            }

            #[inline]
            fn encode_owned(owned: &$owned, last: bool, out: &mut Vec<u8>) {
                encode_bytes(owned.as_ref(), last, out);
            }

            #[inline]
            fn bytes<'b, 'a: 'b>(value: &'a $borrowed, _: &'b mut Vec<u8>) -> &'b [u8] {
                $view(value)
            }

            #[inline]
            fn decode<'a>(
                input: &mut &'a [u8],
                last: bool,
                scratch: &'a Scratch,
            ) -> Result<&'a $borrowed, DecodeError> {
                $decode(input, last, scratch)
            }

            #[inline]
            fn measure(bytes: &[u8], last: bool, flip: u8) -> Result<usize, DecodeError> {
                measure_bytes(bytes, last, flip)
            }

            #[inline]
            fn to_owned(value: &$borrowed) -> $owned {
                value.into()
            }

            #[inline]
            fn heap_bytes(owned: &$owned) -> usize {
                allocation(owned.capacity())
            }

            fn family() -> String {
                $name.to_owned()
            }
        }

        impl Key for $family {
            #[inline]
            fn key_bytes<'b, 'a: 'b>(key: &'a $borrowed, _: &'b mut Vec<u8>) -> &'b [u8] {
                $view(key)
            }
        }
    };
}

string_key!(
    "String",
    String,
    str,
    String,
    false,
    str::as_bytes,
    decode_text
);
string_key!(
    "String",
    &'static str,
    str,
    String,
    false,
    str::as_bytes,
    decode_text
);
string_key!(
    "Vec<u8>",
    Vec<u8>,
    [u8],
    Vec<u8>,
    true,
    std::convert::identity,
    decode_bytes
);
string_key!(
    "Vec<u8>",
    &'static [u8],
    [u8],
    Vec<u8>,
    true,
    std::convert::identity,
    decode_bytes
);

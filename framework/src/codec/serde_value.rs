//! Any serde type as a value, in postcard encoding. The encoding has no order, so it cannot be a key.

use std::any::type_name;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::heap::heap_bytes_of;
use super::{DecodeError, Scratch, Value};

/// The length prefix of a field that is not last, a u32.
const LENGTH_BYTES: usize = 4;

/// The family of values of a serde type: `Emit<String, Serde<Page>>` emits and receives a `Page`.
///
/// ```
/// use napreduce::codec::Serde;
/// use napreduce::Value;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Page {
///     rank: f64,
///     links: Vec<String>,
/// }
///
/// let mut bytes = Vec::new();
/// Serde::<Page>::encode(Page { rank: 0.5, links: vec!["a".into()] }, true, &mut bytes);
/// assert_eq!(Serde::<Page>::decode_owned(&bytes)?.links, ["a"]);
/// # Ok::<(), napreduce::codec::DecodeError>(())
/// ```
///
/// # Panics
///
/// Encoding panics, which fails the task, if the type's own `Serialize` returns an error or uses a feature
/// that postcard does not support (a sequence of unknown length, a flattened map).
pub struct Serde<T>(PhantomData<fn() -> T>);

impl<T: Serialize + DeserializeOwned + Send + 'static> Value for Serde<T> {
    type Ref<'a> = T;
    type Owned = T;
    const FIXED: Option<usize> = None;

    #[inline]
    fn encode(value: T, last: bool, out: &mut Vec<u8>) {
        Self::encode_owned(&value, last, out);
    }

    #[inline]
    fn encode_owned(owned: &T, last: bool, out: &mut Vec<u8>) {
        let start = out.len();
        if !last {
            out.extend_from_slice(&[0; LENGTH_BYTES]);
        }
        match postcard::to_extend(owned, std::mem::take(out)) {
            Ok(written) => *out = written,
            Err(error) => panic!("a value of type {} cannot be encoded: {error}", type_name::<T>()),
        }
        if !last {
            write_length::<T>(out, start);
        }
    }

    #[inline]
    fn decode<'a>(input: &mut &'a [u8], last: bool, _: &'a Scratch) -> Result<T, DecodeError> {
        let (encoded, rest) = input.split_at(Self::measure(input, last, 0)?);
        *input = rest;
        let header = if last { 0 } else { LENGTH_BYTES };
        match postcard::take_from_bytes(&encoded[header..]) {
            Ok((value, [])) => Ok(value),
            Ok((_, rest)) => Err(DecodeError::new("the end", encoded.len() - rest.len())),
            Err(error) => Err(DecodeError::new(format!("a {} ({error})", type_name::<T>()), header)),
        }
    }

    #[inline]
    fn measure(bytes: &[u8], last: bool, flip: u8) -> Result<usize, DecodeError> {
        if last {
            return Ok(bytes.len());
        }
        let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else {
            return Err(DecodeError::new("a length (4 bytes)", bytes.len()));
        };
        let length = u32::from_be_bytes(length.map(|byte| byte ^ flip)) as usize;
        if length > rest.len() {
            return Err(DecodeError::new(format!("{length} bytes"), bytes.len()));
        }
        Ok(LENGTH_BYTES + length)
    }

    #[inline]
    fn to_owned(value: T) -> T {
        value
    }

    #[inline]
    fn heap_bytes(owned: &T) -> usize {
        heap_bytes_of(owned)
    }
}

fn write_length<T>(out: &mut [u8], start: usize) {
    let length = out.len() - start - LENGTH_BYTES;
    let Ok(length) = u32::try_from(length) else {
        panic!("a value of type {} takes {length} bytes (limit 4 GiB)", type_name::<T>());
    };
    out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
}

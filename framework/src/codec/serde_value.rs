//! Any serde type as a value. The encoding has no order, so it cannot be a key.

use std::any::type_name;
use std::marker::PhantomData;

use napreduce_protocol::TaskError;
use napreduce_task::refuse;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::heap::heap_bytes_of;
use super::names::short_name;
use super::{DecodeError, Scratch, Value, tagged};

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
///     #[serde(default, skip_serializing_if = "Vec::is_empty")]
///     links: Vec<String>,
/// }
///
/// let mut bytes = Vec::new();
/// Serde::<Page>::encode(Page { rank: 0.5, links: vec!["a".into()] }, true, &mut bytes);
/// assert_eq!(Serde::<Page>::decode_owned(&bytes)?.links, ["a"]);
/// # Ok::<(), napreduce::codec::DecodeError>(())
/// ```
///
/// A value arrives as it was written, or fails the job: each one is read and written again when it is encoded, and
/// refused if that differs. The encoding names fields and variants, so types with `#[serde(flatten)]`, `untagged`,
/// `tag` or `skip_serializing_if` work, and so do maps with keys of any type, options in options, and integers of 128
/// bits. Refused are:
///
/// - types whose `Serialize` and `Deserialize` disagree, such as a field with `#[serde(skip_serializing)]` and no default;
/// - values that serde takes for others, such as an untagged variant behind one that fits as well;
/// - integers of 128 bits behind `flatten`, `untagged` and `tag`, which serde does not support;
/// - more than 256 levels of values in values.
///
/// What `Serialize` does not write, such as a field with `#[serde(skip)]`, has its default in the reader.
///
/// # Panics
///
/// Encoding a value that is refused panics, with a message that names its type and the field. This fails the job.
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
        if let Err(error) = tagged::append(owned, out) {
            refuse(TaskError::fatal(error.to_string()));
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
        tagged::decode(&encoded[header..]).map_err(|error| {
            let expected = format!("a {} ({error})", short_name(type_name::<T>()));
            DecodeError::new(expected, header)
        })
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
        let type_name = short_name(type_name::<T>());
        refuse(TaskError::fatal(format!(
            "a value of type {type_name} takes {length} bytes (limit 4 GiB)"
        )));
    };
    out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
}

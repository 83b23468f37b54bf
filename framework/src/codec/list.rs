//! Lists of values: each element after a 1, and a 0 at the end, so that a shorter list comes before its
//! extensions.

use std::marker::PhantomData;
use std::mem::needs_drop;

use super::heap::allocation;
use super::{DecodeError, Key, Scratch, Value};

const END: u8 = 0;
const ELEMENT: u8 = 1;
const TAG_EXPECTED: &str = "an element of a list (1) or its end (0)";

/// The family of lists of values: `List<u64>` is received as a `Vec<u64>`, `List<String>` as a `Vec<&str>`.
///
/// [`collect`](crate::builder::MapStage::collect) and [`top`](crate::builder::MapStage::top) make them.
///
/// ```
/// use napreduce::Value;
/// use napreduce::codec::{List, Scratch};
///
/// let mut bytes = Vec::new();
/// List::<String>::encode(vec!["to", "be"], true, &mut bytes);
/// assert_eq!(List::<String>::decode_whole(&bytes, &Scratch::new())?, ["to", "be"]);
/// # Ok::<(), napreduce::codec::DecodeError>(())
/// ```
pub struct List<V>(PhantomData<fn() -> V>);

impl<V: Value> Value for List<V> {
    type Ref<'a> = Vec<V::Ref<'a>>;
    type Owned = Vec<V::Owned>;
    const FIXED: Option<usize> = None;
    const VARIES: bool = true;

    fn encode(value: Vec<V::Ref<'_>>, _: bool, out: &mut Vec<u8>) {
        for element in value {
            out.push(ELEMENT);
            V::encode(element, false, out);
        }
        out.push(END);
    }

    fn encode_owned(owned: &Vec<V::Owned>, _: bool, out: &mut Vec<u8>) {
        for element in owned {
            out.push(ELEMENT);
            V::encode_owned(element, false, out);
        }
        out.push(END);
    }

    fn decode<'a>(
        input: &mut &'a [u8],
        _: bool,
        scratch: &'a Scratch,
    ) -> Result<Vec<V::Ref<'a>>, DecodeError> {
        let whole = input.len();
        let mut list = Vec::new();
        loop {
            let at = whole - input.len();
            match input.split_first() {
                Some((&END, rest)) => {
                    *input = rest;
                    return Ok(list);
                }
                Some((&ELEMENT, rest)) => {
                    *input = rest;
                    list.push(
                        V::decode(input, false, scratch).map_err(|error| error.after(at + 1))?,
                    );
                }
                _ => return Err(DecodeError::new(TAG_EXPECTED, at)),
            }
        }
    }

    fn measure(bytes: &[u8], _: bool, flip: u8) -> Result<usize, DecodeError> {
        let mut at = 0;
        loop {
            match bytes.get(at).map(|tag| tag ^ flip) {
                Some(END) => return Ok(at + 1),
                Some(ELEMENT) => {
                    at += 1;
                    at += V::measure(&bytes[at..], false, flip).map_err(|error| error.after(at))?;
                }
                _ => return Err(DecodeError::new(TAG_EXPECTED, at)),
            }
        }
    }

    fn heap_bytes(owned: &Vec<V::Owned>) -> usize {
        let own = allocation(owned.capacity() * size_of::<V::Owned>());
        if !needs_drop::<V::Owned>() {
            return own;
        }
        owned
            .iter()
            .fold(own, |bytes, element| bytes + V::heap_bytes(element))
    }

    fn to_owned(value: Vec<V::Ref<'_>>) -> Vec<V::Owned> {
        value.into_iter().map(V::to_owned).collect()
    }

    fn family() -> String {
        format!("List<{}>", V::family())
    }
}

impl<V: Key> Key for List<V> {
    fn encode_key(key: Vec<V::Ref<'_>>, _: bool, out: &mut Vec<u8>) {
        for element in key {
            out.push(ELEMENT);
            V::encode_key(element, false, out);
        }
        out.push(END);
    }
}

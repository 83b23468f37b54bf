//! The encoding of values of serde types: self-describing, so that whatever a type's `Serialize` writes is read by its
//! `Deserialize` as from JSON, but without the limits of JSON.
//!
//! A value is a tag and its content. Fields and variants have their names, `Some` has a tag, maps have keys of any type and
//! end with a tag, and floats have their bits.
//!
//! ```text
//! integer      tag of its type, LEB128 (zigzag if signed); 8 and 128 bits literally, little-endian
//! text, bytes  tag, length, bytes
//! list, map    tag, expected length or 0, items, END
//! struct       tag, name and value of each field, END
//! variant      tag, name, value
//! name         LEB128 2 * (length + 1), text; or 2 * place + 1 for a name that is at this place of the value
//! ```
//!
//! Serde promises nothing about what a type reads: a skipped field, a lenient reader or an ambiguous enum changes values
//! without an error. So every value is read and written again when it is encoded, and refused if that differs.

mod difference;
mod digest;
mod error;
mod read;
mod tags;
mod write;

use std::any::type_name;
use std::cell::Cell;
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::names::short_name;
pub(crate) use error::TaggedError;
use read::Reader;
use write::Names;

/// A state of this many bytes is not decoded again when it is saved, which would take its memory once more, but when it is
/// restored.
const CHECKED_WHEN_SAVED: usize = 64 << 20;

/// The error of a value that cannot be written, or is not read as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unfaithful {
    type_name: String,
    reason: String,
}

impl fmt::Display for Unfaithful {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unfaithful { type_name, reason } = self;
        write!(formatter, "a value of type {type_name} {reason}")
    }
}

impl std::error::Error for Unfaithful {}

impl Unfaithful {
    #[cold]
    fn new<T>(reason: String) -> Unfaithful {
        Unfaithful {
            type_name: short_name(type_name::<T>()),
            reason,
        }
    }

    #[cold]
    fn unwritable<T>(error: &TaggedError) -> Unfaithful {
        Unfaithful::new::<T>(format!("cannot be written: {error}"))
    }

    #[cold]
    fn unreadable<T>(error: &TaggedError) -> Unfaithful {
        Unfaithful::new::<T>(format!(
            "cannot be read back from what its Serialize writes: {error}; its Serialize and Deserialize must agree"
        ))
    }

    #[cold]
    fn changed<T>(written: &[u8], read: &[u8]) -> Unfaithful {
        let place = match difference::difference(written, read) {
            Ok(Some(found)) if found.path.is_empty() => {
                format!("{} is read as {}", found.written, found.read)
            }
            Ok(Some(found)) => format!(
                "{} at `{}` is read as {}",
                found.written, found.path, found.read
            ),
            Ok(None) | Err(_) => "an item of a map or list differs".to_owned(),
        };
        Unfaithful::new::<T>(format!(
            "is not read back as it was written: {place}; its Serialize and Deserialize must agree"
        ))
    }
}

/// Memory that is used again for each value.
#[derive(Default)]
struct Workspace {
    names: Names,
    again: Vec<u8>,
}

thread_local! {
    /// `None` while a value is written, whose `Serialize` may write others.
    static WORKSPACE: Cell<Option<Box<Workspace>>> = const { Cell::new(None) };
}

fn with_workspace<R>(work: impl FnOnce(&mut Workspace) -> R) -> R {
    let mut workspace = WORKSPACE.take().unwrap_or_default();
    let result = work(&mut workspace);
    WORKSPACE.set(Some(workspace));
    result
}

/// Appends the encoding of a value.
///
/// # Errors
/// Fails, and appends nothing, if the value cannot be written or would be read as another one.
#[inline]
pub(crate) fn append<T: Serialize + DeserializeOwned>(
    value: &T,
    out: &mut Vec<u8>,
) -> Result<(), Unfaithful> {
    let start = out.len();
    let appended = with_workspace(|workspace| {
        append_unchecked_with(value, out, workspace)?;
        let copy: T = decode(&out[start..]).map_err(|error| Unfaithful::unreadable::<T>(&error))?;
        check_same(&copy, &out[start..], workspace)
    });
    if appended.is_err() {
        out.truncate(start);
    }
    appended
}

/// Appends the encoding of a value without reading it again.
pub(crate) fn append_unchecked<T: Serialize>(
    value: &T,
    out: &mut Vec<u8>,
) -> Result<(), Unfaithful> {
    with_workspace(|workspace| append_unchecked_with(value, out, workspace))
}

/// As [`append`], for a value that may take much of the memory. Such a value is checked by [`take_state`].
pub(crate) fn append_state<T: Serialize + DeserializeOwned>(
    value: &T,
    out: &mut Vec<u8>,
) -> Result<(), Unfaithful> {
    let start = out.len();
    append_unchecked(value, out)?;
    if out.len() - start > CHECKED_WHEN_SAVED {
        return Ok(());
    }
    let checked = take_state::<T>(&mut &out[start..]);
    if checked.is_err() {
        out.truncate(start);
    }
    checked.map(drop)
}

/// Takes a value from the front of `bytes`.
///
/// # Errors
/// Fails if it is read as another value than was written.
pub(crate) fn take_state<T: Serialize + DeserializeOwned>(
    bytes: &mut &[u8],
) -> Result<T, Unfaithful> {
    let mut reader = Reader::new(bytes);
    let value = T::deserialize(&mut reader).map_err(|error| Unfaithful::unreadable::<T>(&error))?;
    let rest = reader.rest();
    let written = &bytes[..bytes.len() - rest.len()];
    with_workspace(|workspace| check_same(&value, written, workspace))?;
    *bytes = rest;
    Ok(value)
}

/// Decodes a value that [`append`] wrote.
#[inline]
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, TaggedError> {
    let mut reader = Reader::new(bytes);
    let value = T::deserialize(&mut reader)?;
    match reader.rest().len() {
        0 => Ok(value),
        rest => Err(TaggedError::new(format!("{rest} bytes follow its end"))),
    }
}

#[inline]
fn append_unchecked_with<T: Serialize>(
    value: &T,
    out: &mut Vec<u8>,
    workspace: &mut Workspace,
) -> Result<(), Unfaithful> {
    write::write(value, out, &mut workspace.names)
        .map_err(|error| Unfaithful::unwritable::<T>(&error))
}

/// Fails unless the value is written like this, but for the order of maps and lists.
#[inline]
fn check_same<T: Serialize>(
    value: &T,
    written: &[u8],
    workspace: &mut Workspace,
) -> Result<(), Unfaithful> {
    let Workspace { names, again } = workspace;
    again.clear();
    write::write(value, again, names).map_err(|error| Unfaithful::unwritable::<T>(&error))?;
    if again == written || is_same_in_another_order(written, again) {
        return Ok(());
    }
    Err(Unfaithful::changed::<T>(written, again))
}

#[cold]
fn is_same_in_another_order(one: &[u8], other: &[u8]) -> bool {
    let one = digest::digest(&mut Reader::new(one));
    one.is_ok() && one == digest::digest(&mut Reader::new(other))
}

//! The steps of a derived `Resumable`. Public only for `napreduce-derive`.
//!
//! ```text
//! length of the shape u32, little-endian   the shape in UTF-8   each field as a tagged value
//! ```

pub use napreduce_protocol::TaskError;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use super::Resumable;
use crate::codec::tagged;

/// A type that a field of a state may have.
#[diagnostic::on_unimplemented(
    message = "a field of type `{Self}` cannot be saved in a checkpoint",
    label = "not a serde type",
    note = "write `#[derive(serde::Serialize, serde::Deserialize)]` above your own types in it, or `#[resumable(skip)]` above the field"
)]
pub trait StateField: Serialize + DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> StateField for T {}

/// Appends the shape: name, version and fields of the struct.
pub fn write_shape(shape: &str, saved: &mut Vec<u8>) {
    saved.extend_from_slice(&(shape.len() as u32).to_le_bytes());
    saved.extend_from_slice(shape.as_bytes());
}

/// Returns the bytes after the shape, which must be this one.
pub fn read_shape<'a>(shape: &str, saved: &'a [u8]) -> Result<&'a [u8], TaskError> {
    let written = saved
        .split_first_chunk()
        .and_then(|(length, rest)| rest.split_at_checked(u32::from_le_bytes(*length) as usize));
    let Some((written, rest)) = written else {
        return Err(TaskError::task(format!(
            "the saved state of `{shape}` cannot be read: it is truncated"
        )));
    };
    if written != shape.as_bytes() {
        let written = String::from_utf8_lossy(written);
        return Err(TaskError::task(format!(
            "the saved state is of `{written}`, which `{shape}` cannot restore"
        )));
    }
    Ok(rest)
}

/// Appends a field.
pub fn write_field<T: StateField>(
    name: &str,
    field: &T,
    saved: &mut Vec<u8>,
) -> Result<(), TaskError> {
    tagged::append_state(field, saved)
        .map_err(|error| TaskError::fatal(format!("the state cannot be saved: `{name}`, {error}")))
}

/// Takes a field from the bytes.
pub fn read_field<T: StateField>(
    shape: &str,
    name: &str,
    rest: &mut &[u8],
) -> Result<T, TaskError> {
    tagged::take_state(rest).map_err(|error| {
        TaskError::task(format!(
            "the saved state of `{shape}` cannot be read: `{name}`, {error}"
        ))
    })
}

/// Fails if there are bytes after the last field.
pub fn read_end(shape: &str, rest: &[u8]) -> Result<(), TaskError> {
    if rest.is_empty() {
        return Ok(());
    }
    let left = rest.len();
    Err(TaskError::task(format!(
        "the saved state of `{shape}` has {left} bytes after its last field"
    )))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Resumable, Debug, Clone, PartialEq, Default)]
    struct Ledger<T: PartialOrd> {
        sums: BTreeMap<String, T>,
        open: Option<(u8, f64)>,
        #[resumable(skip)]
        cached: Vec<T>,
    }

    fn saved(state: &impl Resumable) -> Vec<u8> {
        let mut saved = Vec::new();
        state.save_state(&mut saved).expect("it can be saved");
        saved
    }

    fn refusal(mut state: impl Resumable, bytes: &[u8]) -> String {
        state.restore_state(bytes).expect_err("other bytes").message
    }

    #[test]
    fn fields_are_restored_except_skipped_ones() {
        let sums = BTreeMap::from([("a".to_owned(), 1u32), ("b".to_owned(), 2)]);
        let ledger = Ledger {
            sums: sums.clone(),
            open: Some((3, f64::INFINITY)),
            cached: vec![1],
        };
        let mut restored = Ledger {
            cached: vec![7],
            ..Ledger::default()
        };
        restored
            .restore_state(&saved(&ledger))
            .expect("its own bytes");
        assert_eq!(
            restored,
            Ledger {
                sums,
                open: ledger.open,
                cached: vec![7]
            }
        );
    }

    #[test]
    fn struct_without_saved_fields_is_restored() {
        #[derive(Resumable)]
        struct Stateless;
        #[derive(Resumable)]
        struct Cache(#[resumable(skip)] std::cell::Cell<u64>);
        Stateless
            .restore_state(&saved(&Stateless))
            .expect("its own bytes");
        let mut cache = Cache(1.into());
        cache
            .restore_state(&saved(&Cache(2.into())))
            .expect("its own bytes");
        assert_eq!(cache.0.get(), 1);
        assert!(Stateless.restore_state(&saved(&cache)).is_err());
    }

    #[test]
    fn bytes_of_other_struct_are_refused() {
        #[derive(Resumable)]
        struct Total {
            sum: u64,
        }
        let old = {
            #[derive(Resumable)]
            struct Total {
                sum: u32,
            }
            saved(&Total { sum: 1 })
        };
        let new = {
            #[derive(Resumable)]
            #[resumable(version = 2)]
            struct Total {
                sum: u64,
            }
            saved(&Total { sum: 1 })
        };
        assert_eq!(
            refusal(Total { sum: 0 }, &old),
            "the saved state is of `Total v1 { sum: u32 }`, which `Total v1 { sum: u64 }` cannot restore"
        );
        assert_eq!(
            refusal(Total { sum: 0 }, &new),
            "the saved state is of `Total v2 { sum: u64 }`, which `Total v1 { sum: u64 }` cannot restore"
        );
    }

    #[test]
    fn damaged_bytes_are_refused_and_change_nothing() {
        let ledger = Ledger {
            sums: BTreeMap::from([("a".to_owned(), 1u32)]),
            ..Ledger::default()
        };
        let bytes = saved(&ledger);
        for length in 0..bytes.len() {
            let mut state = Ledger {
                open: Some((1, 1.0)),
                ..ledger.clone()
            };
            let before = state.clone();
            state
                .restore_state(&bytes[..length])
                .expect_err("truncated bytes");
            assert_eq!(state, before);
        }
        let more = [&bytes[..], &[0]].concat();
        let message = refusal(ledger, &more);
        assert_eq!(
            message,
            "the saved state of `Ledger v1 { sums: BTreeMap<String, T>, open: Option<(u8, f64)> }` has 1 bytes after \
             its last field"
        );
    }
}

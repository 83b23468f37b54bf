//! Combining: folds the values of equal keys before they are sorted, written and fetched.

use std::convert::Infallible;

use crate::key::quote;
use crate::merge::{Merge, MergeError};
use crate::record::{RecordEncoding, Source};
use crate::segment::{SegmentWriter, WriteError};
use crate::sort::SortedPartition;

/// An associative fold of values, with their encoding. Values may be folded in any order.
///
/// ```
/// use napreduce_data::Combiner;
///
/// struct Sum;
///
/// impl Combiner for Sum {
///     type Value = u64;
///
///     fn fold(&self, into: &mut u64, more: u64) {
///         *into += more;
///     }
///
///     fn encode(&self, value: &u64, into: &mut Vec<u8>) {
///         into.extend_from_slice(&value.to_be_bytes());
///     }
///
///     fn decode(&self, bytes: &[u8]) -> Result<u64, String> {
///         let bytes = bytes.try_into().map_err(|_| format!("a count of {} bytes; expected 8", bytes.len()))?;
///         Ok(u64::from_be_bytes(bytes))
///     }
/// }
///
/// let mut total = Sum.decode(&[0, 0, 0, 0, 0, 0, 0, 5])?;
/// Sum.fold(&mut total, 2);
/// assert_eq!(total, 7);
/// # Ok::<(), String>(())
/// ```
pub trait Combiner {
    /// The accumulator; every value is also an accumulator.
    type Value;

    /// Folds `more` into `into`.
    fn fold(&self, into: &mut Self::Value, more: Self::Value);

    /// Appends the encoded value. A job with `RecordEncoding::Fixed` appends exactly its value length.
    fn encode(&self, value: &Self::Value, into: &mut Vec<u8>);

    /// Decodes the output of `encode`.
    ///
    /// # Errors
    /// A description of the invalid bytes, which becomes part of the task's error.
    fn decode(&self, bytes: &[u8]) -> Result<Self::Value, String>;

    /// Heap bytes of the value, for the memory budget: 0 for a number, the capacity for a list. A fold may add twice
    /// those of the folded value, since lists grow in advance.
    #[inline]
    fn heap_bytes(&self, value: &Self::Value) -> usize {
        let _ = value;
        0
    }
}

/// Why a sorted source could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FoldError {
    #[error(transparent)]
    Source(#[from] MergeError),
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The quoted key and the combiner's message.
    #[error("combining the values of key {0}: {1}")]
    Combine(String, String),
}

impl From<Infallible> for FoldError {
    fn from(never: Infallible) -> FoldError {
        match never {}
    }
}

/// The handling of equal keys in a merge; created once per partition.
pub(crate) trait Fold {
    fn merge(&self, source: &mut Merge, writer: &mut SegmentWriter) -> Result<(), FoldError>;
    fn arena(
        &self,
        source: &mut SortedPartition<'_>,
        writer: &mut SegmentWriter,
    ) -> Result<(), FoldError>;
}

/// Copies every record.
pub(crate) struct NoFold;

impl Fold for NoFold {
    fn merge(&self, source: &mut Merge, writer: &mut SegmentWriter) -> Result<(), FoldError> {
        copy(source, writer)
    }

    fn arena(
        &self,
        source: &mut SortedPartition<'_>,
        writer: &mut SegmentWriter,
    ) -> Result<(), FoldError> {
        copy(source, writer)
    }
}

/// Folds the values of equal keys.
pub(crate) struct Folding<'a, C>(pub &'a C);

impl<C: Combiner> Fold for Folding<'_, C> {
    fn merge(&self, source: &mut Merge, writer: &mut SegmentWriter) -> Result<(), FoldError> {
        fold(source, self.0, writer)
    }

    fn arena(
        &self,
        source: &mut SortedPartition<'_>,
        writer: &mut SegmentWriter,
    ) -> Result<(), FoldError> {
        fold(source, self.0, writer)
    }
}

fn copy<S: Source>(source: &mut S, writer: &mut SegmentWriter) -> Result<(), FoldError>
where
    FoldError: From<S::Error>,
{
    while source.advance()? {
        writer.append_encoded(source.record())?;
    }
    Ok(())
}

fn fold<S: Source, C: Combiner>(
    source: &mut S,
    combiner: &C,
    writer: &mut SegmentWriter,
) -> Result<(), FoldError>
where
    FoldError: From<S::Error>,
{
    let mut key = Vec::new();
    let mut value = Vec::new();
    let mut more = source.advance()?;
    while more {
        key.clear();
        key.extend_from_slice(source.key());
        value.clear();
        value.extend_from_slice(source.value());
        // Most keys occur once; those are copied without decoding.
        let mut folded = None;
        loop {
            more = source.advance()?;
            if !more || source.key() != key {
                break;
            }
            let into = match &mut folded {
                Some(into) => into,
                None => folded.insert(decode(combiner, &key, &value)?),
            };
            combiner.fold(into, decode(combiner, &key, source.value())?);
        }
        if let Some(folded) = folded {
            value.clear();
            combiner.encode(&folded, &mut value);
            check_length(writer.shape.encoding, &key, &value)?;
        }
        writer.append(&key, &value)?;
    }
    Ok(())
}

fn decode<C: Combiner>(combiner: &C, key: &[u8], value: &[u8]) -> Result<C::Value, FoldError> {
    combiner
        .decode(value)
        .map_err(|message| FoldError::Combine(quote(key), message))
}

fn check_length(encoding: RecordEncoding, key: &[u8], value: &[u8]) -> Result<(), FoldError> {
    match encoding {
        RecordEncoding::Fixed {
            value: expected, ..
        } if value.len() != expected as usize => {
            let message = format!(
                "the folded value has {} bytes; a fixed value has {expected}",
                value.len()
            );
            Err(FoldError::Combine(quote(key), message))
        }
        _ => Ok(()),
    }
}

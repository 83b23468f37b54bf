//! Batches: many byte strings, or pairs of them, in one payload.
//!
//! Strings: `u32 n`, `n` lengths (`u32`), all strings. Pairs: `u32 n`, the lengths of the keys, the lengths
//! of the values, all keys, all values.

use thiserror::Error;

use super::frame::{FrameError, FrameKind, HEAD_BYTES, head};

/// Size at which a batch is sent.
const BATCH_BYTES: usize = 64 << 10;
const LENGTH_BYTES: usize = 4;

/// The error for an invalid batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a batch of {bytes} bytes whose header claims {claimed} bytes")]
pub(super) struct InvalidBatch {
    bytes: usize,
    claimed: u128,
}

/// Strings collected for one frame.
#[derive(Debug, Default)]
pub(super) struct Batch {
    lengths: Vec<u8>,
    bytes: Vec<u8>,
}

impl Batch {
    /// Appends a string.
    pub(super) fn push(&mut self, string: &[u8]) -> Result<(), FrameError> {
        let too_long = FrameError::TooLong {
            kind: FrameKind::RecordBatch,
            length: string.len() as u64,
            limit: u64::from(u32::MAX),
        };
        let length = u32::try_from(string.len()).map_err(|_| too_long)?;
        self.lengths.extend_from_slice(&length.to_be_bytes());
        self.bytes.extend_from_slice(string);
        Ok(())
    }

    pub(super) fn count(&self) -> u64 {
        (self.lengths.len() / LENGTH_BYTES) as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Returns whether the batch must be sent before more strings are added.
    pub(super) fn is_full(&self) -> bool {
        self.lengths.len() + self.bytes.len() >= BATCH_BYTES
    }

    /// Returns the frame of the collected strings, in parts.
    pub(super) fn frame(&self, kind: FrameKind) -> Result<BatchFrame<'_>, FrameError> {
        let payload = LENGTH_BYTES + self.lengths.len() + self.bytes.len();
        let mut start = [0; HEAD_BYTES + LENGTH_BYTES];
        let (before, count) = start.split_at_mut(HEAD_BYTES);
        before.copy_from_slice(&head(kind, payload)?);
        // The count is less than the payload's length, which fits in 32 bits.
        count.copy_from_slice(&(self.count() as u32).to_be_bytes());
        Ok(BatchFrame { start, batch: self })
    }

    pub(super) fn clear(&mut self) {
        self.lengths.clear();
        self.bytes.clear();
    }
}

/// A batch in its sent form.
pub(super) struct BatchFrame<'a> {
    start: [u8; HEAD_BYTES + LENGTH_BYTES],
    batch: &'a Batch,
}

impl BatchFrame<'_> {
    pub(super) fn parts(&self) -> [&[u8]; 3] {
        [&self.start, &self.batch.lengths, &self.batch.bytes]
    }
}

/// Calls `each` for every string of a batch.
pub(super) fn strings<'p, E: From<InvalidBatch>>(
    payload: &'p [u8],
    mut each: impl FnMut(&'p [u8]) -> Result<(), E>,
) -> Result<(), E> {
    let (lengths, mut rest) = lengths_and_bytes(payload, 1)?;
    for length in lengths.chunks_exact(LENGTH_BYTES) {
        each(take(&mut rest, length))?;
    }
    Ok(())
}

/// Calls `each` for every pair of a batch.
pub(super) fn pairs<'p, E: From<InvalidBatch>>(
    payload: &'p [u8],
    mut each: impl FnMut(&'p [u8], &'p [u8]) -> Result<(), E>,
) -> Result<(), E> {
    let (lengths, bytes) = lengths_and_bytes(payload, 2)?;
    let (of_keys, of_values) = lengths.split_at(lengths.len() / 2);
    let (mut keys, mut values) = bytes.split_at(total(of_keys) as usize);
    for (key, value) in of_keys
        .chunks_exact(LENGTH_BYTES)
        .zip(of_values.chunks_exact(LENGTH_BYTES))
    {
        each(take(&mut keys, key), take(&mut values, value))?;
    }
    Ok(())
}

/// Splits a payload into lengths and strings; fails unless the lengths add up to the strings.
fn lengths_and_bytes(payload: &[u8], strings_each: usize) -> Result<(&[u8], &[u8]), InvalidBatch> {
    let bytes = payload.len();
    let (count, behind) = payload
        .split_first_chunk::<LENGTH_BYTES>()
        .ok_or(InvalidBatch {
            bytes,
            claimed: LENGTH_BYTES as u128,
        })?;
    let of_lengths = u128::from(u32::from_be_bytes(*count)) * (strings_each * LENGTH_BYTES) as u128;
    let split = usize::try_from(of_lengths)
        .ok()
        .and_then(|at| behind.split_at_checked(at));
    let invalid = |of_strings: u128| InvalidBatch {
        bytes,
        claimed: LENGTH_BYTES as u128 + of_lengths + of_strings,
    };
    let (lengths, strings) = split.ok_or(invalid(0))?;
    let of_strings = total(lengths);
    if of_strings != strings.len() as u128 {
        Err(invalid(of_strings))
    } else {
        Ok((lengths, strings))
    }
}

fn length_of(length: &[u8]) -> u32 {
    length.try_into().map_or(0, u32::from_be_bytes)
}

fn total(lengths: &[u8]) -> u128 {
    lengths
        .chunks_exact(LENGTH_BYTES)
        .map(|length| u128::from(length_of(length)))
        .sum()
}

/// Splits one string off `rest`. `lengths_and_bytes` has checked that the lengths fit.
fn take<'p>(rest: &mut &'p [u8], length: &[u8]) -> &'p [u8] {
    let (string, behind) = rest.split_at(length_of(length) as usize);
    *rest = behind;
    string
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(payload: &[u8]) -> Result<Vec<Vec<u8>>, InvalidBatch> {
        let mut all = Vec::new();
        strings(payload, |string| {
            all.push(string.to_vec());
            Ok::<_, InvalidBatch>(())
        })?;
        Ok(all)
    }

    #[test]
    fn strings_of_any_length_round_trip() {
        let mut batch = Batch::default();
        for string in [&b"to"[..], b"", b"be"] {
            batch.push(string).expect("it is short");
        }
        let frame = batch
            .frame(FrameKind::RecordBatch)
            .expect("it is short")
            .parts()
            .concat();
        assert_eq!(&frame[..HEAD_BYTES], [0, 0, 0, 20, b'R']);
        assert_eq!(
            found(&frame[HEAD_BYTES..]),
            Ok(vec![b"to".to_vec(), Vec::new(), b"be".to_vec()])
        );
    }

    #[test]
    fn pairs_store_keys_before_values() {
        let payload = [
            &[0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0][..],
            b"abbxyz",
        ]
        .concat();
        let mut all = Vec::new();
        pairs(&payload, |key, value| {
            all.push((key.to_vec(), value.to_vec()));
            Ok::<_, InvalidBatch>(())
        })
        .expect("they are pairs");
        assert_eq!(
            all,
            [
                (b"a".to_vec(), b"xyz".to_vec()),
                (b"bb".to_vec(), Vec::new())
            ]
        );
    }

    #[test]
    fn batch_with_wrong_lengths_is_rejected() {
        for payload in [
            &[][..],
            &[0, 0, 0],
            &[0, 0, 0, 1],
            &[255, 255, 255, 255, 0, 0, 0, 0],
            &[0, 0, 0, 1, 0, 0, 0, 2, b'a'],
            &[0, 0, 0, 1, 0, 0, 0, 0, b'a'],
            &[0, 0, 0, 2, 255, 255, 255, 255, 0, 0, 0, 2, b'a'],
        ] {
            assert!(found(payload).is_err(), "{payload:?}");
            assert!(
                pairs(payload, |_, _| Ok::<_, InvalidBatch>(())).is_err(),
                "{payload:?}"
            );
        }
        let error = found(&[0, 0, 0, 1, 0, 0, 0, 2, b'a'])
            .expect_err("the length is wrong")
            .to_string();
        assert_eq!(error, "a batch of 9 bytes whose header claims 10 bytes");
    }
}

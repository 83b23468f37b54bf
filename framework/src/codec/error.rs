//! What is wrong with bytes that do not decode.
//!
//! Owns the error of the codec. Does not own what a task makes of it: the record's file and task are named
//! there.

use std::borrow::Cow;

/// Bytes that are not the encoding of the wanted type: what was expected, and where.
///
/// ```
/// use napreduce::Value;
/// use napreduce::codec::DecodeError;
///
/// let error = <(String, u64)>::decode_owned(b"no").expect_err("there is no number");
/// assert_eq!((error.expected(), error.at()), ("the end of a byte string (00 00)", 2));
///
/// // For an encoding of one's own.
/// let error = DecodeError::new("an even number", 0).after(4);
/// assert_eq!(error.to_string(), "expected an even number at byte 4 of the encoding");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} at byte {at} of the encoding")]
pub struct DecodeError {
    expected: Cow<'static, str>,
    at: usize,
}

impl DecodeError {
    /// `expected` is not what the bytes hold at byte `at`, counted from the start of the value being decoded.
    #[cold]
    pub fn new(expected: impl Into<Cow<'static, str>>, at: usize) -> Self {
        DecodeError { expected: expected.into(), at }
    }

    /// What should have been there.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// Where, in bytes from the start of the value that was being decoded.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The same error seen from a value that holds `bytes` bytes before the field that failed.
    #[must_use]
    #[cold]
    pub fn after(mut self, bytes: usize) -> Self {
        self.at += bytes;
        self
    }
}

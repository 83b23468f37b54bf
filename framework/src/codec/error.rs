//! The error for bytes that cannot be decoded. A task adds the file and position of the record.

use std::borrow::Cow;

/// The error for bytes that are not an encoding of the wanted type.
///
/// ```
/// use napreduce::Value;
/// use napreduce::codec::DecodeError;
///
/// let error = <(String, u64)>::decode_owned(b"no").expect_err("the number is missing");
/// assert_eq!((error.expected(), error.at()), ("the end of a byte string (00 00)", 2));
///
/// // In a user's own encoding.
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
    /// Creates an error: the bytes at `at`, counted from the start of the value, are not `expected`.
    #[cold]
    pub fn new(expected: impl Into<Cow<'static, str>>, at: usize) -> Self {
        DecodeError {
            expected: expected.into(),
            at,
        }
    }

    /// Returns a description of the expected bytes.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// Returns the position in bytes from the start of the decoded value.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns the same error relative to a value with `bytes` bytes before the failed field.
    #[must_use]
    #[cold]
    pub fn after(mut self, bytes: usize) -> Self {
        self.at += bytes;
        self
    }
}

//! The error of a value that cannot be written or read.

use std::fmt::{self, Display};

use serde::{de, ser};

/// The reason why a value cannot be written or read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaggedError(Box<str>);

impl TaggedError {
    #[cold]
    pub(super) fn new(reason: impl Display) -> TaggedError {
        TaggedError(reason.to_string().into_boxed_str())
    }
}

impl Display for TaggedError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for TaggedError {}

impl ser::Error for TaggedError {
    fn custom<T: Display>(reason: T) -> Self {
        TaggedError::new(reason)
    }
}

impl de::Error for TaggedError {
    fn custom<T: Display>(reason: T) -> Self {
        TaggedError::new(reason)
    }
}

//! Treats file system errors for missing or existing names as results.

use std::io;

/// A file system result of which one error is an expected answer.
pub trait IoResult<T> {
    /// Returns `None` if the name does not exist.
    ///
    /// # Errors
    /// Every other error.
    fn if_there(self) -> io::Result<Option<T>>;

    /// Succeeds if the name already exists.
    ///
    /// # Errors
    /// Every other error.
    fn unless_there(self) -> io::Result<()>;
}

impl<T> IoResult<T> for io::Result<T> {
    fn if_there(self) -> io::Result<Option<T>> {
        match self {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        }
    }

    fn unless_there(self) -> io::Result<()> {
        match self {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made.map(drop),
        }
    }
}

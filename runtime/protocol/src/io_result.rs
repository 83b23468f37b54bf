//! What may be missing, or may be there already, without anything being wrong.
//!
//! Owns which errors of the system say so. Does not own where that is fine.

use std::io;

/// What a call of the file system led to, where one of its errors is an answer.
pub trait IoResult<T> {
    /// `None` where there is nothing of that name.
    ///
    /// # Errors
    /// Every other one.
    fn if_there(self) -> io::Result<Option<T>>;

    /// Nothing is to be done where there is something of that name.
    ///
    /// # Errors
    /// Every other one.
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

//! The lock that a run holds on its `_temporary` as long as it lives.

use std::fs::File;
use std::io;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// What came of locking a directory.
#[derive(Debug)]
pub(in crate::output) enum Locked {
    /// By whoever has this file.
    Now(File),
    /// Somebody else holds it.
    Busy,
}

/// A file system without locks cannot tell, which must not stop a job.
pub(super) fn lock(directory: File) -> io::Result<Locked> {
    match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) | Err(Errno::NOTSUP | Errno::NOLCK | Errno::NOSYS) => Ok(Locked::Now(directory)),
        Err(Errno::WOULDBLOCK) => Ok(Locked::Busy),
        Err(error) => Err(error.into()),
    }
}

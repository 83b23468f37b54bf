//! The lock that a run holds on its `_temporary` until it ends.

use std::fs::File;
use std::io;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// The result of locking a directory.
#[derive(Debug)]
pub(in crate::output) enum Locked {
    /// Locked until this file is closed.
    Now(File),
    /// Another process holds the lock.
    Busy,
}

/// Locks a directory without waiting. On a file system without locks it succeeds, so that the job can run.
pub(super) fn lock(directory: File) -> io::Result<Locked> {
    match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) | Err(Errno::NOTSUP | Errno::NOLCK | Errno::NOSYS) => Ok(Locked::Now(directory)),
        Err(Errno::WOULDBLOCK) => Ok(Locked::Busy),
        Err(error) => Err(error.into()),
    }
}

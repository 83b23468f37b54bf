//! An exclusive lock on a file or directory, which ends when its holder drops it.

use std::fs::{File, TryLockError};
use std::io::{self, Write};

use rustix::io::Errno;

/// A file that this process has locked.
///
/// Closing the file would not be enough to release the lock: a child process that another thread has just
/// forked shares the open file until it executes its program.
#[derive(Debug)]
pub struct LockedFile(File);

/// The result of trying to lock a file.
#[derive(Debug)]
pub enum Locking {
    /// This process holds the lock.
    Held(LockedFile),
    /// Another open file holds the lock.
    Busy,
}

/// Locks a file without waiting.
///
/// # Errors
/// Fails if the file cannot be locked, for example on a file system without locks.
pub fn try_lock(file: File) -> io::Result<Locking> {
    match file.try_lock() {
        Ok(()) => Ok(Locking::Held(LockedFile(file))),
        Err(TryLockError::WouldBlock) => Ok(Locking::Busy),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Locks a file without waiting. On a file system without locks it succeeds, so that the job can run.
pub(crate) fn try_lock_where_supported(file: File) -> io::Result<Locking> {
    match file.try_lock() {
        Ok(()) => Ok(Locking::Held(LockedFile(file))),
        Err(TryLockError::WouldBlock) => Ok(Locking::Busy),
        Err(TryLockError::Error(error)) => match Errno::from_io_error(&error) {
            Some(Errno::NOTSUP | Errno::NOLCK | Errno::NOSYS) => {
                Ok(Locking::Held(LockedFile(file)))
            }
            _ => Err(error),
        },
    }
}

/// Locks a file as soon as no other open file holds the lock.
pub(crate) fn lock(file: File) -> io::Result<LockedFile> {
    file.lock()?;
    Ok(LockedFile(file))
}

impl Write for LockedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Fails only where there is no lock.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_ends_though_file_is_still_open() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || File::open(folder.path()).expect("a folder");
        let file = open();
        let as_child = file.try_clone().expect("a shared open file");
        let Locking::Held(held) = try_lock(file).expect("locked") else {
            panic!("the lock is busy");
        };
        assert!(matches!(try_lock(open()), Ok(Locking::Busy)));
        drop(held);
        assert!(matches!(try_lock(open()), Ok(Locking::Held(_))));
        drop(as_child);
    }
}

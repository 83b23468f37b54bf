//! Locks on a cluster directory: at most one coordinator and one `nap up`. The lock files contain the
//! holder's process id. The kernel releases a lock when its process ends; leftover content is harmless.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use napreduce_protocol::{open_regular_with, read_regular};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::error::ClusterDirectoryError;
use super::place::ClusterDirectory;

/// Maximum length of a lock file.
const PID_BYTES_MAX: u64 = 64;

/// A lock, held while this value lives; the kernel releases it when the process ends.
#[derive(Debug)]
pub struct DirectoryLock {
    file: File,
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // A leftover id is harmless: it only makes a client wait longer.
        let _ = self.file.set_len(0);
    }
}

impl ClusterDirectory {
    /// Makes this process the only coordinator of the directory.
    pub fn lock_coordinator(&self) -> Result<DirectoryLock, ClusterDirectoryError> {
        take(&self.coordinator_lock_file())?.map_err(|pid| {
            let record = self.coordinator().ok().filter(|record| Some(record.pid) == pid);
            let running = match (pid, record) {
                (Some(pid), Some(record)) => format!("process {pid} at {}", record.address),
                (Some(pid), None) => format!("process {pid}, just starting or ending"),
                (None, _) => "just starting".to_owned(),
            };
            ClusterDirectoryError::CoordinatorRuns { path: self.path().to_owned(), running }
        })
    }

    /// Makes this process the only `nap up` of the directory.
    pub fn lock_up(&self) -> Result<DirectoryLock, ClusterDirectoryError> {
        take(&self.up_lock_file())?.map_err(|pid| {
            let running = pid.map_or_else(|| "just starting".to_owned(), |pid| format!("process {pid}"));
            ClusterDirectoryError::UpRuns { path: self.path().to_owned(), running }
        })
    }

    /// Returns whether a lock's holder is alive, so that a coordinator is running or starting. Does not try
    /// the lock itself, which would disturb a process that takes it at the same time.
    pub(crate) fn is_held(&self) -> bool {
        [self.up_lock_file(), self.coordinator_lock_file()].iter().any(|path| {
            let text = read_regular(path, PID_BYTES_MAX).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            let pid = text.and_then(|text| text.trim().parse().ok());
            pid.and_then(Pid::from_raw).is_some_and(|pid| test_kill_process(pid).is_ok())
        })
    }
}

/// Takes the lock, or returns the holder's process id if it is already recorded.
fn take(path: &Path) -> Result<Result<DirectoryLock, Option<u32>>, ClusterDirectoryError> {
    let failed = |doing| ClusterDirectoryError::io(doing, path);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = open_regular_with(&options, path).map_err(failed("open"))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            let written = file.set_len(0).and_then(|()| file.rewind());
            let written = written.and_then(|()| writeln!(file, "{}", std::process::id()));
            written.map_err(failed("write"))?;
            Ok(Ok(DirectoryLock { file }))
        }
        Err(Errno::WOULDBLOCK) => {
            let mut text = String::new();
            (&file).take(PID_BYTES_MAX).read_to_string(&mut text).map_err(failed("read"))?;
            Ok(Err(text.trim().parse().ok()))
        }
        Err(error) => Err(failed("lock")(error.into())),
    }
}

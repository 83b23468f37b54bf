//! Locks on a cluster directory: at most one coordinator and one `nap up`. The lock files contain the
//! holder's process id. The kernel releases a lock when its process ends; leftover content is harmless.

use std::fs;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use napreduce_local::world::Process;
use napreduce_local::world::disk::{Disk, DiskFile, FileLock, Opening};
use napreduce_protocol::{IoResult, read_regular};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::error::ClusterDirectoryError;
use super::place::ClusterDirectory;

/// Maximum length of a lock file.
const PID_BYTES_MAX: u64 = 64;

/// A lock, held while this value lives; the kernel releases it when the process ends.
#[derive(Debug)]
pub struct DirectoryLock {
    file: Box<dyn DiskFile>,
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // A leftover id is harmless: it only makes a client wait longer.
        let _ = self.file.set_len(0);
    }
}

/// A process of this host, running when it was opened.
#[derive(Debug)]
pub struct RunningProcess {
    pid: Pid,
    /// Stays with the process, so that no later process with its number is meant.
    handle: OwnedFd,
}

impl RunningProcess {
    /// Opens the process with this id; `None` if it has ended.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn open(process: u32) -> io::Result<Option<RunningProcess>> {
        let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else {
            return Ok(None);
        };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => Ok(Some(RunningProcess { pid, handle })),
            Err(Errno::SRCH) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the process that holds a lock. A later process of the same id does not have the file open.
    fn holding(path: &Path) -> Result<Option<RunningProcess>, ClusterDirectoryError> {
        let Some(bytes) = read_regular(path, PID_BYTES_MAX)
            .if_there()
            .map_err(ClusterDirectoryError::io("read", path))?
        else {
            return Ok(None);
        };
        // Empty while no process holds it.
        let Ok(process) = String::from_utf8_lossy(&bytes).trim().parse() else {
            return Ok(None);
        };
        let holder = RunningProcess::open(process)
            .map_err(ClusterDirectoryError::io("find the process of", path))?;
        Ok(holder.filter(|holder| has_open(holder.pid, path)))
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Sends a signal to the process. One that has ended is no error.
    ///
    /// # Errors
    /// If the signal cannot be sent.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(&self.handle, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the process has ended, at most for `limit`; returns whether it has.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn wait(&self, limit: Duration) -> io::Result<bool> {
        let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
        let mut waited = [PollFd::new(&self.handle, PollFlags::IN)];
        match poll(&mut waited, Some(&limit)) {
            Ok(ended) => Ok(ended > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether a process of this user has a file open.
fn has_open(pid: Pid, path: &Path) -> bool {
    let Ok(wanted) = fs::metadata(path) else {
        return false;
    };
    let Ok(open) = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())) else {
        return false;
    };
    for descriptor in open.flatten() {
        // Follows the link to the file.
        if let Ok(found) = fs::metadata(descriptor.path())
            && (found.dev(), found.ino()) == (wanted.dev(), wanted.ino())
        {
            return true;
        }
    }
    false
}

impl ClusterDirectory {
    /// Makes this process the only coordinator of the directory.
    pub fn lock_coordinator(
        &self,
        process: &Process,
    ) -> Result<DirectoryLock, ClusterDirectoryError> {
        let pid = match take(&**self.disk(), &self.coordinator_lock_file(), process.id())? {
            Taken::Ours(lock) => return Ok(lock),
            Taken::HeldBy(pid) => pid,
        };
        let running = match (pid, self.coordinator()) {
            (Some(pid), Ok(record)) if record.pid == pid => {
                format!("process {pid} at {}", record.address)
            }
            (Some(pid), _) => format!("process {pid}, just starting or ending"),
            (None, _) => "just starting".to_owned(),
        };
        Err(ClusterDirectoryError::CoordinatorRuns {
            path: self.path().to_owned(),
            running,
        })
    }

    /// Makes this process the only `nap up` of the directory.
    pub fn lock_up(&self) -> Result<DirectoryLock, ClusterDirectoryError> {
        let running = match take(&**self.disk(), &self.up_lock_file(), std::process::id())? {
            Taken::Ours(lock) => return Ok(lock),
            Taken::HeldBy(Some(pid)) => format!("process {pid}"),
            Taken::HeldBy(None) => "just starting".to_owned(),
        };
        Err(ClusterDirectoryError::UpRuns {
            path: self.path().to_owned(),
            running,
        })
    }

    /// Returns the running `nap up` of the directory.
    ///
    /// # Errors
    /// If none is running on this host, or it cannot be found out.
    pub fn running_up(&self) -> Result<RunningProcess, ClusterDirectoryError> {
        self.check()?;
        if let Some(up) = RunningProcess::holding(&self.up_lock_file())? {
            return Ok(up);
        }
        let coordinator =
            RunningProcess::holding(&self.coordinator_lock_file())?.map(|holder| holder.id());
        Err(ClusterDirectoryError::NoUp {
            path: self.path().to_owned(),
            coordinator,
        })
    }

    /// Returns whether a lock's holder is alive, so that a coordinator is running or starting. Does not try
    /// the lock itself, which would disturb a process that takes it at the same time.
    pub(crate) fn is_held(&self, process: &Process) -> bool {
        for path in [self.up_lock_file(), self.coordinator_lock_file()] {
            let Ok(bytes) = self.disk().read(&path, PID_BYTES_MAX) else {
                continue;
            };
            // Empty while no process holds it.
            let Ok(pid) = String::from_utf8_lossy(&bytes).trim().parse() else {
                continue;
            };
            if process.is_running(pid) {
                return true;
            }
        }
        false
    }
}

/// The result of taking a lock.
enum Taken {
    Ours(DirectoryLock),
    /// Another process holds it; its id, if it is already recorded.
    HeldBy(Option<u32>),
}

/// Takes a lock, and writes the process id into its file.
fn take(disk: &dyn Disk, path: &Path, pid: u32) -> Result<Taken, ClusterDirectoryError> {
    let mut file = disk
        .open(path, Opening::CreateOrChange { mode: 0o600 })
        .map_err(ClusterDirectoryError::io("open", path))?;
    match file
        .lock()
        .map_err(ClusterDirectoryError::io("lock", path))?
    {
        FileLock::Taken => {
            let written = file.set_len(0).and_then(|()| file.rewind());
            let written = written.and_then(|()| writeln!(file, "{pid}"));
            written.map_err(ClusterDirectoryError::io("write", path))?;
            Ok(Taken::Ours(DirectoryLock { file }))
        }
        FileLock::HeldBy(_) => {
            let mut text = String::new();
            file.take(PID_BYTES_MAX)
                .read_to_string(&mut text)
                .map_err(ClusterDirectoryError::io("read", path))?;
            Ok(Taken::HeldBy(text.trim().parse().ok()))
        }
    }
}

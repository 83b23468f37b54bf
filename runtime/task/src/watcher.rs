//! A watcher ends the processes of a worker's attempts when the worker is killed: it is this program executed
//! again, waits for the end of a pipe that only the worker holds open, and kills all processes with the worker's
//! mark in their environment, with their descendants.
//!
//! The kernel kills the task processes themselves, but not what their commands have started.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::descendants::{Descendant, descendants_of};

/// First argument of a watcher.
const MARKER: &str = "--napreduce-watcher";
/// The variable in the environment of every process of a worker's attempts: the directory of the worker.
pub const WORKER_VARIABLE: &str = "NAPREDUCE_WORKER_DIRECTORY";
/// Time for killed processes to end, unless they wait for a disk.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(2);

/// A running watcher; it ends with this value.
#[derive(Debug)]
pub struct Watcher {
    child: Child,
    /// Taken on drop.
    open: Option<ChildStdin>,
}

impl Watcher {
    /// Starts a watcher for the worker in this directory.
    ///
    /// # Errors
    /// Fails if the process cannot be started.
    pub fn start(directory: &Path) -> io::Result<Watcher> {
        let mut watcher = Command::new("/proc/self/exe");
        watcher.arg0(std::env::args_os().next().unwrap_or_default());
        // A signal to the group of this process, such as Ctrl-C, must not end it.
        watcher.arg(MARKER).env_remove(WORKER_VARIABLE).process_group(0);
        let mut child = watcher.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut open = child.stdin.take().ok_or_else(|| io::Error::other("it has no pipe"))?;
        open.write_all(directory.as_os_str().as_bytes())?;
        open.write_all(&[0])?;
        Ok(Watcher { child, open: Some(open) })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        drop(self.open.take());
        // An error means that it has ended.
        let _ = self.child.wait();
    }
}

/// Returns whether this process was started as a watcher; [`become_watcher`] must then be called before anything
/// else.
pub fn watcher_requested() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == MARKER)
}

/// Waits for the end of the worker, ends what it has left, and exits.
pub fn become_watcher() -> ! {
    let mut received = Vec::new();
    // An error of the pipe means that the worker has ended, too.
    let _ = io::stdin().lock().read_to_end(&mut received);
    // A worker that ended before it sent its directory has started nothing.
    if let Some((0, directory)) = received.split_last() {
        end_processes_of(Path::new(OsStr::from_bytes(directory)));
    }
    std::process::exit(0)
}

/// Kills all processes of attempts of the worker in this directory, which has ended, with their descendants.
/// Returns how many were found.
pub fn end_processes_of(directory: &Path) -> usize {
    let mut mark = WORKER_VARIABLE.as_bytes().to_vec();
    mark.push(b'=');
    mark.extend_from_slice(directory.as_os_str().as_bytes());
    let began = Instant::now();
    let mut ended: BTreeSet<Descendant> = BTreeSet::new();
    loop {
        let left = marked(&mark, directory);
        if left.is_empty() || began.elapsed() > PATIENCE {
            return ended.len();
        }
        // Stopped first, so that none starts another one meanwhile.
        for process in &left {
            process.signal(Signal::STOP);
        }
        for process in &left {
            process.signal(Signal::KILL);
        }
        ended.extend(left);
        std::thread::sleep(LOOK);
    }
}

/// Returns the processes with a mark and their descendants. The environment of an ended process is empty.
fn marked(mark: &[u8], directory: &Path) -> BTreeSet<Descendant> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let mut found = BTreeSet::new();
    let Ok(entries) = std::fs::read_dir("/proc") else { return found };
    for entry in entries.flatten() {
        let process = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        let Some(process) = process.filter(|process| *process != own) else { continue };
        let variables = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let is_marked = variables.split(|byte| *byte == 0).any(|variable| variable == mark);
        if is_marked && is_same_directory(process, directory) {
            found.extend(Descendant::of(process));
            found.extend(descendants_of(process).members);
        }
    }
    found
}

/// Returns whether a path names the same directory for a process as for this one: in another container it may name
/// another one. A directory that was removed is taken for the same.
fn is_same_directory(process: i32, directory: &Path) -> bool {
    let Ok(own) = std::fs::metadata(directory) else { return true };
    let mut seen = PathBuf::from(format!("/proc/{process}/root"));
    seen.push(directory.strip_prefix("/").unwrap_or(directory));
    std::fs::metadata(seen).is_ok_and(|other| (other.dev(), other.ino()) == (own.dev(), own.ino()))
}

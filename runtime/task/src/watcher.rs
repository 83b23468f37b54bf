//! A watcher ends the processes of a worker's attempts when the worker is killed: it is this program executed
//! again, waits for the end of a pipe that only the worker holds open, and kills all processes with the worker's
//! mark in their environment, with their descendants. A watcher that is killed itself is started again.
//!
//! The kernel kills the task processes themselves, but not what their commands have started.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use napreduce_protocol::lock;
use napreduce_protocol::printing::print_error;
use rustix::process::Signal;

use crate::descendants::{Descendant, descendants_of};

/// First argument of a watcher.
const MARKER: &str = "--napreduce-watcher";
/// The variable in the environment of every process of a worker's attempts: the directory of the worker.
pub const WORKER_VARIABLE: &str = "NAPREDUCE_WORKER_DIRECTORY";
/// Time for killed processes to end, unless they wait for a disk.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(2);
/// A watcher that ended sooner is restarted only after this time.
const RESTART_INTERVAL: Duration = Duration::from_millis(100);

/// The watcher of a worker; it ends with this value. If its process is killed, another one is started.
#[derive(Debug)]
pub struct Watcher {
    /// The pipe to its process; `None` if no process is wanted any more.
    pipe: Arc<Mutex<Option<ChildStdin>>>,
    /// Taken on drop.
    keeper: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Starts a watcher for the worker in this directory.
    ///
    /// # Errors
    /// Fails if the process or the thread that waits for it cannot be started.
    pub fn start(directory: &Path) -> io::Result<Watcher> {
        let (child, open) = start_process(directory)?;
        let pipe = Arc::new(Mutex::new(Some(open)));
        let kept = Arc::clone(&pipe);
        let directory = directory.to_owned();
        let keeper = std::thread::Builder::new().name("watcher".into());
        let keeper = keeper.spawn(move || keep_process(&directory, child, &kept))?;
        Ok(Watcher {
            pipe,
            keeper: Some(keeper),
        })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        *lock(&self.pipe) = None;
        let Some(keeper) = self.keeper.take() else {
            return;
        };
        keeper.thread().unpark();
        // A panic of that thread has been printed.
        let _ = keeper.join();
    }
}

fn start_process(directory: &Path) -> io::Result<(Child, ChildStdin)> {
    let mut watcher = Command::new("/proc/self/exe");
    watcher.arg0(std::env::args_os().next().unwrap_or_default());
    // A signal to the group of this process, such as Ctrl-C, must not end it.
    watcher
        .arg(MARKER)
        .arg(directory)
        .env_remove(WORKER_VARIABLE)
        .process_group(0);
    let mut child = watcher
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let open = child
        .stdin
        .take()
        .ok_or_else(|| io::Error::other("it has no pipe"))?;
    Ok((child, open))
}

/// Waits for the process of a watcher, and starts another one as long as one is wanted.
fn keep_process(directory: &Path, mut child: Child, pipe: &Mutex<Option<ChildStdin>>) {
    loop {
        let began = Instant::now();
        // An error means that it has ended.
        let _ = child.wait();
        let left = RESTART_INTERVAL.saturating_sub(began.elapsed());
        if !left.is_zero() {
            std::thread::park_timeout(left);
        }
        let mut pipe = lock(pipe);
        if pipe.is_none() {
            return;
        }
        match start_process(directory) {
            Ok((next, open)) => {
                child = next;
                *pipe = Some(open);
            }
            Err(error) => {
                // The next worker in this directory ends what this one leaves.
                return print_error(format_args!(
                    "cannot restart the watcher of the worker: {error}"
                ));
            }
        }
    }
}

/// Returns whether this process was started as a watcher; [`become_watcher`] must then be called before anything
/// else.
pub fn watcher_requested() -> bool {
    std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == MARKER)
}

/// Waits for the end of the worker, ends what it has left, and exits.
pub fn become_watcher() -> ! {
    // An error of the pipe means that the worker has ended, too.
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    if let Some(directory) = std::env::args_os().nth(2) {
        end_processes_of(Path::new(&directory));
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
        // A process that is ending has no environment any more, but may still hold files and locks.
        let have_ended = left.is_empty() && ended.iter().all(|process| process.has_ended());
        if have_ended || began.elapsed() > PATIENCE {
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

/// Returns the directories of the workers whose attempts have processes on this machine, as far as their environments
/// can be read.
pub fn directories_of_workers() -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return found;
    };
    for entry in entries.flatten() {
        let variables = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        for variable in variables.split(|byte| *byte == 0) {
            let value = variable.strip_prefix(WORKER_VARIABLE.as_bytes());
            if let Some(directory) = value.and_then(|value| value.strip_prefix(b"=")) {
                found.insert(PathBuf::from(OsStr::from_bytes(directory)));
            }
        }
    }
    found
}

/// Returns the processes with a mark and their descendants. The environment of an ended process is empty.
fn marked(mark: &[u8], directory: &Path) -> BTreeSet<Descendant> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let mut found = BTreeSet::new();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return found;
    };
    for entry in entries.flatten() {
        let process = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok());
        let Some(process) = process.filter(|process| *process != own) else {
            continue;
        };
        let variables = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let is_marked = variables
            .split(|byte| *byte == 0)
            .any(|variable| variable == mark);
        if is_marked && is_same_directory(process, directory) {
            found.extend(Descendant::find(process));
            found.extend(descendants_of(process).members);
        }
    }
    found
}

/// Returns whether a path names the same directory for a process as for this one: in another container it may name
/// another one. A directory that was removed is taken for the same.
fn is_same_directory(process: i32, directory: &Path) -> bool {
    let Ok(own) = std::fs::metadata(directory) else {
        return true;
    };
    let mut seen = PathBuf::from(format!("/proc/{process}/root"));
    seen.push(directory.strip_prefix("/").unwrap_or(directory));
    std::fs::metadata(seen).is_ok_and(|other| (other.dev(), other.ino()) == (own.dev(), own.ino()))
}

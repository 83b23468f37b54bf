//! Owns daemons an experiment starts: until they are ready, what they may say of themselves, and that they
//! end with it. They end politely, so that they end what they started; only one that does not is killed. What
//! runs on a cluster belongs to the experiments, and how a program is started to `process`.

use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::process::{Pid, Signal, kill_process};

use crate::process::{CommandLine, InterruptError, ProcessError, last_words, spawn};

/// How long daemons may take to end; longer than what `nap up` gives its own before it kills them.
const END_MAX: Duration = Duration::from_secs(40);
const LOOK: Duration = Duration::from_millis(20);

/// A daemon could not be used.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// `nap` itself is not where the other programs are.
    #[error(
        "no nap binary at {path}; build it with `cargo build --release`, or name the folder that holds it with --bin-dir"
    )]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// It ended although nobody asked it to.
    #[error("{name} ended by itself ({status}){last_words}")]
    Ended {
        name: String,
        status: ExitStatus,
        /// The end of what it wrote to its standard error.
        last_words: String,
    },
    #[error("{name} did not end within {END_MAX:?} and was killed{last_words}")]
    Killed {
        name: String,
        /// The end of what it wrote to its standard error.
        last_words: String,
    },
    /// It cannot be looked at.
    #[error("cannot watch {name}: {source}")]
    Watch { name: String, source: io::Error },
    /// It cannot be started.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A signal asked the experiment to end.
    #[error(transparent)]
    Interrupted(#[from] InterruptError),
}

/// The `nap` binary in `folder`.
pub fn nap(folder: &Path) -> Result<PathBuf, DaemonError> {
    let path = folder.join("nap");
    if path.is_file() { Ok(path) } else { Err(DaemonError::Missing { path }) }
}

/// Daemons that end when this is dropped, later ones first asked.
#[derive(Debug)]
pub struct Daemons {
    folder: PathBuf,
    running: Vec<Daemon>,
}

#[derive(Debug)]
struct Daemon {
    name: String,
    child: Child,
}

impl Daemons {
    /// None yet; what they print goes to files in `folder`.
    pub fn none(folder: &Path) -> Daemons {
        Daemons { folder: folder.to_owned(), running: Vec::new() }
    }

    /// Starts one more; returns its process.
    pub fn start(&mut self, name: &str, command: &CommandLine) -> Result<Pid, DaemonError> {
        // A worker that is ended would save what it runs, and wait for a coordinator that is gone, too.
        let command = command.clone().env("NAPREDUCE_ON_TERMINATE", "leave");
        let child = spawn(&command, name, &self.folder)?;
        let id = Pid::from_child(&child);
        self.running.push(Daemon { name: name.to_owned(), child });
        Ok(id)
    }

    /// An error when one of them has ended.
    pub fn check(&mut self) -> Result<(), DaemonError> {
        let folder = &self.folder;
        for Daemon { name, child } in &mut self.running {
            let status =
                child.try_wait().map_err(|source| DaemonError::Watch { name: name.clone(), source })?;
            if let Some(status) = status {
                let last_words = last_words(&folder.join(format!("{name}.err")));
                return Err(DaemonError::Ended { name: name.clone(), status, last_words });
            }
        }
        Ok(())
    }

    /// Ends all of them; an error when one had to be killed.
    pub fn stop(mut self) -> Result<(), DaemonError> {
        match self.end() {
            None => Ok(()),
            Some(name) => Err(DaemonError::Killed { last_words: self.last_words(&name), name }),
        }
    }

    fn last_words(&self, name: &str) -> String {
        last_words(&self.folder.join(format!("{name}.err")))
    }

    /// Returns the name of one that did not end by itself.
    fn end(&mut self) -> Option<String> {
        for daemon in self.running.iter_mut().rev() {
            if daemon.is_running()
                && let Ok(id) = i32::try_from(daemon.child.id())
                && let Some(id) = Pid::from_raw(id)
            {
                // It has not been waited for, so the number is still its own; it may have ended by now.
                let _ = kill_process(id, Signal::TERM);
            }
        }
        let until = Instant::now() + END_MAX;
        while self.running.iter_mut().any(Daemon::is_running) && Instant::now() < until {
            thread::sleep(LOOK);
        }
        let mut killed = None;
        for mut daemon in self.running.drain(..) {
            if daemon.is_running() {
                // Errors mean that it is gone.
                let _ = daemon.child.kill();
                let _ = daemon.child.wait();
                killed = Some(daemon.name);
            }
        }
        killed
    }
}

impl Daemon {
    fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        // Who wants to know of one that was killed has called `stop`.
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_nap_says_how_to_build_it() {
        let error = nap(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/nap") && error.contains("cargo build --release"), "{error}");
    }
}

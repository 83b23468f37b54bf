//! The directory with the results of what-if simulations, locked by one server.
//!
//! ```text
//! lock                       held by the server
//! what-if-3/what-if.json     the request and its outcome
//! what-if-3/runs/fair.0/     the history of each simulated run
//! what-if-4.partial/         a running simulation: runs, tables.toml, output; deleted at the next start
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use napreduce_answers::RecordingKind;
use napreduce_history::HistoryFolder;
use napreduce_protocol::read_regular;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use thiserror::Error;
use tracing::warn;

use super::{WhatIf, WhatIfState};
use crate::shown::Shown;
use crate::source::{HistorySource, PageSource};

/// Limit of the simulator's standard output: figures of each job in each run.
const STDOUT_BYTES_MAX: u64 = 256 << 20;
/// Length of the end of standard error that becomes the error message.
const STDERR_TAIL_BYTES: usize = 2_000;
const RECORD: &str = "what-if.json";
const RECORD_BYTES_MAX: u64 = 16 << 20;
const PERCENT_BYTES_MAX: u64 = 64;

/// A finished what-if with its recordings.
pub type KeptWhatIf = (WhatIf, Vec<Arc<Shown>>);

/// The directory cannot be used.
#[derive(Debug, Error)]
pub enum WhatIfFolderError {
    #[error("{0}: in use by another server of this cluster; use or stop that server")]
    Taken(PathBuf),
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// The directory of a server, locked until it is dropped.
#[derive(Debug)]
pub struct WhatIfFolder {
    path: PathBuf,
    _lock: File,
}

impl WhatIfFolder {
    /// Creates and locks the directory, and returns the what-ifs that it contains.
    pub fn open(path: &Path) -> Result<(WhatIfFolder, Vec<KeptWhatIf>), WhatIfFolderError> {
        let failed = |source| WhatIfFolderError::Io {
            path: path.to_owned(),
            source,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(failed)?;
        // The path may contain symbolic links that change later.
        let path = path.canonicalize().map_err(failed)?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let lock = options.open(path.join("lock")).map_err(failed)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(WhatIfFolderError::Taken(path)),
            Err(error) => return Err(failed(error.into())),
        }
        let folder = WhatIfFolder { path, _lock: lock };
        let kept = folder.kept().map_err(failed)?;
        Ok((folder, kept))
    }

    /// Returns the finished what-ifs, oldest first, and deletes unfinished ones.
    fn kept(&self) -> io::Result<Vec<KeptWhatIf>> {
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.strip_suffix(".partial").and_then(number).is_some() {
                fs::remove_dir_all(self.path.join(&name))?;
            } else if let Some(number) = number(&name) {
                match self.read(&name) {
                    Ok(one) => kept.push((number, one)),
                    Err(error) => {
                        warn!("{}: {error}; ignoring it", self.path.join(&name).display())
                    }
                }
            }
        }
        kept.sort_by_key(|(number, _)| *number);
        Ok(kept.into_iter().map(|(_, one)| one).collect())
    }

    fn read(&self, name: &str) -> io::Result<KeptWhatIf> {
        let bytes = read_regular(&self.path.join(name).join(RECORD), RECORD_BYTES_MAX)?;
        let what_if: WhatIf = serde_json::from_slice(&bytes)?;
        if what_if.what_if != name || what_if.state != WhatIfState::Done {
            return Err(io::Error::other(format!(
                "{RECORD} describes another what-if"
            )));
        }
        let shown = recordings(name, &self.path.join(name))?;
        Ok((what_if, shown))
    }

    /// Creates the directory of a run.
    pub fn begin(&self, name: &str) -> io::Result<PartialRun> {
        let path = self.path.join(format!("{name}.partial"));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(PartialRun { path })
    }

    /// Keeps a finished run and returns it with the names of its recordings.
    pub fn keep(&self, run: PartialRun, mut what_if: WhatIf) -> io::Result<KeptWhatIf> {
        let kept = self.path.join(&what_if.what_if);
        let shown = recordings(&what_if.what_if, &run.path)?;
        what_if.recordings = shown.iter().map(|one| one.name.clone()).collect();
        for file in [STDOUT, STDERR, PROGRESS] {
            // A short simulation may end before it writes its progress.
            match fs::remove_file(run.path.join(file)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::write(run.path.join(RECORD), serde_json::to_vec(&what_if)?)?;
        fs::rename(&run.path, &kept)?;
        let shown = recordings(&what_if.what_if, &kept)?;
        Ok((what_if, shown))
    }

    /// Returns the progress of a running what-if, if it has written any.
    pub fn percent(&self, name: &str) -> Option<u8> {
        let file = self.path.join(format!("{name}.partial")).join(PROGRESS);
        let percent = read_regular(&file, PERCENT_BYTES_MAX).ok()?;
        std::str::from_utf8(&percent).ok()?.trim().parse().ok()
    }

    /// Deletes a kept what-if.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_dir_all(self.path.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

const STDOUT: &str = "stdout.json";
const STDERR: &str = "stderr.txt";
const PROGRESS: &str = "percent.txt";

/// The directory of a running simulation, deleted on drop unless it was kept.
#[derive(Debug)]
pub struct PartialRun {
    path: PathBuf,
}

impl PartialRun {
    /// Directory for the simulated histories.
    pub fn record(&self) -> PathBuf {
        self.path.join("runs")
    }

    /// File to which the simulator writes its progress.
    pub fn progress(&self) -> PathBuf {
        self.path.join(PROGRESS)
    }

    /// Writes the scheduler tables for the simulator.
    pub fn tables(&self, text: &str) -> io::Result<PathBuf> {
        let file = self.path.join("tables.toml");
        fs::write(&file, text).map(|()| file)
    }

    /// Creates the files for standard output and standard error.
    pub fn outputs(&self) -> io::Result<(File, File)> {
        Ok((
            File::create(self.path.join(STDOUT))?,
            File::create(self.path.join(STDERR))?,
        ))
    }

    pub fn stdout(&self) -> io::Result<Vec<u8>> {
        let mut stdout = Vec::new();
        File::open(self.path.join(STDOUT))?
            .take(STDOUT_BYTES_MAX)
            .read_to_end(&mut stdout)?;
        Ok(stdout)
    }

    /// Returns the end of standard error.
    pub fn stderr_tail(&self) -> String {
        let stderr = fs::read(self.path.join(STDERR)).unwrap_or_default();
        let start = stderr.len().saturating_sub(STDERR_TAIL_BYTES);
        String::from_utf8_lossy(&stderr[start..]).trim().to_owned()
    }
}

impl Drop for PartialRun {
    fn drop(&mut self) {
        // A kept run has been renamed.
        if let Err(error) = fs::remove_dir_all(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            warn!("cannot remove {}: {error}", self.path.display());
        }
    }
}

/// Parses `what-if-3` to 3.
fn number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("what-if-")?;
    digits
        .bytes()
        .all(|digit| digit.is_ascii_digit())
        .then(|| digits.parse().ok())
        .flatten()
}

/// The number in the name of a what-if.
pub fn number_of(what_if: &WhatIf) -> u64 {
    number(&what_if.what_if).unwrap_or(0)
}

/// Returns the histories in a directory; the baseline, with the recorded scheduler, comes first.
fn recordings(name: &str, folder: &Path) -> io::Result<Vec<Arc<Shown>>> {
    let mut shown = Vec::new();
    for run in HistoryFolder::find(&folder.join("runs")).map_err(io::Error::other)? {
        let label = run
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let source: Arc<dyn PageSource> =
            Arc::new(HistorySource::open(&run).map_err(io::Error::other)?);
        shown.push((
            label.clone(),
            Shown::new(format!("{name}.{label}"), RecordingKind::WhatIf, source),
        ));
    }
    shown.sort_by_key(|(label, _)| (!label.contains("-as-recorded."), label.clone()));
    Ok(shown
        .into_iter()
        .map(|(_, shown)| Arc::new(shown))
        .collect())
}

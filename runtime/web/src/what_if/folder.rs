//! Where what-ifs are kept: a folder that belongs to one server.
//!
//! Owns the names in it, and that what was not finished is removed. Does not own how many are kept (`queue`).
//!
//! ```text
//! lock                       held by the server
//! what-if-3/what-if.json     what was asked for and what came of it
//! what-if-3/runs/fair.0/     the history of each run
//! what-if-4.partial/         one that runs: runs, tables.toml, what it says
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use napreduce_history::HistoryFolder;
use napreduce_protocol::read_regular;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use thiserror::Error;
use tracing::warn;

use super::{WhatIf, WhatIfState};
use crate::answers::RecordingKind;
use crate::shown::Shown;
use crate::source::{HistorySource, PageSource};

/// What a simulation says at most: the figures of each job of each run.
const SAID_BYTES_MAX: u64 = 256 << 20;
/// Of what it complains of, the begin is left out.
const ERROR_BYTES_MAX: usize = 2_000;
const RECORD: &str = "what-if.json";
const RECORD_BYTES_MAX: u64 = 16 << 20;

/// What is told of one, and what it made.
pub type KeptWhatIf = (WhatIf, Vec<Arc<Shown>>);

/// Why there are no what-ifs.
#[derive(Debug, Error)]
pub enum WhatIfFolderError {
    #[error("{0} is another server's of this cluster; ask that one, or end it")]
    Taken(PathBuf),
    #[error("cannot use {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// The folder of a server, until it is dropped.
#[derive(Debug)]
pub struct WhatIfFolder {
    path: PathBuf,
    _lock: File,
}

impl WhatIfFolder {
    /// Makes it, or takes it over with what is in it.
    pub fn open(path: &Path) -> Result<(WhatIfFolder, Vec<KeptWhatIf>), WhatIfFolderError> {
        let failed = |source| WhatIfFolderError::Io { path: path.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        // Others may have come to it by another way.
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

    /// Those that were finished, oldest first; of others nothing is left.
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
                        warn!("{} is left out: {error}; remove it", self.path.join(&name).display())
                    }
                }
            }
        }
        kept.sort_by_key(|(number, _)| *number);
        Ok(kept.into_iter().map(|(_, one)| one).collect())
    }

    fn read(&self, name: &str) -> io::Result<KeptWhatIf> {
        let bytes = read_regular(&self.path.join(name).join(RECORD), RECORD_BYTES_MAX)?;
        let told: WhatIf = serde_json::from_slice(&bytes)?;
        if told.what_if != name || told.state != WhatIfState::Done {
            return Err(io::Error::other(format!("{RECORD} is about something else")));
        }
        let shown = recordings(name, &self.path.join(name))?;
        Ok((told, shown))
    }

    /// A place for a run.
    pub fn begin(&self, name: &str) -> io::Result<PartialRun> {
        let path = self.path.join(format!("{name}.partial"));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(PartialRun { path })
    }

    /// Keeps a run that is finished. What is told of it has its recordings then.
    pub fn keep(&self, run: PartialRun, mut told: WhatIf) -> io::Result<KeptWhatIf> {
        let kept = self.path.join(&told.what_if);
        told.recordings = recordings(&told.what_if, &run.path)?.iter().map(|one| one.name.clone()).collect();
        for file in [SAID, COMPLAINED, PROGRESS] {
            // A program that said nothing of how far it was made no such file.
            match fs::remove_file(run.path.join(file)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::write(run.path.join(RECORD), serde_json::to_vec(&told)?)?;
        fs::rename(&run.path, &kept)?;
        let shown = recordings(&told.what_if, &kept)?;
        Ok((told, shown))
    }

    /// How far one that runs is, if it says so.
    pub fn percent(&self, name: &str) -> Option<u8> {
        let said = fs::read_to_string(self.path.join(format!("{name}.partial")).join(PROGRESS)).ok()?;
        said.trim().parse().ok()
    }

    /// Removes one that was kept.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_dir_all(self.path.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

const SAID: &str = "said.json";
const COMPLAINED: &str = "complained.txt";
const PROGRESS: &str = "percent.txt";

/// The files of a run that goes on; they go with it unless they are kept.
#[derive(Debug)]
pub struct PartialRun {
    path: PathBuf,
}

impl PartialRun {
    /// Where histories are to be written.
    pub fn record(&self) -> PathBuf {
        self.path.join("runs")
    }

    /// Where it says how far it is.
    pub fn progress(&self) -> PathBuf {
        self.path.join(PROGRESS)
    }

    /// Writes tables for the simulation to read.
    pub fn tables(&self, text: &str) -> io::Result<PathBuf> {
        let file = self.path.join("tables.toml");
        fs::write(&file, text).map(|()| file)
    }

    /// Where it says what came of it, and where it complains.
    pub fn outputs(&self) -> io::Result<(File, File)> {
        Ok((File::create(self.path.join(SAID))?, File::create(self.path.join(COMPLAINED))?))
    }

    pub fn said(&self) -> io::Result<Vec<u8>> {
        let mut said = Vec::new();
        File::open(self.path.join(SAID))?.take(SAID_BYTES_MAX).read_to_end(&mut said)?;
        Ok(said)
    }

    /// The end of what it complained of.
    pub fn complaint(&self) -> String {
        let complained = fs::read(self.path.join(COMPLAINED)).unwrap_or_default();
        let end = complained.len().saturating_sub(ERROR_BYTES_MAX);
        String::from_utf8_lossy(&complained[end..]).trim().to_owned()
    }
}

impl Drop for PartialRun {
    fn drop(&mut self) {
        // What was kept has another name by now.
        if let Err(error) = fs::remove_dir_all(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            warn!("cannot remove {}: {error}", self.path.display());
        }
    }
}

/// Of `what-if-3` 3.
fn number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("what-if-")?;
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// Of which the next one is not.
pub fn number_of(told: &WhatIf) -> u64 {
    number(&told.what_if).unwrap_or(0)
}

/// The histories in a folder: first that of the recorded policy, against which the others are compared.
fn recordings(name: &str, folder: &Path) -> io::Result<Vec<Arc<Shown>>> {
    let mut shown = Vec::new();
    for run in HistoryFolder::find(&folder.join("runs")).map_err(io::Error::other)? {
        let label = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let source: Arc<dyn PageSource> = Arc::new(HistorySource::open(&run).map_err(io::Error::other)?);
        shown.push((label.clone(), Shown::new(format!("{name}.{label}"), RecordingKind::WhatIf, source)));
    }
    shown.sort_by_key(|(label, _)| (!label.contains("-as-recorded."), label.clone()));
    Ok(shown.into_iter().map(|(_, shown)| Arc::new(shown)).collect())
}

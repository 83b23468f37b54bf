//! The journal's directory: which snapshot and which file are current, and how one generation follows another.
//!
//! Owns the names and the order of steps of a compaction. Does not own what is in a snapshot.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::file::{Content, JournalFile};
use super::frame::{self, Frame};
use super::{EngineRules, FsyncPolicy, Header, JOURNAL_VERSION, JournalError};

/// The journal that a coordinator appends to.
#[derive(Debug)]
pub(crate) struct Journal {
    directory: PathBuf,
    generation: u64,
    header: Header,
    file: JournalFile,
    fsync: FsyncPolicy,
}

/// What an earlier coordinator left.
#[derive(Debug)]
pub(crate) struct Recovered {
    /// There was nothing, and the journal is a new one.
    pub(crate) begun: bool,
    /// What `compact` was given last.
    pub(crate) snapshot: Option<Vec<u8>>,
    /// What was appended since, in order.
    pub(crate) entries: Vec<Vec<u8>>,
    /// What was cut off or left, for people.
    pub(crate) remarks: Vec<String>,
}

impl Journal {
    /// Opens the journal in `directory`, or begins one with the header `fresh`.
    pub(crate) fn open(
        directory: &Path,
        fresh: Header,
        fsync: FsyncPolicy,
    ) -> Result<(Journal, Recovered), JournalError> {
        fs::create_dir_all(directory).map_err(|error| JournalError::io("create", directory, error))?;
        let generations = list(directory)?;
        generations.check(directory)?;
        let mut recovered =
            Recovered { begun: true, snapshot: None, entries: Vec::new(), remarks: Vec::new() };
        let (generation, mut header) = match generations.last_snapshot {
            Some(generation) => {
                let (header, payload) = read_snapshot(&snapshot_path(directory, generation))?;
                recovered.snapshot = Some(payload);
                recovered.begun = false;
                (generation, Some(header))
            }
            None => (1, None),
        };
        let path = journal_path(directory, generation);
        let opened = match generations.journals.contains(&generation) {
            true => JournalFile::open(&path, fsync)?,
            false => None,
        };
        if opened.is_none() {
            recovered.remarks.extend(generations.loss(&path, generation));
        }
        let file = match opened {
            Some((file, content)) => {
                recovered.begun = false;
                header = Some(content.header);
                recovered.entries = content.entries;
                recovered.remarks.extend(content.cut);
                file
            }
            None => JournalFile::create(&path, header.clone().unwrap_or(fresh.clone()), fsync)?,
        };
        let header = header.unwrap_or(fresh);
        let journal = Journal { directory: directory.to_owned(), generation, header, file, fsync };
        journal.remove_older(&generations)?;
        Ok((journal, recovered))
    }

    /// What is in a directory, read only: another process may be writing there. None when nothing is.
    pub(crate) fn read(directory: &Path) -> Result<Option<(Header, Recovered)>, JournalError> {
        if !directory.is_dir() {
            return Ok(None);
        }
        let generations = list(directory)?;
        let snapshot = generations.last_snapshot.map(|last| read_snapshot(&snapshot_path(directory, last)));
        let (header, snapshot) = snapshot.transpose()?.unzip();
        let path = journal_path(directory, generations.last_snapshot.unwrap_or(1));
        let content = if path.exists() { JournalFile::read(&path)? } else { None };
        let (entries, cut, begun) = match content {
            Some(Content { header, entries, cut }) => (entries, cut, Some(header)),
            None => (Vec::new(), None, header),
        };
        let recovered = Recovered { begun: false, snapshot, entries, remarks: cut.into_iter().collect() };
        Ok(begun.map(|header| (header, recovered)))
    }

    /// Which journal this is, and since when.
    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// Keeps entries; they survive the end of this process when this returns.
    pub(crate) fn append(&mut self, entries: &[Vec<u8>]) -> Result<(), JournalError> {
        self.file.append(entries)
    }

    /// To be called now and then.
    pub(crate) fn sync_if_due(&mut self) -> Result<(), JournalError> {
        self.file.sync_if_due()
    }

    /// Forces what was appended to the disk now, whatever the interval; not if that is never wanted.
    pub(crate) fn sync(&mut self) -> Result<(), JournalError> {
        self.file.sync_wanted()
    }

    /// Bytes appended since the last snapshot.
    pub(crate) fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    /// Puts a snapshot in the place of everything appended so far; what comes after it is for an engine with these
    /// rules.
    pub(crate) fn compact(&mut self, snapshot: &[u8], rules: EngineRules) -> Result<(), JournalError> {
        let next = self.generation + 1;
        self.header.rules = rules;
        write_snapshot(&self.directory, next, &self.header, snapshot)?;
        let path = journal_path(&self.directory, next);
        self.file = JournalFile::create(&path, self.header.clone(), self.fsync)?;
        self.generation = next;
        self.remove_older(&list(&self.directory)?)
    }

    fn remove_older(&self, generations: &Generations) -> Result<(), JournalError> {
        let journals = generations.journals.iter().filter(|&&number| number != self.generation);
        let snapshots = generations.snapshots.iter().filter(|&&number| number != self.generation);
        let old = journals.map(|&number| journal_path(&self.directory, number));
        let old = old.chain(snapshots.map(|&number| snapshot_path(&self.directory, number)));
        for path in old.chain(generations.unfinished.iter().cloned()) {
            fs::remove_file(&path).map_err(|error| JournalError::io("remove", &path, error))?;
        }
        Ok(())
    }
}

fn journal_path(directory: &Path, generation: u64) -> PathBuf {
    directory.join(format!("journal-{generation:08}.log"))
}

fn snapshot_path(directory: &Path, generation: u64) -> PathBuf {
    directory.join(format!("snapshot-{generation:08}.json"))
}

/// The files of a directory by number.
#[derive(Debug, Default)]
struct Generations {
    journals: Vec<u64>,
    snapshots: Vec<u64>,
    unfinished: Vec<PathBuf>,
    last_snapshot: Option<u64>,
}

impl Generations {
    /// Refuses a journal that goes on from a snapshot that is not there: what the snapshot held would be forgotten.
    fn check(&self, directory: &Path) -> Result<(), JournalError> {
        let last = self.journals.iter().copied().max().unwrap_or(1);
        if last <= self.last_snapshot.unwrap_or(1) {
            return Ok(());
        }
        Err(JournalError::SnapshotMissing {
            journal: journal_path(directory, last),
            snapshot: snapshot_path(directory, last),
            directory: directory.to_owned(),
        })
    }

    /// What is missing when the file of the current generation holds nothing, for people. A compaction that was cut short
    /// leaves the file before it, and nothing is missing.
    fn loss(&self, path: &Path, current: u64) -> Option<String> {
        let (path, empty) = (path.display(), self.journals.contains(&current));
        match self.last_snapshot {
            Some(_) if self.journals.iter().any(|&number| number < current) => None,
            Some(_) => {
                let how = if empty { "is empty" } else { "is missing" };
                Some(format!(
                    "warning: {path} {how}: what has happened since the last snapshot is forgotten; stop the coordinator and \
                     restore the file if there is a copy"
                ))
            }
            None => empty.then(|| {
                format!(
                    "warning: {path} was empty, and is begun anew: jobs that were in it are forgotten; stop the coordinator \
                     and restore the file if there is a copy"
                )
            }),
        }
    }
}

fn list(directory: &Path) -> Result<Generations, JournalError> {
    let failed = |source| JournalError::io("list", directory, source);
    let mut found = Generations::default();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = |prefix: &str, suffix: &str| -> Option<u64> {
            name.strip_prefix(prefix)?.strip_suffix(suffix)?.parse().ok()
        };
        if let Some(number) = number("journal-", ".log") {
            found.journals.push(number);
        } else if let Some(number) = number("snapshot-", ".json") {
            found.snapshots.push(number);
        } else if name.starts_with("snapshot-") {
            found.unfinished.push(path);
        }
    }
    found.last_snapshot = found.snapshots.iter().copied().max();
    Ok(found)
}

/// Complete under its name, or not there.
fn write_snapshot(
    directory: &Path,
    number: u64,
    header: &Header,
    payload: &[u8],
) -> Result<(), JournalError> {
    let path = snapshot_path(directory, number);
    let unfinished = path.with_extension("unfinished");
    let write = || -> io::Result<()> {
        let mut bytes = Vec::with_capacity(payload.len() + 128);
        frame::push(&mut bytes, &serde_json::to_vec(header)?).map_err(io::Error::other)?;
        frame::push(&mut bytes, payload).map_err(io::Error::other)?;
        let mut file = File::create(&unfinished)?;
        file.write_all(&bytes)?;
        file.sync_data()?;
        fs::rename(&unfinished, &path)?;
        File::open(directory)?.sync_all()
    };
    write().map_err(|error| JournalError::io("write", &path, error))
}

fn read_snapshot(path: &Path) -> Result<(Header, Vec<u8>), JournalError> {
    let bytes = fs::read(path).map_err(|error| JournalError::io("read", path, error))?;
    let damaged = |offset: usize, what: String| JournalError::Damaged {
        path: path.to_owned(),
        offset: offset as u64,
        what,
    };
    let part = |offset: usize| match frame::read(&bytes, offset) {
        Frame::Whole { payload, next } => Ok((payload, next)),
        Frame::End => Err(damaged(offset, "it ends too early".to_owned())),
        Frame::Torn { what } | Frame::Damaged { what } => Err(damaged(offset, what)),
    };
    let (header, next) = part(0)?;
    let header: Header =
        serde_json::from_slice(header).map_err(|error| damaged(0, format!("no header: {error}")))?;
    if header.version != JOURNAL_VERSION {
        return Err(JournalError::Version { path: path.to_owned(), found: header.version });
    }
    Ok((header, part(next)?.0.to_vec()))
}

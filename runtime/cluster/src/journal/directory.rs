//! The journal's directory: finds the current snapshot and file, and moves from one generation to the next.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use napreduce_local::world::disk::Disk;
use serde::Serialize;

use super::file::{Content, JournalFile};
use super::snapshot::{self, Snapshot};
use super::survey::survey;
use super::{EngineRules, FsyncPolicy, Header, JOURNAL_VERSION, JournalError};

/// The permissions of the directory, before the process's mask.
const DIRECTORY_MODE: u32 = 0o777;

/// The journal that a coordinator appends to.
#[derive(Debug)]
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    generation: u64,
    header: Header,
    file: JournalFile,
    fsync: FsyncPolicy,
}

/// The data of an earlier coordinator.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    /// Whether the directory was empty and the journal is new.
    pub(crate) begun: bool,
    /// The last compaction's snapshot.
    pub(crate) snapshot: Option<Snapshot>,
    /// Entries appended since, in order.
    pub(crate) entries: Vec<Vec<u8>>,
    /// Truncated or ignored data, as messages for people.
    pub(crate) remarks: Vec<String>,
}

impl Journal {
    /// Fails if another coordinator writes to the journal in `directory`.
    pub(crate) fn check_unlocked(disk: &dyn Disk, directory: &Path) -> Result<(), JournalError> {
        if !disk.is_directory(directory) {
            return Ok(());
        }
        let generations = list(disk, directory)?;
        let last = generations.last();
        if !generations.journals.contains(&last) {
            return Ok(());
        }
        JournalFile::check_unlocked(disk, &journal_path(directory, last))
    }

    /// Opens the journal in `directory`, or creates one with the header `fresh`. Fails if another coordinator
    /// writes to it.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        directory: &Path,
        fresh: Header,
        fsync: FsyncPolicy,
    ) -> Result<(Journal, Recovered), JournalError> {
        disk.make_directories(directory, DIRECTORY_MODE)
            .and_then(|()| disk.sync_parent(directory))
            .map_err(JournalError::io("create", directory))?;
        loop {
            let generations = list(&*disk, directory)?;
            let last = generations.last();
            let opened = open_generation(&*disk, directory, &generations, &fresh, fsync)?;
            // Another coordinator may have begun the next file, and released this one, before this one was locked.
            if list(&*disk, directory)?.last() == last {
                // A coordinator that was killed may have left files whose names are not on the disk yet.
                disk.sync_directory(directory)
                    .map_err(JournalError::io("sync", directory))?;
                remove_older(&*disk, directory, generations.first(), &generations)?;
                let mut journal = Journal {
                    disk,
                    directory: directory.to_owned(),
                    generation: last,
                    header: opened.header,
                    file: opened.file,
                    fsync,
                };
                if journal.header.version != JOURNAL_VERSION {
                    // A file keeps its layout; the next one gets that of this program.
                    journal.header.version = JOURNAL_VERSION;
                    journal.begin_compaction()?;
                }
                return Ok((journal, opened.recovered));
            }
        }
    }

    /// Reads a directory without changing it: another process may be writing to it. `None` if it is empty. Fails if the
    /// journal is damaged.
    pub(crate) fn read(
        disk: &dyn Disk,
        directory: &Path,
    ) -> Result<Option<(Header, Recovered)>, JournalError> {
        let Some(survey) = survey(disk, directory)? else {
            return Ok(None);
        };
        if let Some(damage) = survey.damage {
            return Err(damage);
        }
        let recovered = survey.recovered;
        Ok(survey.header.map(|header| (header, recovered)))
    }

    /// Writes a journal with these entries to an empty directory. They continue a snapshot of this generation, or are
    /// all there are.
    pub(crate) fn write(
        disk: &dyn Disk,
        directory: &Path,
        generation: u64,
        header: &Header,
        entries: &[Vec<u8>],
    ) -> Result<(), JournalError> {
        let path = journal_path(directory, generation);
        let header = Header {
            version: JOURNAL_VERSION,
            follows: None,
            ..header.clone()
        };
        let mut file = JournalFile::create(disk, &path, &header, FsyncPolicy::Always)?;
        if entries.is_empty() {
            return Ok(());
        }
        file.append(entries)
    }

    /// Returns the header of the current file.
    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// Appends entries; on return they survive the end of this process.
    pub(crate) fn append(&mut self, entries: &[Vec<u8>]) -> Result<(), JournalError> {
        self.file.append(entries)
    }

    /// Syncs if the interval has passed; to be called regularly.
    pub(crate) fn sync_if_due(&mut self) -> Result<(), JournalError> {
        self.file.sync_if_due()
    }

    /// Syncs to disk now, whatever the interval, unless syncing is disabled.
    pub(crate) fn sync(&mut self) -> Result<(), JournalError> {
        self.file.sync_wanted()
    }

    /// Returns the number of bytes in the current file.
    pub(crate) fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    /// Replaces everything appended so far by a snapshot. Later entries are for an engine with these rules.
    pub(crate) fn compact(
        &mut self,
        snapshot: &impl Serialize,
        rules: EngineRules,
    ) -> Result<(), JournalError> {
        let next = self.generation + 1;
        self.header.rules = rules;
        snapshot::write(
            &*self.disk,
            &snapshot_path(&self.directory, next),
            &self.header,
            snapshot,
        )?;
        // The snapshot replaces the files before.
        self.begin_file(next, None)?;
        let generations = list(&*self.disk, &self.directory)?;
        remove_older(&*self.disk, &self.directory, next, &generations)
    }

    /// Creates the file of a generation. It continues the file whose last frame has the checksum `follows`.
    fn begin_file(&mut self, generation: u64, follows: Option<u32>) -> Result<(), JournalError> {
        self.header.follows = follows.map(digits_of);
        let path = journal_path(&self.directory, generation);
        self.file = JournalFile::create(&*self.disk, &path, &self.header, self.fsync)?;
        self.generation = generation;
        Ok(())
    }

    /// Begins the next file. The compaction's snapshot must cover everything appended so far; until it is
    /// written, a coordinator recovers from the earlier files.
    pub(crate) fn begin_compaction(&mut self) -> Result<Compaction, JournalError> {
        let next = self.generation + 1;
        // A file with a successor must not have a torn tail.
        self.file.seal()?;
        self.begin_file(next, Some(self.file.sum()))?;
        Ok(Compaction {
            disk: Arc::clone(&self.disk),
            directory: self.directory.clone(),
            generation: next,
            header: self.header.clone(),
        })
    }
}

/// The current file, open and locked, and the data before and in it.
struct Opened {
    file: JournalFile,
    header: Header,
    recovered: Recovered,
}

/// Opens and locks the current file, or creates it.
fn open_generation(
    disk: &dyn Disk,
    directory: &Path,
    generations: &Generations,
    fresh: &Header,
    fsync: FsyncPolicy,
) -> Result<Opened, JournalError> {
    generations.check(directory)?;
    let Before {
        mut chain,
        mut recovered,
    } = read_before_last(disk, directory, generations)?;
    let last = generations.last();
    let path = journal_path(directory, last);
    let existing = if generations.journals.contains(&last) {
        JournalFile::open(disk, &path, fsync)?
    } else {
        None
    };
    if let Some((file, content)) = existing {
        chain.add(&path, &content)?;
        recovered.entries.extend(content.entries);
        recovered.remarks.extend(content.cut);
        return Ok(Opened {
            file,
            header: content.header,
            recovered,
        });
    }
    recovered.begun = chain.header.is_none();
    recovered.remarks.extend(generations.loss(&path, last));
    let header = Header {
        version: JOURNAL_VERSION,
        follows: chain.sum().map(digits_of),
        ..chain.header.unwrap_or_else(|| fresh.clone())
    };
    Ok(Opened {
        file: JournalFile::create(disk, &path, &header, fsync)?,
        header,
        recovered,
    })
}

/// The files of one journal in the order in which they were written. Each has to continue the one before.
#[derive(Debug, Default)]
pub(super) struct FileChain {
    /// The header of the last file.
    pub(super) header: Option<Header>,
    last: Option<ChainedFile>,
}

/// The end of a file that another one continues.
#[derive(Debug)]
struct ChainedFile {
    path: PathBuf,
    end: u64,
    sum: u32,
}

impl FileChain {
    /// Begins with a snapshot.
    pub(super) fn after(snapshot: Option<&Snapshot>) -> FileChain {
        FileChain {
            header: snapshot.map(|snapshot| snapshot.header.clone()),
            last: None,
        }
    }

    /// Adds a file. Fails if it belongs to another journal, or continues other entries than those of the file before.
    pub(super) fn add(&mut self, path: &Path, content: &Content) -> Result<(), JournalError> {
        let header = &content.header;
        let expected = self.header.as_ref().map(|header| header.journal);
        if expected.is_some_and(|expected| expected != header.journal) {
            return Err(JournalError::Damaged {
                path: path.to_owned(),
                offset: 0,
                what: "the file belongs to another journal".to_owned(),
            });
        }
        if let (Some(last), Some(follows)) = (&self.last, &header.follows)
            && digits_of(last.sum) != *follows
        {
            return Err(JournalError::Damaged {
                path: last.path.clone(),
                offset: last.end,
                what: format!("the entries that {} continues are missing", path.display()),
            });
        }
        self.header = Some(header.clone());
        self.last = Some(ChainedFile {
            path: path.to_owned(),
            end: content.end,
            sum: content.sum,
        });
        Ok(())
    }

    /// Returns the checksum that the next file has to continue.
    fn sum(&self) -> Option<u32> {
        self.last.as_ref().map(|last| last.sum)
    }
}

/// Everything before the current file.
struct Before {
    chain: FileChain,
    recovered: Recovered,
}

/// A snapshot to be written, on any thread.
#[derive(Debug)]
pub(crate) struct Compaction {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    generation: u64,
    header: Header,
}

impl Compaction {
    /// The path of the snapshot.
    pub(crate) fn path(&self) -> PathBuf {
        snapshot_path(&self.directory, self.generation)
    }

    /// Writes the snapshot, then removes the files that it replaces.
    pub(crate) fn write(self, snapshot: &impl Serialize) -> Result<(), JournalError> {
        let disk = &*self.disk;
        snapshot::write(disk, &self.path(), &self.header, snapshot)?;
        let generations = list(disk, &self.directory)?;
        remove_older(disk, &self.directory, self.generation, &generations)
    }
}

fn remove_older(
    disk: &dyn Disk,
    directory: &Path,
    first: u64,
    generations: &Generations,
) -> Result<(), JournalError> {
    let journals = generations
        .journals
        .iter()
        .filter(|&&number| number < first);
    let snapshots = generations
        .snapshots
        .iter()
        .filter(|(number, _)| *number < first);
    let old = journals.map(|&number| journal_path(directory, number));
    let old = old.chain(snapshots.map(|(_, path)| path.clone()));
    for path in old.chain(generations.unfinished.iter().cloned()) {
        disk.remove_file(&path)
            .map_err(JournalError::io("remove", &path))?;
    }
    Ok(())
}

/// Reads the last snapshot and the files between it and the current file.
fn read_before_last(
    disk: &dyn Disk,
    directory: &Path,
    generations: &Generations,
) -> Result<Before, JournalError> {
    let last = generations.snapshots.iter().max();
    let snapshot = last
        .map(|(_, path)| Snapshot::open(disk, path))
        .transpose()?;
    let mut chain = FileChain::after(snapshot.as_ref());
    let mut recovered = Recovered {
        snapshot,
        ..Recovered::default()
    };
    for generation in generations.first()..generations.last() {
        let path = journal_path(directory, generation);
        let content =
            JournalFile::read(disk, &path)?.ok_or_else(|| empty_before_successor(&path))?;
        chain.add(&path, &content)?;
        if let Some(damage) = content.damage_before_successor(&path) {
            return Err(damage);
        }
        recovered.entries.extend(content.entries);
    }
    Ok(Before { chain, recovered })
}

/// The error of a file without a header that has a successor.
pub(super) fn empty_before_successor(path: &Path) -> JournalError {
    JournalError::Damaged {
        path: path.to_owned(),
        offset: 0,
        what: "the file is empty, but a later file continues it".to_owned(),
    }
}

/// Returns the digits by which a header names the last frame of the file before.
fn digits_of(sum: u32) -> String {
    format!("{sum:08x}")
}

pub(super) fn journal_path(directory: &Path, generation: u64) -> PathBuf {
    directory.join(format!("journal-{generation:08}.log"))
}

pub(super) fn snapshot_path(directory: &Path, generation: u64) -> PathBuf {
    directory.join(format!("snapshot-{generation:08}.{}", snapshot::JSON))
}

/// The files of a directory by number.
#[derive(Debug, Default)]
pub(super) struct Generations {
    pub(super) journals: BTreeSet<u64>,
    pub(super) snapshots: Vec<(u64, PathBuf)>,
    unfinished: Vec<PathBuf>,
}

impl Generations {
    fn last_snapshot(&self) -> Option<u64> {
        self.snapshots.iter().map(|(number, _)| *number).max()
    }

    /// Returns the generation from which a coordinator recovers.
    fn first(&self) -> u64 {
        self.last_snapshot().unwrap_or(1)
    }

    /// Returns the generation that is appended to.
    pub(super) fn last(&self) -> u64 {
        self.journals.last().copied().unwrap_or(1).max(self.first())
    }

    /// Fails if a file that the journal depends on is missing: its entries would be lost silently.
    fn check(&self, directory: &Path) -> Result<(), JournalError> {
        let last = self.last();
        let gap = (self.first()..last)
            .rev()
            .find(|number| !self.journals.contains(number));
        let Some(gap) = gap else { return Ok(()) };
        Err(JournalError::SnapshotMissing {
            journal: journal_path(directory, gap + 1),
            snapshot: snapshot_path(directory, gap + 1),
            directory: directory.to_owned(),
        })
    }

    /// Describes the loss if the current generation's file is empty. After an interrupted compaction the
    /// previous file is still there and nothing is lost.
    pub(super) fn loss(&self, path: &Path, current: u64) -> Option<String> {
        let path = path.display();
        let empty = self.journals.contains(&current);
        if self.journals.iter().any(|&number| number < current) {
            return None;
        }
        match self.last_snapshot() {
            Some(_) => {
                let how = if empty { "is empty" } else { "is missing" };
                Some(format!(
                    "warning: {path} {how}: events since the last snapshot are lost; to recover them, stop \
                     the coordinator and restore the file from a copy"
                ))
            }
            None => empty.then(|| {
                format!(
                    "warning: {path} is empty: its jobs are lost; to recover them, stop the coordinator and \
                     restore the file from a copy"
                )
            }),
        }
    }
}

pub(super) fn list(disk: &dyn Disk, directory: &Path) -> Result<Generations, JournalError> {
    let mut found = Generations::default();
    let names = disk
        .list(directory)
        .map_err(JournalError::io("list", directory))?;
    for name in names {
        let path = directory.join(&name);
        match file_of(name.to_str().unwrap_or_default()) {
            Some(FileOf::Journal(number)) => {
                found.journals.insert(number);
            }
            Some(FileOf::Snapshot(number)) => found.snapshots.push((number, path)),
            Some(FileOf::UnfinishedSnapshot) => found.unfinished.push(path),
            None => {}
        }
    }
    Ok(found)
}

/// A file of a journal by its name.
enum FileOf {
    Journal(u64),
    Snapshot(u64),
    UnfinishedSnapshot,
}

/// Returns what a file of that name is; `None` if it does not belong to the journal.
fn file_of(name: &str) -> Option<FileOf> {
    let (stem, ending) = name.rsplit_once('.')?;
    let (kind, number) = stem.split_once('-')?;
    let number = number.parse().ok()?;
    match (kind, ending) {
        ("journal", "log") => Some(FileOf::Journal(number)),
        ("snapshot", snapshot::MESSAGE_PACK | snapshot::JSON) => Some(FileOf::Snapshot(number)),
        ("snapshot", snapshot::UNFINISHED) => Some(FileOf::UnfinishedSnapshot),
        _ => None,
    }
}

/// Returns whether a file of that name belongs to a journal.
pub(crate) fn is_journal_file(name: &str) -> bool {
    file_of(name).is_some()
}

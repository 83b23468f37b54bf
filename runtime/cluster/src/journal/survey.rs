//! Reads as much of a damaged journal as a coordinator could continue from, and what follows the damage.

use std::path::{Path, PathBuf};

use napreduce_local::world::disk::{Disk, Links};

use super::directory::{
    FileChain, Generations, empty_before_successor, journal_path, list, snapshot_path,
};
use super::file::{Content, JournalFile};
use super::snapshot::Snapshot;
use super::{Header, JournalError, Recovered};

/// The content of a journal up to its first damage.
#[derive(Debug)]
pub(crate) struct Survey {
    /// Snapshots and journal files, in the order in which they would be read.
    pub(crate) files: Vec<SurveyedFile>,
    /// The generation of the first file that is used, which a snapshot precedes unless it is 1.
    pub(crate) first: u64,
    /// The header of the last file that is used; `None` if nothing can be.
    pub(crate) header: Option<Header>,
    /// The snapshot and the entries before the damage.
    pub(crate) recovered: Recovered,
    /// The first damage, as the error of a starting coordinator.
    pub(crate) damage: Option<JournalError>,
    /// The entries after the damage that can be read.
    pub(crate) lost: Vec<Vec<u8>>,
    /// The loss that a starting coordinator reports, but accepts.
    pub(crate) loss: Option<String>,
}

impl Survey {
    /// Returns whether a file is there, with its header.
    fn has_content(&self, path: &Path) -> bool {
        let mut files = self.files.iter();
        files.any(|file| file.path == path && file.version.is_some())
    }
}

/// A file of a journal.
#[derive(Debug)]
pub(crate) struct SurveyedFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// The version of its format, if its header can be read.
    pub(crate) version: Option<u32>,
    /// The number of entries before its first damage.
    pub(crate) entries: usize,
    /// Whether a coordinator would use all of it.
    pub(crate) is_whole: bool,
}

/// Reads a journal without changing it, because another process may be writing to it. Returns `None` if the directory has no
/// journal.
pub(crate) fn survey(disk: &dyn Disk, directory: &Path) -> Result<Option<Survey>, JournalError> {
    if !disk.is_directory(directory) {
        return Ok(None);
    }
    let generations = list(disk, directory)?;
    if generations.journals.is_empty() && generations.snapshots.is_empty() {
        return Ok(None);
    }
    let mut surveyor = Surveyor {
        disk,
        directory,
        chain: FileChain::default(),
        survey: Survey {
            files: Vec::new(),
            first: 1,
            header: None,
            recovered: Recovered::default(),
            damage: None,
            lost: Vec::new(),
            loss: None,
        },
    };
    surveyor.find_snapshot(&generations)?;
    surveyor.read_journals(&generations)?;
    let current = generations.last();
    let mut survey = surveyor.survey;
    if survey.damage.is_none() && !survey.has_content(&journal_path(directory, current)) {
        survey.loss = generations.loss(&journal_path(directory, current), current);
    }
    survey.header = surveyor.chain.header;
    Ok(Some(survey))
}

struct Surveyor<'a> {
    disk: &'a dyn Disk,
    directory: &'a Path,
    chain: FileChain,
    survey: Survey,
}

impl Surveyor<'_> {
    /// Finds the last snapshot that is whole.
    fn find_snapshot(&mut self, generations: &Generations) -> Result<(), JournalError> {
        let mut snapshots = generations.snapshots.clone();
        snapshots.sort();
        for (generation, path) in snapshots.into_iter().rev() {
            let opened = Snapshot::open(self.disk, &path);
            let version = opened.as_ref().ok().map(|snapshot| snapshot.header.version);
            let verified = opened.and_then(Snapshot::verify);
            let damage = self.damage_of(verified)?;
            let is_whole = damage.is_none();
            self.add_file(&path, version, 0, is_whole)?;
            if is_whole {
                let snapshot = Snapshot::open(self.disk, &path)?;
                self.chain = FileChain::after(Some(&snapshot));
                self.survey.first = generation;
                self.survey.recovered.snapshot = Some(snapshot);
                return Ok(());
            }
            self.note(damage);
        }
        Ok(())
    }

    /// Keeps the first damage: the later ones may follow from it.
    fn note(&mut self, damage: Option<JournalError>) {
        if self.survey.damage.is_none() {
            self.survey.damage = damage;
        }
    }

    /// Reads the files after the snapshot up to the first damage, and the entries that can be read after it.
    fn read_journals(&mut self, generations: &Generations) -> Result<(), JournalError> {
        let first = self.survey.first;
        let last = generations.journals.last().copied().unwrap_or(first);
        let mut next = first;
        let mut is_used = true;
        for &generation in generations.journals.range(first..) {
            if generation != next && is_used {
                is_used = false;
                let missing = JournalError::SnapshotMissing {
                    snapshot: snapshot_path(self.directory, generation),
                    journal: journal_path(self.directory, generation),
                    directory: self.directory.to_owned(),
                };
                self.note(Some(missing));
            }
            next = generation + 1;
            let path = journal_path(self.directory, generation);
            let content = JournalFile::read(self.disk, &path);
            if is_used {
                is_used = self.take(&path, content, generation == last)?;
            } else {
                self.lose(&path, content)?;
            }
        }
        Ok(())
    }

    /// Uses a file up to its damage; returns whether the next one can be used as well.
    fn take(
        &mut self,
        path: &Path,
        content: Result<Option<Content>, JournalError>,
        is_last: bool,
    ) -> Result<bool, JournalError> {
        let content = match content {
            Ok(Some(content)) => content,
            // The coordinator died while creating it.
            Ok(None) if is_last => {
                self.add_file(path, None, 0, true)?;
                return Ok(true);
            }
            Ok(None) => {
                self.note(Some(empty_before_successor(path)));
                self.add_file(path, None, 0, false)?;
                return Ok(false);
            }
            Err(error) => {
                let damage = self.damage_of(Err(error))?;
                self.note(damage);
                self.lose_headless(path)?;
                return Ok(false);
            }
        };
        if let Err(error) = self.chain.add(path, &content) {
            self.note(Some(error));
            self.lose(path, Ok(Some(content)))?;
            return Ok(false);
        }
        let damage = if is_last {
            content.damage(path)
        } else {
            content.damage_before_successor(path)
        };
        let is_whole = damage.is_none();
        self.note(damage);
        let version = Some(content.header.version);
        self.add_file(path, version, content.entries.len(), is_whole)?;
        let survey = &mut self.survey;
        survey.recovered.entries.extend(content.entries);
        survey.recovered.remarks.extend(content.cut);
        survey.lost.extend(content.lost);
        Ok(is_whole)
    }

    /// Collects the entries of a file after the damage.
    fn lose(
        &mut self,
        path: &Path,
        content: Result<Option<Content>, JournalError>,
    ) -> Result<(), JournalError> {
        match content {
            Ok(Some(content)) => {
                let header = &content.header;
                let of_this_journal = self
                    .chain
                    .header
                    .as_ref()
                    .is_none_or(|known| known.journal == header.journal);
                self.add_file(path, Some(header.version), content.entries.len(), false)?;
                if of_this_journal {
                    self.survey.lost.extend(content.entries);
                    self.survey.lost.extend(content.lost);
                }
                Ok(())
            }
            Ok(None) => self.add_file(path, None, 0, false),
            Err(error) => {
                self.damage_of(Err(error))?;
                self.lose_headless(path)
            }
        }
    }

    fn lose_headless(&mut self, path: &Path) -> Result<(), JournalError> {
        self.add_file(path, None, 0, false)?;
        let entries = JournalFile::read_headless(self.disk, path)?;
        self.survey.lost.extend(entries);
        Ok(())
    }

    /// Returns the damage that an error reports; fails for other errors.
    fn damage_of(
        &self,
        result: Result<(), JournalError>,
    ) -> Result<Option<JournalError>, JournalError> {
        match result {
            Ok(()) => Ok(None),
            Err(error @ JournalError::Damaged { .. }) => Ok(Some(error)),
            Err(error) => Err(error),
        }
    }

    fn add_file(
        &mut self,
        path: &Path,
        version: Option<u32>,
        entries: usize,
        is_whole: bool,
    ) -> Result<(), JournalError> {
        let stat = self
            .disk
            .stat(path, Links::NotFollowed)
            .map_err(JournalError::io("read", path))?;
        self.survey.files.push(SurveyedFile {
            path: path.to_owned(),
            bytes: stat.bytes,
            version,
            entries,
            is_whole,
        });
        Ok(())
    }
}

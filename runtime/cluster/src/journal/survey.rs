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
    /// Returns whether a file exists and its header can be read.
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

/// Reads a journal without changing it, because another process may be writing to it. Returns `None` if the
/// directory has no journal.
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
    let mut survey = surveyor.survey;
    let current = generations.last();
    let current_path = journal_path(directory, current);
    if survey.damage.is_none() && !survey.has_content(&current_path) {
        survey.loss = generations.loss(&current_path, current);
    }
    survey.header = surveyor.chain.header;
    Ok(Some(survey))
}

/// How much of a file a coordinator would use.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Usable {
    Whole,
    Part,
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
            if let Err(error) = opened.and_then(Snapshot::verify) {
                let damage = damage_of(error)?;
                self.add_file(&path, version, 0, Usable::Part)?;
                self.note_damage(damage);
                continue;
            }
            self.add_file(&path, version, 0, Usable::Whole)?;
            // Verifying has read the open file to its end.
            let snapshot = Snapshot::open(self.disk, &path)?;
            self.chain = FileChain::after(Some(&snapshot));
            self.survey.first = generation;
            self.survey.recovered.snapshot = Some(snapshot);
            return Ok(());
        }
        Ok(())
    }

    /// Keeps the first damage: the later ones may follow from it.
    fn note_damage(&mut self, damage: JournalError) {
        if self.survey.damage.is_none() {
            self.survey.damage = Some(damage);
        }
    }

    /// Reads the files after the snapshot up to the first damage, and the entries that can be read after it.
    fn read_journals(&mut self, generations: &Generations) -> Result<(), JournalError> {
        let first = self.survey.first;
        let last = generations.journals.last().copied().unwrap_or(first);
        let mut expected = first;
        let mut is_used = true;
        for &generation in generations.journals.range(first..) {
            let path = journal_path(self.directory, generation);
            if is_used && generation != expected {
                is_used = false;
                self.note_damage(JournalError::SnapshotMissing {
                    snapshot: snapshot_path(self.directory, generation),
                    journal: path.clone(),
                    directory: self.directory.to_owned(),
                });
            }
            expected = generation + 1;
            let content = JournalFile::read(self.disk, &path);
            if is_used {
                is_used = self.use_file(&path, content, generation == last)?;
            } else {
                self.collect_lost(&path, content)?;
            }
        }
        Ok(())
    }

    /// Uses a file up to its damage; returns whether the next one can be used as well.
    fn use_file(
        &mut self,
        path: &Path,
        content: Result<Option<Content>, JournalError>,
        is_last: bool,
    ) -> Result<bool, JournalError> {
        let content = match content {
            Ok(Some(content)) => content,
            // The coordinator died while creating it.
            Ok(None) if is_last => {
                self.add_file(path, None, 0, Usable::Whole)?;
                return Ok(true);
            }
            Ok(None) => {
                self.note_damage(empty_before_successor(path));
                self.add_file(path, None, 0, Usable::Part)?;
                return Ok(false);
            }
            Err(error) => {
                self.note_damage(damage_of(error)?);
                self.collect_headless(path)?;
                return Ok(false);
            }
        };
        if let Err(error) = self.chain.add(path, &content) {
            self.note_damage(error);
            self.collect_lost(path, Ok(Some(content)))?;
            return Ok(false);
        }
        let damage = if is_last {
            content.damage(path)
        } else {
            content.damage_before_successor(path)
        };
        let usable = match damage {
            None => Usable::Whole,
            Some(damage) => {
                self.note_damage(damage);
                Usable::Part
            }
        };
        let version = Some(content.header.version);
        self.add_file(path, version, content.entries.len(), usable)?;
        let survey = &mut self.survey;
        survey.recovered.entries.extend(content.entries);
        survey.recovered.remarks.extend(content.cut);
        survey.lost.extend(content.lost);
        Ok(usable == Usable::Whole)
    }

    /// Collects the entries of a file after the damage.
    fn collect_lost(
        &mut self,
        path: &Path,
        content: Result<Option<Content>, JournalError>,
    ) -> Result<(), JournalError> {
        match content {
            Ok(Some(content)) => {
                let header = &content.header;
                let known = self.chain.header.as_ref();
                let is_of_this_journal = known.is_none_or(|known| known.journal == header.journal);
                let version = Some(header.version);
                self.add_file(path, version, content.entries.len(), Usable::Part)?;
                if is_of_this_journal {
                    self.survey.lost.extend(content.entries);
                    self.survey.lost.extend(content.lost);
                }
                Ok(())
            }
            Ok(None) => self.add_file(path, None, 0, Usable::Part),
            Err(error) => {
                // The survey reports only the first damage.
                damage_of(error)?;
                self.collect_headless(path)
            }
        }
    }

    /// Collects the entries of a file whose header cannot be read.
    fn collect_headless(&mut self, path: &Path) -> Result<(), JournalError> {
        self.add_file(path, None, 0, Usable::Part)?;
        let entries = JournalFile::read_headless(self.disk, path)?;
        self.survey.lost.extend(entries);
        Ok(())
    }

    fn add_file(
        &mut self,
        path: &Path,
        version: Option<u32>,
        entries: usize,
        usable: Usable,
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
            is_whole: usable == Usable::Whole,
        });
        Ok(())
    }
}

/// Returns an error that reports damage; fails with any other error.
fn damage_of(error: JournalError) -> Result<JournalError, JournalError> {
    match error {
        JournalError::Damaged { .. } => Ok(error),
        other => Err(other),
    }
}

//! Writes a copy of a coordinator's directory with a journal that ends before its damage.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use napreduce_engine::ReadPolicy;
use napreduce_local::world::disk::{Disk, RealDisk};
use thiserror::Error;

use super::journal_check::{JournalCheck, check_journal, check_survey};
use super::replay::ReplayError;
use crate::journal::{Journal, is_journal_file, survey};

/// An error of repairing a journal. Nothing of the original is changed.
#[derive(Debug, Error)]
pub enum RepairError {
    /// The journal cannot be read or replayed.
    #[error(transparent)]
    Journal(#[from] ReplayError),
    /// The copy would replace something.
    #[error("{0} exists; name a new directory for the copy")]
    OutputExists(PathBuf),
    /// The copy would be inside of what is copied.
    #[error("{0} is in the directory that is copied; name one beside it")]
    OutputInside(PathBuf),
    /// A system call failed.
    #[error("cannot copy {path}: {source}; remove the incomplete copy in {output} and try again")]
    Io {
        /// The file that is copied.
        path: PathBuf,
        /// The directory of the copy.
        output: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Copies a coordinator's directory (`DIR/coordinator`, or a copy) to `output`. The journal in the copy has
/// everything before the damage; history, programs and definitions are copied as they are. Returns the check of the
/// original. A coordinator can continue from the copy once it is in the place of the original.
///
/// # Errors
/// Fails if a coordinator is running, `output` exists, or the journal cannot be read.
pub fn repair_journal(
    directory: &Path,
    output: &Path,
    read_policy: ReadPolicy,
) -> Result<JournalCheck, RepairError> {
    let disk: &dyn Disk = &RealDisk;
    Journal::check_unlocked(disk, directory).map_err(ReplayError::from)?;
    let read = survey(disk, directory).map_err(ReplayError::from)?;
    let read = read.ok_or_else(|| ReplayError::NoJournal(directory.display().to_string()))?;
    let output = std::path::absolute(output).unwrap_or_else(|_| output.to_owned());
    if fs::symlink_metadata(&output).is_ok() {
        return Err(RepairError::OutputExists(output));
    }
    let original = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    if output.starts_with(&original) {
        return Err(RepairError::OutputInside(output));
    }
    let copy = Copy { output: &output };
    copy.directory(directory, &output, &|name| !is_journal_file(name))?;
    let header = read.header.clone();
    let entries = read.recovered.entries.clone();
    let first = read.first;
    let snapshot = read
        .recovered
        .snapshot
        .as_ref()
        .map(|snapshot| snapshot.path().to_owned());
    if let Some(snapshot) = snapshot {
        copy.file(&snapshot, &output)?;
    }
    if let Some(header) = header {
        Journal::write(disk, &output, first, &header, &entries).map_err(ReplayError::from)?;
    }
    disk.sync_directory(&output)
        .and_then(|()| disk.sync_parent(&output))
        .map_err(|source| copy.error(&output, source))?;
    let check = check_survey(directory, read, read_policy)?;
    if check.content.is_some() {
        // A coordinator would do the same.
        check_journal(&output, read_policy)?;
    }
    Ok(check)
}

/// A copy that is being written.
struct Copy<'a> {
    output: &'a Path,
}

impl Copy<'_> {
    /// Copies the files of a directory whose names are wanted, and all of its directories.
    fn directory(
        &self,
        from: &Path,
        to: &Path,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<(), RepairError> {
        let permissions = fs::metadata(from).map(|found| found.permissions());
        fs::create_dir(to).map_err(|source| self.error(to, source))?;
        permissions
            .and_then(|permissions| fs::set_permissions(to, permissions))
            .map_err(|source| self.error(from, source))?;
        let listed = fs::read_dir(from).map_err(|source| self.error(from, source))?;
        for entry in listed {
            let entry = entry.map_err(|source| self.error(from, source))?;
            let path = entry.path();
            let kind = entry
                .file_type()
                .map_err(|source| self.error(&path, source))?;
            let name = entry.file_name();
            if kind.is_dir() {
                self.directory(&path, &to.join(&name), &|_| true)?;
            } else if kind.is_file() && is_wanted(&name.to_string_lossy()) {
                self.file(&path, to)?;
            }
        }
        Ok(())
    }

    /// Copies a file to a directory, and syncs it.
    fn file(&self, from: &Path, to: &Path) -> Result<(), RepairError> {
        let target = to.join(from.file_name().unwrap_or_default());
        let copied = fs::copy(from, &target).and_then(|_| fs::File::open(&target)?.sync_all());
        copied.map_err(|source| self.error(from, source))
    }

    fn error(&self, path: &Path, source: io::Error) -> RepairError {
        RepairError::Io {
            path: path.to_owned(),
            output: self.output.to_owned(),
            source,
        }
    }
}

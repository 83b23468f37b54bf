//! The claim of a run on its output directory, from before the first task until the end of the job: taking
//! it, resuming it after a restart, and removing its files when the job fails.

use std::io;
use std::path::{Path, PathBuf};

use napreduce_protocol::{ClaimToken, IoResult, JobError};

use super::backend::{OutputBackend, OutputClaim, Resumed};
use super::commit::{Commit, write_intent};
use super::holder::Holding;
use super::intent::roll_forward;
use super::layout::{JobPaths, TEMPORARY, claim_in, staged};
use super::manifest::Manifest;
use super::obstacles::{look, make_way, set_aside};
use super::places::files_read;
use super::record::{ClaimRecord, Step};
use super::removal::remove_retired;
use super::request::{ClaimMark, ClaimRequest};
use super::storage::{Disk, Storage};
use super::trouble::{ClaimError, Trouble};
use super::whose::{Whose, whose};
use crate::locked_file::{LockedFile, Locking};

/// An output directory claimed for this run.
#[derive(Debug)]
pub struct DirectoryClaim {
    storage: Storage,
    paths: JobPaths,
    record: ClaimRecord,
    mark: ClaimMark,
    overwrite: bool,
    /// Files that the job reads.
    reads: Vec<PathBuf>,
    /// Holds the lock on `_temporary`.
    _lock: LockedFile,
    _holding: Holding,
}

impl DirectoryClaim {
    /// Claims the output directory and creates the job's directories. Fails if existing content forbids it.
    pub(super) fn take(
        disk: &Disk,
        request: &ClaimRequest<'_>,
    ) -> Result<Box<DirectoryClaim>, JobError> {
        let made = make_directories(disk, request).map_err(ClaimError::from);
        let claim = made.and_then(|made| {
            claim_within(disk, request, made)
                .inspect_err(|_| remove_made(disk, request.output, made))
        });
        claim
            .map(Box::new)
            .map_err(|error| error.into_job_error(request.output))
    }

    /// Resumes a claim of an earlier process, or of this one before the storage was unreachable. Creates
    /// nothing.
    pub(super) fn resume(
        disk: &Disk,
        request: &ClaimRequest<'_>,
        mark: ClaimMark,
    ) -> Result<Resumed<DirectoryClaim>, Trouble> {
        let output = request.output;
        let storage = disk.open(output, request.durable)?;
        let paths = JobPaths::new(output, request.job, mark.token, request.extension);
        let mut record = match whose(&storage, &paths, mark.token)? {
            Whose::Own(record) => record,
            Whose::Settled => {
                tidy(&storage, request, 0);
                return Ok(Resumed::Settled);
            }
            Whose::Gone if storage.identity()? == mark.root => {
                tidy(&storage, request, mark.made);
                return Ok(Resumed::Gone);
            }
            Whose::Gone => {
                let what = format!(
                    "{} is not the claimed directory; check that its storage is mounted",
                    output.display()
                );
                return Err(Trouble::Passing { what, away: true });
            }
        };
        let temporary = Path::new(TEMPORARY);
        let lock = match storage.lock(temporary)? {
            Locking::Held(lock) => lock,
            Locking::Busy => {
                let what = format!(
                    "cannot lock {}: another process holds the lock",
                    storage.shown(temporary)
                );
                return Err(Trouble::Passing { what, away: false });
            }
        };
        let process = &storage.world().process;
        record.holder = process
            .identity()
            .map_err(|error| Trouble::io("identify this process", &error))?;
        write_record(&storage, &record)?;
        let holding = Holding::new(process, mark.token);
        let claim = DirectoryClaim {
            storage,
            paths,
            record,
            mark,
            overwrite: request.overwrite,
            reads: files_read(request.splits),
            _lock: lock,
            _holding: holding,
        };
        Ok(Resumed::Claimed(Box::new(claim)))
    }

    /// The paths of the job.
    pub(crate) fn paths(&self) -> &JobPaths {
        &self.paths
    }

    pub(super) fn storage(&self) -> &Storage {
        &self.storage
    }
}

impl OutputBackend for Disk {
    fn check(&self, output: &Path, overwrite: bool) -> Result<(), ClaimError> {
        look(output, overwrite)
    }

    fn take(&self, request: &ClaimRequest<'_>) -> Result<Box<dyn OutputClaim>, JobError> {
        Ok(DirectoryClaim::take(self, request)?)
    }

    fn resume(
        &self,
        request: &ClaimRequest<'_>,
        mark: ClaimMark,
    ) -> Result<Resumed<dyn OutputClaim>, Trouble> {
        Ok(DirectoryClaim::resume(self, request, mark)?.into())
    }

    fn renew(&self, output: &Path, token: ClaimToken) -> Result<(), Trouble> {
        let storage = self.open_unsynced(output)?;
        let path = claim_in(Path::new(TEMPORARY));
        let record = ClaimRecord::read(&storage, &path)?;
        if record.is_some_and(|record| record.token == token) {
            storage.touch(&path)?;
        }
        Ok(())
    }
}

impl OutputClaim for DirectoryClaim {
    fn mark(&self) -> ClaimMark {
        self.mark
    }

    fn is_quick_to_check(&self) -> bool {
        true
    }

    fn verify(&self) -> Result<(), Trouble> {
        let output = self.storage.path().display();
        match self.storage.is_there() {
            Ok(true) => {}
            _ if self.storage.is_removed() => {
                return Err(Trouble::Final(format!(
                    "{output} was removed while the job ran"
                )));
            }
            Err(error) => return Err(error.into()),
            Ok(false) => {
                let what = format!(
                    "{output} is no longer the claimed directory; check that its storage is mounted"
                );
                return Err(Trouble::Passing { what, away: true });
            }
        }
        match whose(&self.storage, &self.paths, self.record.token)? {
            Whose::Own(_) => Ok(()),
            Whose::Settled | Whose::Gone => {
                let work = self.storage.shown(self.paths.work());
                Err(Trouble::Final(format!(
                    "{work} was removed while the job ran"
                )))
            }
        }
    }

    fn has_intent(&self) -> bool {
        self.record.step == Step::Intent
    }

    fn begin(&mut self, manifest: &Manifest) -> Result<(), Trouble> {
        let commit = Commit {
            storage: &self.storage,
            paths: &self.paths,
            token: self.record.token,
            overwrite: self.overwrite,
            reads: &self.reads,
        };
        write_intent(&commit, manifest)?;
        self.verify()?;
        let mut record = self.record.clone();
        record.step = Step::Intent;
        write_record(&self.storage, &record)?;
        self.record = record;
        Ok(())
    }

    fn roll_forward(&self) -> Result<(), Trouble> {
        roll_forward(&self.storage, &self.paths, self.record.token)
    }

    fn discard(self: Box<Self>) -> Result<(), Trouble> {
        match self.verify() {
            // The directory was removed by others.
            Err(Trouble::Final(_)) => return Ok(()),
            verified => verified?,
        }
        set_aside(
            &self.storage,
            Some(self.record.token),
            self.record.submission,
        )?;
        remove_retired(&self.storage, self.record.submission)?;
        remove_made(&self.storage.disk(), self.storage.path(), self.mark.made);
        Ok(())
    }

    fn clean_up(self: Box<Self>) -> Result<(), Trouble> {
        set_aside(
            &self.storage,
            Some(self.record.token),
            self.record.submission,
        )?;
        remove_retired(&self.storage, self.record.submission)
    }
}

/// Completes the removals of an earlier process of this job. Failures are harmless.
fn tidy(storage: &Storage, request: &ClaimRequest<'_>, made: u32) {
    let _ = remove_retired(storage, request.submission);
    remove_made(&storage.disk(), storage.path(), made);
}

fn write_record(storage: &Storage, record: &ClaimRecord) -> Result<(), Trouble> {
    Ok(storage.replace(&claim_in(Path::new(TEMPORARY)), &record.text()?)?)
}

/// Creates the output directory and its parents; returns how many it created.
fn make_directories(disk: &Disk, request: &ClaimRequest<'_>) -> io::Result<u32> {
    let output = request.output;
    let mut missing = Vec::new();
    for directory in output
        .ancestors()
        .take_while(|directory| !directory.as_os_str().is_empty())
    {
        if disk.has_root(directory)? {
            break;
        }
        missing.push(directory);
    }
    for (made, directory) in (0..).zip(missing.iter().rev()) {
        let parent = directory.parent().unwrap_or(Path::new(""));
        let mut result = disk.make_root(directory);
        if request.durable && result.is_ok() {
            result = disk.sync_root(parent);
        }
        // Another process may create the same directories concurrently.
        if let Err(error) = result.unless_there() {
            remove_made(disk, directory, made + 1);
            return Err(error);
        }
    }
    Ok(u32::try_from(missing.len()).unwrap_or(u32::MAX))
}

/// Removes created directories, innermost first. A directory that others use by now is not empty and stays.
fn remove_made(disk: &Disk, output: &Path, made: u32) {
    for directory in output.ancestors().take(made as usize) {
        if disk.remove_root(directory).if_there().is_err() {
            break;
        }
    }
}

fn claim_within(
    disk: &Disk,
    request: &ClaimRequest<'_>,
    made: u32,
) -> Result<DirectoryClaim, ClaimError> {
    let storage = disk.open(request.output, request.durable)?;
    let made = made.max(make_way(&storage, request)?);
    let world = storage.world();
    let token = ClaimToken::from(world.random.number()?);
    let holder = world.process.identity()?;
    let record = ClaimRecord::new(
        token,
        request.submission,
        request.job,
        request.owner,
        holder,
        made,
    );
    let mark = ClaimMark {
        token,
        made,
        root: storage.identity()?,
    };
    let paths = JobPaths::new(request.output, request.job, token, request.extension);
    let holding = Holding::new(&world.process, token);
    let lock = put_in_place(&storage, &paths, &record).inspect_err(|_| {
        // Report the original error, not this one.
        let _ = storage
            .remove_tree(&staged(request.submission))
            .and_then(|()| storage.sync_directory(Path::new("")));
        if let Ok(Whose::Own(_)) = whose(&storage, &paths, token) {
            let _ = set_aside(&storage, Some(token), request.submission)
                .and_then(|()| remove_retired(&storage, request.submission));
        }
    })?;
    Ok(DirectoryClaim {
        storage,
        paths,
        record,
        mark,
        overwrite: request.overwrite,
        reads: files_read(request.splits),
        _lock: lock,
        _holding: holding,
    })
}

/// Creates `_temporary` under a name with the submission's token and renames it when it is complete: a
/// coordinator may be killed at any time, and a repeated submission must recognize its own directory.
pub(super) fn put_in_place(
    storage: &Storage,
    paths: &JobPaths,
    record: &ClaimRecord,
) -> Result<LockedFile, ClaimError> {
    let staged = staged(record.submission);
    storage.make_directory(&staged)?;
    storage.write_new(&claim_in(&staged), &record.text()?)?;
    let lock = match storage.lock(&staged)? {
        Locking::Held(lock) => lock,
        Locking::Busy => return Err(ClaimError::InUse),
    };
    let folders = paths.folders(&staged);
    for folder in &folders {
        storage.make_directory(folder)?;
    }
    for folder in [&folders[0], &staged, Path::new("")] {
        storage.sync_directory(folder)?;
    }
    match storage.rename(&staged, Path::new(TEMPORARY)) {
        // Another run was faster; its claim is in the directory.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists
            ) =>
        {
            return Err(ClaimError::InUse);
        }
        renamed => renamed?,
    }
    storage.sync_directory(Path::new(""))?;
    Ok(lock)
}

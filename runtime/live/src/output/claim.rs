//! The claim of a run on its output directory, from before the first task until the end of the job.
//!
//! Owns the check of what is there already, the lock that tells a run that goes on from one that was killed, and what is
//! removed when the job does not succeed. Does not own the moving of parts (`commit`).

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use napreduce_core::JobId;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::layout::{JobPaths, PART_PREFIX, SUCCESS, SUCCESS_UNFINISHED, TEMPORARY, is_temporary};
use super::removal::remove_temporary;
use crate::report::JobError;

/// An output directory that this run alone writes into.
#[derive(Debug)]
pub(crate) struct OutputClaim {
    paths: JobPaths,
    /// Directories this run made, outermost first.
    made: Vec<PathBuf>,
    /// Holds the lock on `_temporary`.
    _lock: File,
}

/// Who claims a directory: what an earlier try of the same submission left is its own.
pub(crate) type SubmissionToken = u128;

impl OutputClaim {
    /// Makes the directories of a job, unless what is there already forbids it.
    pub(crate) fn take(
        output: &Path,
        job: JobId,
        extension: &str,
        overwrite: bool,
        token: SubmissionToken,
    ) -> Result<OutputClaim, JobError> {
        let paths = JobPaths::new(output, job, extension);
        let made = make_directories(output)?;
        let claimed = inspect(&paths, overwrite, token).and_then(|()| prepare(&paths, token));
        match claimed {
            Ok(lock) => Ok(OutputClaim { paths, made, _lock: lock }),
            Err(error) => {
                remove_made(&made);
                Err(error)
            }
        }
    }

    /// Takes the claim up again that a coordinator had before it was started again. What is missing is made again: it may
    /// have died when the job was all but committed.
    pub(crate) fn resume(
        output: &Path,
        job: JobId,
        extension: &str,
        made: Vec<PathBuf>,
    ) -> Result<OutputClaim, JobError> {
        let paths = JobPaths::new(output, job, extension);
        let failed = |source| JobError::OutputUnusable { path: output.display().to_string(), source };
        fs::create_dir_all(paths.temporary()).map_err(failed)?;
        let lock = lock(&paths, &paths.temporary())?;
        make_folders(&paths)?;
        Ok(OutputClaim { paths, made, _lock: lock })
    }

    /// The directories this run has made, outermost first: what to remember for [`OutputClaim::resume`].
    pub(crate) fn made(&self) -> &[PathBuf] {
        &self.made
    }

    /// The paths of the job.
    pub(crate) fn paths(&self) -> &JobPaths {
        &self.paths
    }

    /// Removes everything this run has made; an older output stays as it is.
    pub(crate) fn discard(self) -> Result<(), JobError> {
        let temporary = self.paths.temporary();
        let removed = remove_temporary(&self.paths);
        remove_made(&self.made);
        removed.map_err(|error| JobError::io(format!("remove {}", temporary.display()), error))
    }
}

/// Makes the output directory and its parents; those that were missing, outermost first.
fn make_directories(output: &Path) -> Result<Vec<PathBuf>, JobError> {
    let failed = |source| JobError::OutputUnusable { path: output.display().to_string(), source };
    let missing: Vec<PathBuf> = output
        .ancestors()
        .take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.exists())
        .map(Path::to_owned)
        .collect();
    match fs::create_dir_all(output) {
        // Said of a file in its place, which is no directory rather than one that exists.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(failed(io::ErrorKind::NotADirectory.into()));
        }
        other => other.map_err(failed)?,
    }
    Ok(missing.into_iter().rev().collect())
}

/// Innermost first; a directory that somebody else uses by now is not empty and stays.
fn remove_made(made: &[PathBuf]) {
    for directory in made.iter().rev() {
        if fs::remove_dir(directory).is_err() {
            break;
        }
    }
}

/// Refuses a directory in use, and one with anything in it unless it may be overwritten. What an earlier try of the same
/// submission left is no obstacle.
fn inspect(paths: &JobPaths, overwrite: bool, token: SubmissionToken) -> Result<(), JobError> {
    let output = paths.output();
    let path = || output.display().to_string().trim_end_matches('/').to_owned();
    let names = list(output)?;
    let unfinished: Vec<&OsString> = names.iter().filter(|name| is_temporary(name)).collect();
    for name in &unfinished {
        if is_locked(&output.join(name))? {
            return Err(JobError::OutputInUse { path: path() });
        }
    }
    let of_this_submission = |name: &OsString| {
        let entry = output.join(name);
        entry == paths.staged(token)
            || entry == paths.retired(token)
            || (name == TEMPORARY && paths.claimant(token).exists())
    };
    if overwrite || names.iter().all(of_this_submission) {
        return Ok(());
    }
    Err(if unfinished.len() == names.len() {
        JobError::OutputUnfinished { path: path() }
    } else {
        JobError::OutputExists { path: path() }
    })
}

/// Makes `_temporary` anew and locks it.
///
/// It is made under a name that says whose it is and renamed when it is whole, and the one in its place goes by a rename,
/// too: a coordinator may be killed at any moment, and the submission that comes again has to know its own.
pub(super) fn prepare(paths: &JobPaths, token: SubmissionToken) -> Result<File, JobError> {
    let failed = |source| JobError::OutputUnusable { path: paths.output().display().to_string(), source };
    // What is not locked is nobody's any more, and may be overwritten: `inspect` has seen to that.
    for name in list(paths.output())?.iter().filter(|name| is_temporary(name) && *name != TEMPORARY) {
        let left = paths.output().join(name);
        if !is_locked(&left)? {
            remove(&left)?;
        }
    }
    let staged = paths.staged(token);
    fs::create_dir(&staged).map_err(failed)?;
    let prepared = File::create(paths.claimant_in(&staged, token))
        .map_err(failed)
        .and_then(|_| lock(paths, &staged))
        .and_then(|lock| put_in_place(paths, token).map(|()| lock));
    if prepared.is_err() {
        // What remains of it was not what went wrong.
        let _ = remove(&staged);
    }
    let lock = prepared?;
    make_folders(paths)?;
    Ok(lock)
}

/// Gives a claim that is whole its name.
fn put_in_place(paths: &JobPaths, token: SubmissionToken) -> Result<(), JobError> {
    let (temporary, retired) = (paths.temporary(), paths.retired(token));
    let path = paths.output().display().to_string();
    // Whoever came after `inspect` holds the lock of his. The lock is kept until the old one has another name, so that nobody
    // else puts his in its place meanwhile.
    match File::open(&temporary) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(JobError::OutputUnusable { path, source }),
        Ok(old) => match lock_exclusively(&old) {
            Ok(true) => {
                fs::rename(&temporary, &retired)
                    .map_err(|error| JobError::io(format!("remove {}", temporary.display()), error))?;
                remove(&retired)?;
            }
            Ok(false) => return Err(JobError::OutputInUse { path }),
            Err(source) => return Err(JobError::OutputUnusable { path, source }),
        },
    }
    match fs::rename(paths.staged(token), &temporary) {
        // Another run was faster: there is at least its claimant in it.
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Err(JobError::OutputInUse { path }),
        Err(source) => Err(JobError::OutputUnusable { path, source }),
        Ok(()) => Ok(()),
    }
}

/// Removes what an earlier run left.
fn remove(directory: &Path) -> Result<(), JobError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(JobError::io(format!("remove {}", directory.display()), error))
        }
        _ => Ok(()),
    }
}

/// Locks a `_temporary`, under whatever name.
fn lock(paths: &JobPaths, temporary: &Path) -> Result<File, JobError> {
    let failed = |source| JobError::OutputUnusable { path: paths.output().display().to_string(), source };
    let lock = File::open(temporary).map_err(failed)?;
    if lock_exclusively(&lock).map_err(failed)? {
        Ok(lock)
    } else {
        Err(JobError::OutputInUse { path: paths.output().display().to_string() })
    }
}

/// Makes what belongs into `_temporary`.
fn make_folders(paths: &JobPaths) -> Result<(), JobError> {
    for directory in [paths.shuffle(), paths.committed()] {
        fs::create_dir_all(directory).map_err(|source| {
            let path = paths.output().display().to_string();
            JobError::OutputUnusable { path, source }
        })?;
    }
    Ok(())
}

/// Whether a running job holds this `_temporary`.
fn is_locked(temporary: &Path) -> Result<bool, JobError> {
    let locked = File::open(temporary).and_then(|directory| lock_exclusively(&directory));
    match locked {
        Ok(free) => Ok(!free),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(JobError::io(format!("lock {}", temporary.display()), error)),
    }
}

/// False when somebody else holds the lock. A file system without locks cannot tell, which must not stop a job.
fn lock_exclusively(directory: &File) -> io::Result<bool> {
    match flock(directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) | Err(Errno::NOTSUP | Errno::NOLCK | Errno::NOSYS) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The names in a directory.
pub(super) fn list(directory: &Path) -> Result<Vec<OsString>, JobError> {
    let entries =
        fs::read_dir(directory).and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
    entries.map_err(|error| JobError::io(format!("list {}", directory.display()), error))
}

/// Whether a job writes a file of that name, which `--overwrite` may therefore remove.
pub(super) fn is_job_output(name: &std::ffi::OsStr) -> bool {
    name == SUCCESS
        || name == SUCCESS_UNFINISHED
        || name.as_encoded_bytes().starts_with(PART_PREFIX.as_bytes())
}

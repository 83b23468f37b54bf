//! The checkpoint directories of one guest task, below that of its submission. With a store (`stored`) they
//! are local to this host.
//!
//! ```text
//! SUBMISSION/job_0001_r_0003/5f2a.../                              by inputs: a SHA-256 of what came of each map
//! SUBMISSION/job_0001_r_0003/5f2a.../job_0001_r_0003.2-91c4....7/  by attempt, process and number: no two write to one
//! ```

use std::fs::{self, File, create_dir};
use std::io;
use std::path::{Path, PathBuf};

use napreduce_engine::{AttemptId, FaultPlace};
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{IoResult, TaskError};
use napreduce_task::{Checkpoint, create_scratch};
use rustix::fs::{FlockOperation, flock};

use super::stored::StoredSaves;
use crate::forms::GuestCheckpoints;

/// The checkpoints of one task with certain inputs.
#[derive(Debug)]
pub(super) struct Saves {
    attempt: AttemptId,
    base: PathBuf,
    /// What names of directories of this process begin with.
    own: String,
    /// How many it has begun.
    begun: u32,
    /// The last that it has made.
    last: Option<PathBuf>,
    stored: Option<StoredSaves>,
    /// Locked for as long as this process may need what is in it.
    _in_use: File,
}

impl Saves {
    /// Finds the place for a task whose inputs are known by this name, and removes what was saved
    /// for other ones; in a store that stays until the job has ended. `here` is a place of this attempt
    /// alone.
    pub(super) fn open(
        checkpoints: &GuestCheckpoints,
        attempt: AttemptId,
        inputs: &str,
        here: &Path,
    ) -> Result<Saves, TaskError> {
        let stored = StoredSaves::of(&checkpoints.directory, attempt.task, inputs)?;
        let submission = match &stored {
            None => &checkpoints.directory,
            Some(_) => {
                create_scratch(here)?;
                here
            }
        };
        let task = submission.join(attempt.task.to_string());
        make(&task)?;
        let base = task.join(inputs);
        make(&base)?;
        let opened = File::open(&base);
        let in_use = opened.map_err(|error| unusable(format!("open {}", base.display()), &error))?;
        // Where nothing can be locked, nothing is removed either.
        let _ = flock(&in_use, FlockOperation::LockShared);
        remove_others(&task, inputs, attempt);
        let random = getrandom::u64().map_err(|error| TaskError::retryable(error.to_string()))?;
        let own = format!("{attempt}-{random:016x}");
        Ok(Saves { attempt, base, own, begun: 0, last: None, stored, _in_use: in_use })
    }

    /// The checkpoint that is furthest, of whichever attempt.
    pub(super) fn furthest(&mut self) -> Result<Option<PathBuf>, TaskError> {
        if let Some(stored) = &mut self.stored {
            return stored.bring_furthest(&self.base, self.attempt);
        }
        let found = Checkpoint::furthest(&self.base, self.attempt.task, |error| {
            print_error(format_args!("{}: {error}; it is left out", self.attempt));
        });
        found.map_err(|error| TaskError::retryable(error.to_string()).at(FaultPlace::SharedStorage))
    }

    /// Where the next checkpoint is to be made.
    pub(super) fn next(&mut self) -> PathBuf {
        self.begun += 1;
        self.begun_last()
    }

    /// The one that was begun last.
    pub(super) fn begun_last(&self) -> PathBuf {
        self.base.join(format!("{}.{}", self.own, self.begun))
    }

    /// The one that was begun last is made. The one before it is not needed any more, unless others have
    /// taken it already.
    ///
    /// # Errors
    /// It does not come to the store, and is on this host alone.
    pub(super) fn made(&mut self) -> Result<PathBuf, TaskError> {
        let made = self.begun_last();
        if let Some(stored) = &mut self.stored {
            stored.put(&made, self.attempt)?;
        }
        if let Some(before) = self.last.replace(made.clone()) {
            // Who comes next finds a later one.
            if let Some(Err(error)) = self.stored.as_ref().map(|stored| stored.set_aside(&before)) {
                print_error(format_args!("{}: {error}", self.attempt));
            }
            if let Err(error) = Checkpoint::supersede(&before) {
                print_error(format_args!("{}: {error}", self.attempt));
            }
        }
        Ok(made)
    }

    /// What is in a store, if that is where it is saved.
    pub(super) fn stored(&self) -> Option<StoredSaves> {
        self.stored.clone()
    }

    /// Whether it is of an attempt before, or of one beside this.
    pub(super) fn is_of_another(&self, directory: &Path) -> bool {
        self.last.as_deref() != Some(directory)
    }
}

/// Bytes of the files that were made for a checkpoint; 0 if that cannot be known.
pub(super) fn bytes_in(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|found| found.len()).sum()
}

/// Not with what it lies in: that is made by the submitter, and is gone when the job has ended.
fn make(directory: &Path) -> Result<(), TaskError> {
    let made = create_dir(directory).unless_there();
    made.map_err(|error| unusable(format!("create {}", directory.display()), &error))
}

fn unusable(doing: String, error: &io::Error) -> TaskError {
    let message = match error.kind() {
        io::ErrorKind::NotFound => format!(
            "cannot {doing}: {error}; the directory that --checkpoints names has to be seen by every host of the engine"
        ),
        _ => format!("cannot {doing}: {error}"),
    };
    TaskError::retryable(message).at(FaultPlace::SharedStorage)
}

/// Removes what was saved with inputs that are not those of now, unless an attempt is at work with them.
fn remove_others(task: &Path, inputs: &str, attempt: AttemptId) {
    // What cannot be removed now is removed with the job.
    for entry in fs::read_dir(task).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let Some(directory) = File::open(&path).ok().filter(|_| name != inputs) else { continue };
        if flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok() {
            print_error(format_args!(
                "{attempt}: does not go on from what was saved before: its inputs are by other attempts now"
            ));
            // As above.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread::yield_now;
    use std::time::{Duration, Instant};

    use napreduce_engine::{JobId, TaskId, TaskKind};

    use super::*;

    fn open(directory: &Path, number: u32, inputs: &str) -> Saves {
        let checkpoints = GuestCheckpoints { directory: directory.to_owned(), interval_millis: 1 };
        let task = TaskId { job: JobId(1), kind: TaskKind::Reduce, index: 3 };
        let here = directory.join("unused");
        Saves::open(&checkpoints, AttemptId { task, number }, inputs, &here).expect("it can be used")
    }

    #[test]
    fn concurrent_attempts_use_distinct_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let [mut one, mut other] = [1, 1].map(|number| open(folder.path(), number, "a"));
        assert_eq!(one.base, other.base);
        let names = [one.next(), one.next(), other.next()];
        assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2], "{names:?}");
        let made = one.made().expect("a directory takes it");
        assert!(made == names[1] && !one.is_of_another(&made) && other.is_of_another(&made));
    }

    #[test]
    fn stale_checkpoint_is_removed_unless_in_use() {
        let folder = tempfile::tempdir().expect("a folder");
        let at_work = open(folder.path(), 1, "a");
        let later = open(folder.path(), 2, "b");
        assert!(at_work.base.is_dir() && later.base.is_dir());
        drop(at_work);
        // A process that another test starts at this moment has the lock, too, until it is executed.
        let until = Instant::now() + Duration::from_secs(30);
        let last = loop {
            let last = open(folder.path(), 3, "b");
            if fs::read_dir(folder.path().join("job_0001_r_0003")).expect("a folder").count() == 1 {
                break last;
            }
            assert!(Instant::now() < until, "what is of other inputs stays");
            yield_now();
        };
        assert!(last.base.is_dir());
    }

    #[test]
    fn checkpoint_directory_of_ended_job_is_not_recreated() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = folder.path().join("gone");
        let checkpoints = GuestCheckpoints { directory, interval_millis: 1 };
        let task = TaskId { job: JobId(1), kind: TaskKind::Map, index: 0 };
        let attempt = AttemptId { task, number: 1 };
        let error = Saves::open(&checkpoints, attempt, "a", folder.path()).expect_err("it is gone");
        assert!(error.message.contains("has to be seen by every host"), "{error}");
    }
}

//! The checkpoint directories of one guest task, below that of its submission. With a store (`stored`) they
//! are local to this host.
//!
//! ```text
//! SUBMISSION/job_0001_r_0003/5f2a.../                              by inputs: a SHA-256 of all map outputs
//! SUBMISSION/job_0001_r_0003/5f2a.../job_0001_r_0003.2-91c4....7/  by attempt, process and number: one writer each
//! ```

use std::fs::{self, File, create_dir};
use std::io;
use std::path::{Path, PathBuf};

use napreduce_engine::{AttemptId, FaultPlace};
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{IoResult, TaskError};
use napreduce_task::{Checkpoint, create_scratch};
use rustix::fs::{FlockOperation, flock};

use super::stored::StoredCheckpoints;
use crate::forms::GuestCheckpoints;

/// The checkpoints of one task with certain inputs.
#[derive(Debug)]
pub(super) struct TaskCheckpoints {
    attempt: AttemptId,
    base: PathBuf,
    /// Prefix of this process's directories.
    own: String,
    /// Number of checkpoints begun by this process.
    begun: u32,
    /// The last completed one.
    last: Option<PathBuf>,
    stored: Option<StoredCheckpoints>,
    /// Locked while this process may need the checkpoints.
    _in_use: File,
}

impl TaskCheckpoints {
    /// Opens the checkpoints of a task for the inputs with this name. Removes local checkpoints for other
    /// inputs; those in a store remain until the job ends. `here` is a directory of this attempt.
    pub(super) fn open(
        checkpoints: &GuestCheckpoints,
        attempt: AttemptId,
        inputs: &str,
        here: &Path,
    ) -> Result<TaskCheckpoints, TaskError> {
        let stored = StoredCheckpoints::of(&checkpoints.directory, attempt.task, inputs)?;
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
        let in_use =
            opened.map_err(|error| unusable(format!("open {}", base.display()), &error))?;
        // A file system without locks also fails the lock in `remove_others`, so nothing is removed.
        let _ = flock(&in_use, FlockOperation::LockShared);
        remove_others(&task, inputs, attempt);
        let random = getrandom::u64().map_err(|error| TaskError::retryable(error.to_string()))?;
        let own = format!("{attempt}-{random:016x}");
        Ok(TaskCheckpoints {
            attempt,
            base,
            own,
            begun: 0,
            last: None,
            stored,
            _in_use: in_use,
        })
    }

    /// Returns the most advanced checkpoint of any attempt.
    pub(super) fn furthest(&mut self) -> Result<Option<PathBuf>, TaskError> {
        if let Some(stored) = &mut self.stored {
            return stored.fetch_furthest(&self.base, self.attempt);
        }
        let found = Checkpoint::furthest(&self.base, self.attempt.task, |error| {
            print_error(format_args!("{}: {error}; ignored", self.attempt));
        });
        found.map_err(|error| TaskError::retryable(error.to_string()).at(FaultPlace::SharedStorage))
    }

    /// Returns the path of the next checkpoint.
    pub(super) fn next(&mut self) -> PathBuf {
        self.begun += 1;
        self.last_begun()
    }

    /// Returns the path of the last checkpoint that was begun.
    pub(super) fn last_begun(&self) -> PathBuf {
        self.base.join(format!("{}.{}", self.own, self.begun))
    }

    /// Completes the last begun checkpoint, and removes the previous one.
    ///
    /// # Errors
    /// Fails if it cannot be written to the store; it is then on this host only.
    pub(super) fn complete(&mut self) -> Result<PathBuf, TaskError> {
        let made = self.last_begun();
        if let Some(stored) = &mut self.stored {
            stored.put(&made, self.attempt)?;
        }
        if let Some(before) = self.last.replace(made.clone()) {
            // The next attempt finds the later one.
            if let Some(Err(error)) = self.stored.as_ref().map(|stored| stored.set_aside(&before)) {
                print_error(format_args!("{}: {error}", self.attempt));
            }
            if let Err(error) = Checkpoint::supersede(&before) {
                print_error(format_args!("{}: {error}", self.attempt));
            }
        }
        Ok(made)
    }

    /// Returns the checkpoints in the store, if one is used.
    pub(super) fn stored(&self) -> Option<StoredCheckpoints> {
        self.stored.clone()
    }

    /// Returns whether another process has made the checkpoint.
    pub(super) fn is_of_other_process(&self, directory: &Path) -> bool {
        self.last.as_deref() != Some(directory)
    }
}

/// Returns the size of a checkpoint's files, or 0 if they cannot be read.
pub(super) fn bytes_in(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .map(|found| found.len())
        .sum()
}

/// Creates a directory but not its parent, which the submitter creates and removes with the job.
fn make(directory: &Path) -> Result<(), TaskError> {
    let made = create_dir(directory).unless_there();
    made.map_err(|error| unusable(format!("create {}", directory.display()), &error))
}

fn unusable(doing: String, error: &io::Error) -> TaskError {
    let message = match error.kind() {
        io::ErrorKind::NotFound => format!(
            "cannot {doing}: {error}; the directory of --checkpoints must be visible to every host of the engine"
        ),
        _ => format!("cannot {doing}: {error}"),
    };
    TaskError::retryable(message).at(FaultPlace::SharedStorage)
}

/// Removes checkpoints for other inputs, unless an attempt uses them.
fn remove_others(task: &Path, inputs: &str, attempt: AttemptId) {
    // The rest is removed with the job.
    for entry in fs::read_dir(task).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let Some(directory) = File::open(&path).ok().filter(|_| name != inputs) else {
            continue;
        };
        if flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok() {
            print_error(format_args!(
                "{attempt}: starts over: its checkpoint belongs to other attempts of its inputs"
            ));
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

    fn open(directory: &Path, number: u32, inputs: &str) -> TaskCheckpoints {
        let checkpoints = GuestCheckpoints {
            directory: directory.to_owned(),
            interval_millis: 1,
        };
        let task = TaskId {
            job: JobId(1),
            kind: TaskKind::Reduce,
            index: 3,
        };
        let here = directory.join("unused");
        TaskCheckpoints::open(&checkpoints, AttemptId { task, number }, inputs, &here)
            .expect("it can be used")
    }

    #[test]
    fn concurrent_attempts_use_distinct_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let [mut one, mut other] = [1, 1].map(|number| open(folder.path(), number, "a"));
        assert_eq!(one.base, other.base);
        let names = [one.next(), one.next(), other.next()];
        assert!(
            names[0] != names[1] && names[1] != names[2] && names[0] != names[2],
            "{names:?}"
        );
        let made = one.complete().expect("a directory takes it");
        assert!(
            made == names[1] && !one.is_of_other_process(&made) && other.is_of_other_process(&made)
        );
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
            if fs::read_dir(folder.path().join("job_0001_r_0003"))
                .expect("a folder")
                .count()
                == 1
            {
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
        let checkpoints = GuestCheckpoints {
            directory,
            interval_millis: 1,
        };
        let task = TaskId {
            job: JobId(1),
            kind: TaskKind::Map,
            index: 0,
        };
        let attempt = AttemptId { task, number: 1 };
        let error = TaskCheckpoints::open(&checkpoints, attempt, "a", folder.path())
            .expect_err("it is gone");
        assert!(
            error.message.contains("must be visible to every host"),
            "{error}"
        );
    }
}

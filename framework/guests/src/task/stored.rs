//! Checkpoints of one task in a store, for engines whose hosts share no directory.
//!
//! ```text
//! SUBMISSION/job_0001_r_0003/5f2a.../checkpoint-job_0001_r_0003.2-91c4....7     what names the files, written last
//! SUBMISSION/job_0001_r_0003/5f2a.../checkpoint-job_0001_r_0003.2-91c4....7-000000     8 MiB of a file, and so on
//! ```

use std::path::{Path, PathBuf};

use napreduce_engine::{AttemptId, FaultPlace, TaskId};
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{StorageScheme, TaskError};
use napreduce_task::{Checkpoint, CheckpointObjects, ObjectsError, StoredFile};

/// The checkpoints of one task with certain inputs.
#[derive(Debug, Clone)]
pub(super) struct StoredSaves {
    objects: CheckpointObjects,
    /// The files of the checkpoint that the task went on from last.
    known: Vec<StoredFile>,
}

impl StoredSaves {
    /// Those below `submission`, if that is in a store.
    ///
    /// # Errors
    /// What to do for a program that knows no such store.
    pub(super) fn of(
        submission: &Path,
        task: TaskId,
        inputs: &str,
    ) -> Result<Option<StoredSaves>, TaskError> {
        if StorageScheme::of(submission).is_none() {
            return Ok(None);
        }
        let prefix = submission.join(task.to_string()).join(inputs).join("checkpoint");
        let objects = CheckpointObjects::of(&prefix).map_err(|reason| {
            TaskError::fatal(format!("cannot use --checkpoints: {reason}")).at(FaultPlace::SharedStorage)
        })?;
        Ok(Some(StoredSaves { objects, known: Vec::new() }))
    }

    /// Brings the checkpoint that is furthest into `base`. What is damaged is said and taken out of use.
    pub(super) fn bring_furthest(
        &mut self,
        base: &Path,
        attempt: AttemptId,
    ) -> Result<Option<PathBuf>, TaskError> {
        let unread = |error: &ObjectsError| failed("what was saved before cannot be read", error);
        for name in self.objects.furthest_first().map_err(|error| unread(&error))? {
            let directory = base.join(&name);
            let brought = self.objects.fetch(&directory).and_then(|files| {
                // Its attempt may have saved anew meanwhile.
                if files.is_empty() {
                    return Ok(None);
                }
                Checkpoint::read(&directory, attempt.task)?;
                Ok(Some(files))
            });
            match brought {
                Ok(None) => {}
                Ok(Some(files)) => {
                    self.known = files;
                    return Ok(Some(directory));
                }
                Err(error @ ObjectsError::Store(_)) => return Err(unread(&error)),
                Err(error) => {
                    print_error(format_args!("{attempt}: {error}; it is left out"));
                    self.objects.set_aside(&directory).map_err(|error| unread(&error))?;
                }
            }
        }
        self.known.clear();
        Ok(None)
    }

    /// Puts there what was saved in a directory of this host.
    pub(super) fn put(&mut self, directory: &Path, attempt: AttemptId) -> Result<(), TaskError> {
        let put = self.objects.save(directory, attempt, &self.known);
        self.known = put.map_err(|error| failed("what is saved cannot be put into the store", &error))?;
        Ok(())
    }

    /// Takes a checkpoint out of use: it is damaged, or there is a later one. Files that a later one names
    /// stay.
    pub(super) fn set_aside(&self, directory: &Path) -> Result<(), ObjectsError> {
        self.objects.set_aside(directory)
    }
}

fn failed(what: &str, error: &ObjectsError) -> TaskError {
    TaskError::retryable(format!("{what}: {error}")).at(FaultPlace::SharedStorage)
}

//! Checkpoints of one task in a store, for engines whose hosts share no directory.
//!
//! ```text
//! SUBMISSION/job_0001_r_0003/5f2a.../checkpoint-job_0001_r_0003.2-91c4....7     the list of files, written last
//! SUBMISSION/job_0001_r_0003/5f2a.../checkpoint-job_0001_r_0003.2-91c4....7-000000     8 MiB of a file, and so on
//! ```

use std::path::{Path, PathBuf};

use napreduce_engine::{AttemptId, FaultPlace, TaskId};
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{StorageScheme, TaskError};
use napreduce_task::{Checkpoint, CheckpointObjects, ObjectsError, StoredFile};

/// The checkpoints of one task with certain inputs.
#[derive(Debug, Clone)]
pub(super) struct StoredCheckpoints {
    objects: CheckpointObjects,
    /// The files of the last restored checkpoint.
    known: Vec<StoredFile>,
}

impl StoredCheckpoints {
    /// Returns the checkpoints below `submission`, if that is in a store.
    ///
    /// # Errors
    /// Fails if this program does not support the store.
    pub(super) fn of(
        submission: &Path,
        task: TaskId,
        inputs: &str,
    ) -> Result<Option<StoredCheckpoints>, TaskError> {
        if StorageScheme::from_path(submission).is_none() {
            return Ok(None);
        }
        let prefix = submission
            .join(task.to_string())
            .join(inputs)
            .join("checkpoint");
        let objects = CheckpointObjects::open(&prefix).map_err(|reason| {
            TaskError::fatal(format!("cannot use --checkpoints: {reason}"))
                .at(FaultPlace::SharedStorage)
        })?;
        Ok(Some(StoredCheckpoints {
            objects,
            known: Vec::new(),
        }))
    }

    /// Downloads the most advanced checkpoint to `base`. Damaged ones are logged and set aside.
    pub(super) fn fetch_furthest(
        &mut self,
        base: &Path,
        attempt: AttemptId,
    ) -> Result<Option<PathBuf>, TaskError> {
        let unread = |error: &ObjectsError| failed("cannot read the checkpoint", error);
        for name in self
            .objects
            .furthest_first()
            .map_err(|error| unread(&error))?
        {
            let directory = base.join(&name);
            let fetched = self.objects.fetch(&directory).and_then(|files| {
                // Its attempt may have replaced it meanwhile.
                if files.is_empty() {
                    return Ok(None);
                }
                Checkpoint::read(&directory, attempt.task)?;
                Ok(Some(files))
            });
            match fetched {
                Ok(None) => {}
                Ok(Some(files)) => {
                    self.known = files;
                    return Ok(Some(directory));
                }
                Err(error @ ObjectsError::Store(_)) => return Err(unread(&error)),
                Err(error) => {
                    print_error(format_args!("{attempt}: {error}; ignored"));
                    self.objects
                        .set_aside(&directory)
                        .map_err(|error| unread(&error))?;
                }
            }
        }
        self.known.clear();
        Ok(None)
    }

    /// Uploads the checkpoint in a local directory.
    pub(super) fn put(&mut self, directory: &Path, attempt: AttemptId) -> Result<(), TaskError> {
        let put = self.objects.save(directory, attempt, &self.known);
        self.known =
            put.map_err(|error| failed("cannot write the checkpoint to the store", &error))?;
        Ok(())
    }

    /// Removes a damaged or superseded checkpoint, except for files that a later one uses.
    pub(super) fn set_aside(&self, directory: &Path) -> Result<(), ObjectsError> {
        self.objects.set_aside(directory)
    }
}

fn failed(what: &str, error: &ObjectsError) -> TaskError {
    TaskError::retryable(format!("{what}: {error}")).at(FaultPlace::SharedStorage)
}

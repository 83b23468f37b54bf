//! The checkpoint directory of a submission, or its names in a store: creation under a name that is not
//! guessable, and removal.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use napreduce_engine::TaskKind;
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{
    JobError, JobPlan, ObjectStores, PutCondition, StorageScheme, StoreError, whole_millis,
};
use napreduce_task::object_stores;

use crate::forms::GuestCheckpoints;

/// Time limit for removing files that discarded attempts may still create.
const REMOVAL_MAX: Duration = Duration::from_secs(10);
const REMOVAL_WAIT: Duration = Duration::from_millis(100);
/// The first object written in a store; it identifies the owner of the others.
const SUBMISSION: &str = "submission.json";

/// Whether and how guests save checkpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestCheckpointSettings {
    /// A directory visible to all hosts of the engine under this path, or a place in a store.
    pub directory: PathBuf,
    /// Interval of checkpoints.
    pub interval: Duration,
}

/// The checkpoint directory of one job; removed when dropped.
#[derive(Debug)]
pub(super) struct SubmissionCheckpoints(pub(super) GuestCheckpoints);

impl SubmissionCheckpoints {
    /// Creates the directory, if guests of this job save checkpoints.
    ///
    /// # Errors
    /// Fails if the job's code does not support it, the directory is missing, or the store is not writable.
    pub(super) fn make(
        settings: Option<&GuestCheckpointSettings>,
        plan: &JobPlan,
    ) -> Result<Option<SubmissionCheckpoints>, JobError> {
        let Some(GuestCheckpointSettings {
            directory,
            interval,
        }) = settings
        else {
            return Ok(None);
        };
        if let Some(kind) = plan.unsaved().first() {
            return Err(JobError::Plan(refusal(*kind, &plan.name)));
        }
        let mut key = [0; 16];
        getrandom::fill(&mut key)
            .map_err(|error| JobError::io("draw a random number", error.into()))?;
        let key = u128::from_le_bytes(key);
        let path = directory.join(format!("napreduce-checkpoints-{key:032x}"));
        let interval_millis = whole_millis(*interval);
        let made = GuestCheckpoints {
            directory: path,
            interval_millis,
        };
        if StorageScheme::from_path(directory).is_some() {
            begin_in_store(&made.directory, &plan.name)?;
            return Ok(Some(SubmissionCheckpoints(made)));
        }
        if !directory.is_dir() {
            let what = format!(
                "--checkpoints {} is not a directory; create one that every host of the engine sees under this path",
                directory.display()
            );
            return Err(JobError::Plan(what));
        }
        let path = made.directory.display();
        fs::create_dir(&made.directory)
            .map_err(|error| JobError::io(format!("make {path}"), error))?;
        Ok(Some(SubmissionCheckpoints(made)))
    }
}

impl Drop for SubmissionCheckpoints {
    fn drop(&mut self) {
        let path = &self.0.directory;
        let removed = match StorageScheme::from_path(path) {
            None => remove(path).map_err(|error| error.to_string()),
            Some(_) => remove_from_store(path),
        };
        if let Err(error) = removed {
            print_error(format_args!(
                "warning: cannot remove the checkpoints in {}: {error}",
                path.display()
            ));
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(_) if began.elapsed() < REMOVAL_MAX => std::thread::sleep(REMOVAL_WAIT),
            removed => return removed,
        }
    }
}

/// Checks early that the store is known and writable, before guests find out.
fn begin_in_store(submission: &Path, name: &str) -> Result<(), JobError> {
    let (stores, place) = in_store(submission).map_err(JobError::Plan)?;
    let text = serde_json::json!({ "job": name }).to_string();
    let object = format!("{place}/{SUBMISSION}");
    let refused =
        |error: StoreError| JobError::Plan(format!("cannot use --checkpoints: {}", error.message));
    stores
        .put(&object, text.as_bytes(), PutCondition::Always)
        .map(drop)
        .map_err(refused)
}

/// Removes all objects of a submission, and objects that just-killed guests may still write.
fn remove_from_store(submission: &Path) -> Result<(), String> {
    let (stores, place) = in_store(submission)?;
    let in_words = |error: StoreError| error.message;
    let began = Instant::now();
    loop {
        stores.remove_below(place).map_err(in_words)?;
        let listed = stores.list(place).map_err(in_words)?;
        if listed.is_empty() || began.elapsed() > REMOVAL_MAX {
            return listed.first().map_or(Ok(()), |left| {
                Err(format!("{} is still being written", left.object))
            });
        }
    }
}

fn in_store(submission: &Path) -> Result<(&'static dyn ObjectStores, &str), String> {
    let place = submission
        .to_str()
        .ok_or_else(|| format!("{} is not UTF-8", submission.display()))?;
    Ok((object_stores(submission)?, place))
}

fn refusal(kind: TaskKind, name: &str) -> String {
    let code = match kind {
        TaskKind::Map => "mapper",
        TaskKind::Reduce => "reducer",
    };
    format!(
        "--checkpoints: the {code} of {name} does not save its state, so its {kind}s cannot be checkpointed; derive Resumable for it \
         and call {code}_resumable, implement `save` and `restore`, or return Save::Stateless from `save` if it has no state, or remove --checkpoints"
    )
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::CheckpointSupport;

    use super::*;

    fn settings(directory: &Path) -> GuestCheckpointSettings {
        GuestCheckpointSettings {
            directory: directory.to_owned(),
            interval: Duration::from_secs(60),
        }
    }

    fn plan(map: bool, reduce: bool) -> JobPlan {
        JobPlan {
            checkpoint: CheckpointSupport { map, reduce },
            ..JobPlan::new("sort", "out")
        }
    }

    #[test]
    fn checkpoint_directory_is_unique_and_removed_at_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = settings(folder.path());
        let make = || {
            SubmissionCheckpoints::make(Some(&settings), &plan(true, true)).expect("a directory")
        };
        let one = make().expect("it is wanted");
        let other = make().expect("it is wanted");
        assert_ne!(one.0.directory, other.0.directory);
        assert_eq!(one.0.interval_millis, 60_000);
        fs::write(one.0.directory.join("file"), "saved").expect("written");
        drop(one);
        let left: Vec<_> = fs::read_dir(folder.path())
            .expect("a folder")
            .flatten()
            .collect();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].path(), other.0.directory);
    }

    #[test]
    fn unsupported_checkpoints_are_rejected_with_remedy() {
        let folder = tempfile::tempdir().expect("a folder");
        for (plan, directory, says) in [
            (
                plan(false, true),
                folder.path().to_owned(),
                "the mapper of sort does not save its state",
            ),
            (
                plan(true, false),
                folder.path().to_owned(),
                "the reducer of sort does not save its state",
            ),
            (
                plan(true, true),
                folder.path().join("missing"),
                "is not a directory; create one",
            ),
            (
                plan(true, true),
                "s3://b/saved".into(),
                "build it with the feature s3 of napreduce",
            ),
        ] {
            let error =
                SubmissionCheckpoints::make(Some(&settings(&directory)), &plan).expect_err(says);
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}

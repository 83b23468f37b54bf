//! Where the guests of one job save their work: a directory of its own below the one that was named.
//!
//! Owns its name, which no other job can know, whether the job may have one, and its removal. Does not own
//! what guests make of it (`napreduce-task`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::random::random_u128;
use napreduce_core::TaskKind;
use napreduce_protocol::{GuestCheckpoints, JobError, JobPlan};

/// What an attempt that counts no more may still make is removed as well, within this time.
const REMOVAL_MAX: Duration = Duration::from_secs(10);
const REMOVAL_WAIT: Duration = Duration::from_millis(100);

/// Whether and how guests save their work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestCheckpointSettings {
    /// A directory that every host of the engine sees under this path.
    pub directory: PathBuf,
    /// How often a guest saves.
    pub interval: Duration,
}

/// What guests are told of the directory of one job, which is removed with this value.
#[derive(Debug)]
pub(super) struct SubmissionCheckpoints(pub(super) GuestCheckpoints);

impl SubmissionCheckpoints {
    /// Makes it, if guests of this job are to save their work.
    ///
    /// # Errors
    /// The job's code cannot be saved, or there is no such directory.
    pub(super) fn make(
        settings: Option<&GuestCheckpointSettings>,
        plan: &JobPlan,
    ) -> Result<Option<SubmissionCheckpoints>, JobError> {
        let Some(GuestCheckpointSettings { directory, interval }) = settings else { return Ok(None) };
        if let Some(kind) = plan.unsaved().first() {
            return Err(JobError::Plan(refusal(*kind, &plan.name)));
        }
        if !directory.is_dir() {
            let what = format!(
                "--checkpoints {} is no directory; make one that every host of the engine sees under this path",
                directory.display()
            );
            return Err(JobError::Plan(what));
        }
        let key = random_u128().map_err(|error| JobError::io("draw a random number", error))?;
        let path = directory.join(format!("napreduce-checkpoints-{key:032x}"));
        fs::create_dir(&path).map_err(|error| JobError::io(format!("make {}", path.display()), error))?;
        let interval_millis = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        Ok(Some(SubmissionCheckpoints(GuestCheckpoints { directory: path, interval_millis })))
    }
}

impl Drop for SubmissionCheckpoints {
    fn drop(&mut self) {
        let path = &self.0.directory;
        if let Err(error) = remove(path) {
            eprintln!("warning: cannot remove the checkpoints in {}: {error}", path.display());
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

fn refusal(kind: TaskKind, name: &str) -> String {
    let code = match kind {
        TaskKind::Map => "mapper",
        TaskKind::Reduce => "reducer",
    };
    format!(
        "--checkpoints has {kind}s saved, and the {code} of {name} may keep a state that it does not save; implement `save` and \
         `restore` for it, or have `save` answer Save::Stateless if it keeps none, or leave out --checkpoints"
    )
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::CheckpointSupport;

    use super::*;

    fn settings(directory: &Path) -> GuestCheckpointSettings {
        GuestCheckpointSettings { directory: directory.to_owned(), interval: Duration::from_secs(60) }
    }

    fn plan(map: bool, reduce: bool) -> JobPlan {
        JobPlan { checkpoint: CheckpointSupport { map, reduce }, ..JobPlan::new("sort", "out") }
    }

    #[test]
    fn each_job_has_a_directory_of_its_own_for_as_long_as_it_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = settings(folder.path());
        let make = || SubmissionCheckpoints::make(Some(&settings), &plan(true, true)).expect("a directory");
        let (one, other) = (make().expect("it is wanted"), make().expect("it is wanted"));
        assert_ne!(one.0.directory, other.0.directory);
        assert_eq!(one.0.interval_millis, 60_000);
        fs::write(one.0.directory.join("file"), "saved").expect("written");
        drop(one);
        let left: Vec<_> = fs::read_dir(folder.path()).expect("a folder").flatten().collect();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].path(), other.0.directory);
    }

    #[test]
    fn what_cannot_be_saved_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().expect("a folder");
        for (plan, directory, says) in [
            (plan(false, true), folder.path().to_owned(), "the mapper of sort may keep a state"),
            (plan(true, false), folder.path().to_owned(), "the reducer of sort may keep a state"),
            (plan(true, true), folder.path().join("missing"), "is no directory; make one"),
        ] {
            let error = SubmissionCheckpoints::make(Some(&settings(&directory)), &plan).expect_err(says);
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}

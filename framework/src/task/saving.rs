//! Checkpoints as the loops see them: what is saved of every kind of task, and starting from it or
//! from scratch.
//!
//! Owns what all tasks have in common. Does not own the loops (`map`, `reduce`), the files (live runtime) nor
//! positions in data (data plane).

use std::path::{Path, PathBuf};

use napreduce_data::{SavePlace, SavedFile};
use napreduce_engine::FaultPlace;
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{PartOutput, TaskError};
use napreduce_task::{
    Checkpoint, CheckpointDirectory, CheckpointStage, OutputPiece, SavedCheckpoint, TaskContext,
    set_user_counters, user_counters,
};

use crate::output::{PiecesError, ResumeError};
use crate::state::{Save, unsaved};

/// What the user's code has saved.
#[derive(Default)]
pub(crate) struct UserState {
    state: Option<Vec<u8>>,
    format: Vec<u8>,
}

impl UserState {
    /// Asks for it; `None` when it cannot be saved.
    pub(crate) fn ask(
        task: impl FnOnce(&mut Vec<u8>) -> Result<Save, TaskError>,
        format: impl FnOnce(&mut Vec<u8>) -> Result<Save, TaskError>,
    ) -> Result<Option<UserState>, TaskError> {
        let mut saved = UserState::default();
        let mut state = Vec::new();
        match task(&mut state)? {
            Save::Stateless => {}
            Save::Saved => saved.state = Some(state),
            Save::Unsupported => return Ok(None),
        }
        match format(&mut saved.format)? {
            Save::Stateless => saved.format.clear(),
            Save::Saved => {}
            Save::Unsupported => return Ok(None),
        }
        Ok(Some(saved))
    }
}

/// A checkpoint while it is being made.
pub(crate) struct Saving<'a> {
    context: &'a TaskContext,
    pub(crate) directory: CheckpointDirectory,
    durable: bool,
}

impl<'a> Saving<'a> {
    pub(crate) fn begin(
        path: &Path,
        durable: bool,
        context: &'a TaskContext,
    ) -> Result<Saving<'a>, TaskError> {
        let directory = CheckpointDirectory::make(path, durable).map_err(unsaved)?;
        Ok(Saving { context, directory, durable })
    }

    /// Where the data plane leaves its files.
    pub(crate) fn place(&self) -> SavePlace {
        let path = self.directory.path();
        SavePlace {
            base: base_of(path),
            folder: PathBuf::from(path.file_name().unwrap_or_default()),
            durable: self.durable,
        }
    }

    /// Counts those of the data plane's files that were not there before.
    pub(crate) fn count<'f>(&mut self, files: impl IntoIterator<Item = &'f SavedFile>) {
        let own = self.place().folder;
        for file in files {
            if file.file.starts_with(&own) {
                self.directory.count(file.bytes);
            }
        }
    }

    /// The last step.
    pub(crate) fn finish(
        self,
        stage: CheckpointStage,
        pieces: Vec<OutputPiece>,
        user: UserState,
    ) -> Result<SavedCheckpoint, TaskError> {
        let mut counters = self.context.counters().values();
        counters.merge(&user_counters());
        let checkpoint = Checkpoint {
            attempt: self.context.attempt(),
            stage,
            pieces,
            counters,
            active_millis: self.context.active_millis(),
            user_state: user.state,
            format_state: user.format,
        };
        let bytes = self.directory.finish(&checkpoint).map_err(unsaved)?;
        Ok(SavedCheckpoint { bytes })
    }
}

/// The directory of all checkpoints, which names in them are relative to.
pub(crate) fn base_of(directory: &Path) -> PathBuf {
    directory.parent().unwrap_or(Path::new("")).to_owned()
}

impl ResumeError {
    /// A checkpoint of a task of another kind, or in another stage than this one starts from.
    pub(crate) fn other_stage() -> ResumeError {
        ResumeError::Checkpoint("it was made in another stage of the work".to_owned())
    }
}

/// What a task starts with, and whether that is a checkpoint.
pub(crate) struct Start<T> {
    pub(crate) with: T,
    pub(crate) restored: bool,
}

/// Starts from the checkpoint if there is one and it can be done, else from scratch: in this attempt where it
/// has what it takes, else in the next one.
pub(crate) fn start<T>(
    (restore, fresh_possible): (Option<&Path>, bool),
    context: &TaskContext,
    resume: impl FnOnce(&Path, Checkpoint) -> Result<T, ResumeError>,
    fresh: impl FnOnce() -> Result<T, TaskError>,
) -> Result<Start<T>, TaskError> {
    let Some(directory) = restore else { return Ok(Start { with: fresh()?, restored: false }) };
    let counted = user_counters();
    let resumed = Checkpoint::read(directory, context.attempt().task).map_err(ResumeError::from).and_then(
        |checkpoint| {
            let (counters, active_millis) = (checkpoint.counters.clone(), checkpoint.active_millis);
            let with = resume(directory, checkpoint)?;
            context.goes_on_after(active_millis);
            context.counters().add_all(&counters);
            // What the user's set-up has counted was counted by the first attempt.
            set_user_counters(&counters);
            Ok(with)
        },
    );
    match resumed {
        Ok(with) => Ok(Start { with, restored: true }),
        Err(ResumeError::Task(error)) => Err(error),
        Err(ResumeError::Checkpoint(reason)) => {
            print_error(format_args!(
                "{}: starts from scratch, since its checkpoint is of no use: {reason}",
                context.attempt()
            ));
            context.restore_refused(&reason);
            set_user_counters(&counted);
            if !fresh_possible {
                return Err(blamed(Some(directory), reason));
            }
            Ok(Start { with: fresh()?, restored: false })
        }
    }
}

/// Gives back to a fresh clone of the user's code, set up, what another one has saved.
pub(crate) fn give_back(
    state: Option<&[u8]>,
    restore: impl FnOnce(&[u8]) -> Result<(), TaskError>,
) -> Result<(), ResumeError> {
    state.map_or(Ok(()), restore).map_err(|error| ResumeError::Checkpoint(error.message))
}

/// A file of the checkpoint proved damaged when it was too late to start from scratch: the next
/// attempt does so.
pub(crate) fn blamed(restore: Option<&Path>, message: String) -> TaskError {
    let set_aside = restore.map(Checkpoint::set_aside);
    let message = match set_aside {
        Some(Err(error)) => format!("{message}; {error}"),
        _ => format!("{message}; the next attempt starts from scratch"),
    };
    TaskError::retryable(message).at(FaultPlace::SharedStorage)
}

/// What becomes of a task whose part file could not be put together.
pub(crate) fn part_error(error: PiecesError, restore: Option<&Path>) -> TaskError {
    match error {
        PiecesError::Output(error) => error.into(),
        PiecesError::Damaged { .. } => blamed(restore, error.to_string()),
    }
}

/// Bytes that a task wrote to outputs with a name.
pub(crate) fn named_bytes(part: &PartOutput) -> u64 {
    part.named.iter().map(|named| named.bytes).sum()
}

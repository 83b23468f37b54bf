//! Checkpoints as the loops use them: saving that is common to all tasks, and starting from a checkpoint or
//! from scratch.

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

/// The saved state of user code.
#[derive(Default)]
pub(crate) struct UserState {
    state: Option<Vec<u8>>,
    format: Vec<u8>,
}

impl UserState {
    /// Saves the state; returns `None` if that is not supported.
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

/// A checkpoint being written.
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
        Ok(Saving {
            context,
            directory,
            durable,
        })
    }

    /// Returns the directory for files of the data plane.
    pub(crate) fn place(&self) -> SavePlace {
        let path = self.directory.path();
        SavePlace {
            base: base_of(path),
            folder: PathBuf::from(path.file_name().unwrap_or_default()),
            durable: self.durable,
        }
    }

    /// Counts the files of the data plane that this checkpoint has added.
    pub(crate) fn count<'f>(&mut self, files: impl IntoIterator<Item = &'f SavedFile>) {
        let own = self.place().folder;
        for file in files {
            if file.file.starts_with(&own) {
                self.directory.count(file.bytes);
            }
        }
    }

    /// Finishes the checkpoint.
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

/// Returns the directory of all checkpoints, to which names in them are relative.
pub(crate) fn base_of(directory: &Path) -> PathBuf {
    directory.parent().unwrap_or(Path::new("")).to_owned()
}

impl ResumeError {
    /// Reports a checkpoint of another kind of task or another stage.
    pub(crate) fn other_stage() -> ResumeError {
        ResumeError::Checkpoint("it was made in another stage of the task".to_owned())
    }
}

/// The initial state of a task, and whether it is from a checkpoint.
pub(crate) struct Start<T> {
    pub(crate) with: T,
    pub(crate) restored: bool,
}

/// Starts from the checkpoint if it is usable, else from scratch: in this attempt if that is possible, else
/// in the next one.
pub(crate) fn start<T>(
    restore: Option<&Path>,
    fresh_possible: bool,
    context: &TaskContext,
    resume: impl FnOnce(&Path, Checkpoint) -> Result<T, ResumeError>,
    fresh: impl FnOnce() -> Result<T, TaskError>,
) -> Result<Start<T>, TaskError> {
    let Some(directory) = restore else {
        return Ok(Start {
            with: fresh()?,
            restored: false,
        });
    };
    let counted = user_counters();
    let resumed = Checkpoint::read(directory, context.attempt().task)
        .map_err(ResumeError::from)
        .and_then(|checkpoint| {
            let counters = checkpoint.counters.clone();
            let active_millis = checkpoint.active_millis;
            let with = resume(directory, checkpoint)?;
            context.add_active_millis(active_millis);
            context.counters().add_all(&counters);
            // The first attempt has already counted during the set-up.
            set_user_counters(&counters);
            Ok(with)
        });
    match resumed {
        Ok(with) => Ok(Start {
            with,
            restored: true,
        }),
        Err(ResumeError::Task(error)) => Err(error),
        Err(ResumeError::Checkpoint(reason)) => {
            print_error(format_args!(
                "{}: checkpoint unusable, starting over: {reason}",
                context.attempt()
            ));
            context.restore_refused(&reason);
            set_user_counters(&counted);
            if !fresh_possible {
                return Err(blamed(Some(directory), reason));
            }
            Ok(Start {
                with: fresh()?,
                restored: false,
            })
        }
    }
}

/// Restores a saved state into a fresh clone of the user's code after its set-up.
pub(crate) fn give_back(
    state: Option<&[u8]>,
    restore: impl FnOnce(&[u8]) -> Result<(), TaskError>,
) -> Result<(), ResumeError> {
    state
        .map_or(Ok(()), restore)
        .map_err(|error| ResumeError::Checkpoint(error.message))
}

/// Reports a damaged checkpoint file that was found too late to start from scratch; the next attempt does so.
pub(crate) fn blamed(restore: Option<&Path>, message: String) -> TaskError {
    let set_aside = restore.map(Checkpoint::set_aside);
    let message = match set_aside {
        Some(Err(error)) => format!("{message}; {error}"),
        _ => format!("{message}; the next attempt starts over"),
    };
    TaskError::retryable(message).at(FaultPlace::SharedStorage)
}

/// Converts an error while assembling a part file.
pub(crate) fn part_error(error: PiecesError, restore: Option<&Path>) -> TaskError {
    match error {
        PiecesError::Output(error) => error.into(),
        PiecesError::Damaged { .. } => blamed(restore, error.to_string()),
    }
}

/// Returns the bytes that a task wrote to named outputs.
pub(crate) fn named_bytes(part: &PartOutput) -> u64 {
    part.named.iter().map(|named| named.bytes).sum()
}

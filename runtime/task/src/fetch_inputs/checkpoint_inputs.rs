//! The inputs recorded in a reduce attempt's checkpoint: those fetched, or how much of each was read. Also
//! saves the checkpoint of a reduce that is still fetching.

use std::path::{Path, PathBuf};

use napreduce_data::Segment;
use napreduce_engine::{AttemptId, FaultPlace};
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{ReduceTask, TaskError};

use crate::checkpoint::{
    Checkpoint, CheckpointDirectory, CheckpointError, CheckpointStage, FetchedInput, FileResult,
    NeededInput,
};
use crate::context::TaskContext;
use crate::runner::SavedCheckpoint;

/// The inputs in a checkpoint.
#[derive(Debug)]
pub(super) enum CheckpointInputs {
    Nothing,
    /// These were fetched into checkpoints as whole partitions.
    Fetched {
        files: Vec<(AttemptId, PathBuf)>,
    },
    /// The merge had begun; these blocks are still needed.
    Positions {
        inputs: Vec<NeededInput>,
        /// Saved again unchanged if this attempt is checkpointed while it fetches.
        checkpoint: Box<Checkpoint>,
    },
}

impl CheckpointInputs {
    /// Reads the checkpoint of a task, if it has one; rejects an unusable one.
    pub(super) fn for_task(
        task: &ReduceTask,
        maps: u32,
        context: &TaskContext,
    ) -> CheckpointInputs {
        let Some(directory) = &task.restore else {
            return CheckpointInputs::Nothing;
        };
        match read_checkpoint(directory, task, maps, context) {
            Ok(inputs) => inputs,
            Err(reason) => {
                reject(&reason, context);
                CheckpointInputs::Nothing
            }
        }
    }

    /// Returns the inputs that need not be fetched again.
    pub(super) fn take_fetched(&mut self) -> Vec<(AttemptId, PathBuf)> {
        match self {
            CheckpointInputs::Fetched { files } => std::mem::take(files),
            CheckpointInputs::Nothing | CheckpointInputs::Positions { .. } => Vec::new(),
        }
    }

    /// Returns the conflict if an input comes from another attempt than the positions, which apply to one
    /// attempt's output only.
    pub(super) fn conflict(&self, named: AttemptId) -> Option<String> {
        let CheckpointInputs::Positions { inputs, .. } = self else {
            return None;
        };
        let needed = inputs.get(named.task.index as usize)?;
        let conflicts = needed.first_block.is_some() && needed.attempt != named;
        conflicts.then(|| {
            format!(
                "it refers to the output of {}, which {named} has replaced",
                needed.attempt
            )
        })
    }

    /// Returns the first needed block of a map's output; `None` if none is needed.
    pub(super) fn first_block(&self, map: u32) -> Option<u64> {
        match self {
            CheckpointInputs::Positions { inputs, .. } => {
                inputs.get(map as usize).and_then(|input| input.first_block)
            }
            CheckpointInputs::Nothing | CheckpointInputs::Fetched { .. } => Some(0),
        }
    }

    pub(super) fn reject(&mut self, reason: &str, context: &TaskContext) {
        *self = CheckpointInputs::Nothing;
        reject(reason, context);
    }

    /// Returns the checkpoint of a merge, from which the body continues.
    pub(super) fn restore(&self, task: &ReduceTask) -> Option<PathBuf> {
        match self {
            CheckpointInputs::Positions { .. } => task.restore.clone(),
            CheckpointInputs::Nothing | CheckpointInputs::Fetched { .. } => None,
        }
    }

    /// Saves the fetched inputs. If a merge will be resumed, its checkpoint is kept instead: its position is
    /// worth more than the inputs.
    pub(super) fn save(
        &self,
        task: &ReduceTask,
        context: &TaskContext,
        fetched: Vec<(AttemptId, PathBuf)>,
    ) -> Result<SavedCheckpoint, TaskError> {
        let unsaved = |error: CheckpointError| {
            TaskError::retryable(format!("cannot save the checkpoint: {error}"))
                .at(FaultPlace::SharedStorage)
        };
        let mut directory =
            CheckpointDirectory::make(&task.checkpoint, task.durable).map_err(unsaved)?;
        let attempt = context.attempt();
        let mut counters = context.counters().values();
        let mut active_millis = context.active_millis();
        let checkpoint = match self {
            CheckpointInputs::Positions { checkpoint, .. } => {
                counters.merge(&checkpoint.counters);
                active_millis += checkpoint.active_millis;
                Checkpoint {
                    attempt,
                    counters,
                    active_millis,
                    ..(**checkpoint).clone()
                }
            }
            CheckpointInputs::Nothing | CheckpointInputs::Fetched { .. } => Checkpoint {
                attempt,
                stage: CheckpointStage::FetchInputs {
                    fetched: take_in(&mut directory, fetched).map_err(unsaved)?,
                },
                pieces: Vec::new(),
                counters,
                active_millis,
                user_state: None,
                format_state: Vec::new(),
            },
        };
        let bytes = directory.finish(&checkpoint).map_err(unsaved)?;
        Ok(SavedCheckpoint { bytes })
    }
}

/// Moves files into the checkpoint, unless an earlier one contains them.
fn take_in(
    directory: &mut CheckpointDirectory,
    fetched: Vec<(AttemptId, PathBuf)>,
) -> Result<Vec<FetchedInput>, CheckpointError> {
    let base = directory
        .path()
        .parent()
        .map(Path::to_owned)
        .unwrap_or_default();
    let mut inputs = Vec::with_capacity(fetched.len());
    for (attempt, path) in fetched {
        let saved = path
            .strip_prefix(&base)
            .ok()
            .and_then(Path::to_str)
            .map(str::to_owned);
        let (file, bytes) = match saved {
            Some(file) => (file, length_of(&path)?),
            None => {
                let file = format!("fetched-{attempt}.segment");
                let bytes = directory.take_in(&path, &file)?;
                (directory.name(&file), bytes)
            }
        };
        inputs.push(FetchedInput {
            attempt,
            file,
            bytes,
        });
    }
    Ok(inputs)
}

fn length_of(path: &Path) -> Result<u64, CheckpointError> {
    Ok(std::fs::metadata(path).at("inspect", path)?.len())
}

fn reject(reason: &str, context: &TaskContext) {
    print_error(format_args!(
        "{}: checkpoint unusable, starting over: {reason}",
        context.attempt()
    ));
    context.restore_refused(reason);
}

fn read_checkpoint(
    directory: &Path,
    task: &ReduceTask,
    maps: u32,
    context: &TaskContext,
) -> Result<CheckpointInputs, String> {
    let checkpoint =
        Checkpoint::read(directory, context.attempt().task).map_err(|error| error.to_string())?;
    match &checkpoint.stage {
        CheckpointStage::Map { .. } => Err("it belongs to a map".to_owned()),
        CheckpointStage::Reducing { inputs, .. } if inputs.len() != maps as usize => Err(format!(
            "it belongs to a reduce of {} inputs, not {maps}",
            inputs.len()
        )),
        CheckpointStage::Reducing { inputs, .. } => Ok(CheckpointInputs::Positions {
            inputs: inputs.clone(),
            checkpoint: Box::new(checkpoint),
        }),
        CheckpointStage::FetchInputs { fetched } => {
            let base = directory.parent().unwrap_or(Path::new(""));
            let mut files = Vec::with_capacity(fetched.len());
            for input in fetched {
                if input.attempt.task.index >= maps {
                    return Err(format!(
                        "it contains {}, but the job has {maps} maps",
                        input.attempt
                    ));
                }
                files.push((input.attempt, find(base, input, task.partition)?));
            }
            context.counters().add_all(&checkpoint.counters);
            context.add_active_millis(checkpoint.active_millis);
            context.restored();
            Ok(CheckpointInputs::Fetched { files })
        }
    }
}

/// Returns the file of an input, if it matches the fetched one.
fn find(base: &Path, input: &FetchedInput, partition: u32) -> Result<PathBuf, String> {
    let path = base.join(&input.file);
    let segment = Segment::open(&path).map_err(|error| error.to_string())?;
    segment
        .partition(partition)
        .map_err(|error| error.to_string())?;
    if (segment.label(), segment.file_len()) != (input.attempt.to_string().as_str(), input.bytes) {
        let label = segment.label();
        let bytes = segment.file_len();
        return Err(format!(
            "{} has {bytes} bytes of {label}, not {} of {}",
            path.display(),
            input.bytes,
            input.attempt
        ));
    }
    Ok(path)
}

//! Attempts with checkpoints in a store: the start checkpoint is fetched first, and the saved one is uploaded
//! last.

use std::path::Path;

use napreduce_engine::FaultPlace;
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{TaskDescription, TaskError, Work};

use crate::checkpoint::{Checkpoint, CheckpointObjects, ObjectsError};
use crate::runner::{Ended, MapResult};

/// Runs the work of an attempt; a checkpoint is in the store before it is reported.
pub(super) fn with_stored_checkpoints(
    description: &TaskDescription,
    work: impl FnOnce() -> Result<MapResult, TaskError>,
) -> Result<MapResult, TaskError> {
    let Some(prefix) = &description.stored_checkpoints else {
        return work();
    };
    let objects = CheckpointObjects::open(prefix).map_err(|reason| {
        TaskError::fatal(format!("cannot write output: {reason}")).at(FaultPlace::SharedStorage)
    })?;
    let (own, restore) = directories(&description.work);
    let attempt = description.attempt;
    let before = match restore.map(|directory| objects.fetch(directory)) {
        None => Vec::new(),
        Some(Ok(files)) => files,
        Some(Err(error @ ObjectsError::Store(_))) => {
            return Err(failed("cannot read the checkpoint", &error));
        }
        // The work then finds no checkpoint and reports that it starts over.
        Some(Err(error)) => {
            print_error(format_args!("{attempt}: {error}"));
            Vec::new()
        }
    };
    let worked = work();
    match &worked {
        Ok(Ended::Checkpointed(_)) => {
            let saved = objects.save(own, attempt, &before);
            saved.map_err(|error| failed("cannot save the checkpoint", &error))?;
        }
        Ok(Ended::Done { .. }) => {}
        Err(_) => {
            if let Some(damaged) = restore.filter(|directory| Checkpoint::is_set_aside(directory)) {
                objects
                    .set_aside(damaged)
                    .map_err(|error| failed("cannot disable the damaged checkpoint", &error))?;
            }
        }
    }
    worked
}

/// Returns the directories to save to and to restore from.
fn directories(work: &Work) -> (&Path, Option<&Path>) {
    match work {
        Work::Map(task) => (&task.checkpoint, task.restore.as_deref()),
        Work::Reduce(work) => (&work.task.checkpoint, work.task.restore.as_deref()),
    }
}

fn failed(what: &str, error: &ObjectsError) -> TaskError {
    TaskError::retryable(format!("{what}: {error}")).at(FaultPlace::SharedStorage)
}

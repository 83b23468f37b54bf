//! The work of a guest in rounds: each ends with the task, or with a checkpoint that the next round restores,
//! as another attempt would.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use napreduce_engine::FaultPlace;
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{Counter, FromTask, TaskError, WireError, whole_millis};
use napreduce_task::{
    Checkpoint, Definitions, Ended, Supervisor, TaskContext, TaskRunner, create_scratch,
    set_user_counters, user_counters,
};

use super::saves::{TaskCheckpoints, bytes_in};
use super::stored::StoredCheckpoints;
use super::watch::{Requests, Watch};
use super::{Guest, GuestError};
use crate::forms::GuestCheckpoints;

/// The directories and settings of a round.
pub(super) struct Round {
    pub(super) context: Arc<TaskContext>,
    /// An existing directory.
    pub(super) scratch: PathBuf,
    /// Path of the next checkpoint.
    pub(super) checkpoint: PathBuf,
    /// Checkpoint to restore.
    pub(super) restore: Option<PathBuf>,
    /// Whether checkpoints are synced to disk.
    pub(super) durable: bool,
}

/// Checkpointing of a guest.
pub(super) struct Saving {
    checkpoints: GuestCheckpoints,
    watch: Arc<Watch>,
}

impl Saving {
    /// Begins checkpointing; from now on SIGTERM triggers a checkpoint.
    pub(super) fn begin(checkpoints: &GuestCheckpoints) -> Result<Saving, GuestError> {
        let watch = Watch::begin(Duration::from_millis(checkpoints.interval_millis));
        let watch = watch.map_err(GuestError::io("handle signals"))?;
        Ok(Saving {
            checkpoints: checkpoints.clone(),
            watch,
        })
    }
}

impl Guest {
    /// Runs the task in rounds. Returns its output and the last round; `inputs` identifies the input of the
    /// task, so that a checkpoint of other input is not used.
    pub(super) fn work<T>(
        &self,
        definitions: &dyn Definitions,
        inputs: &str,
        body: impl Fn(&dyn TaskRunner, &Round) -> Result<Ended<T>, TaskError>,
    ) -> Result<(T, Arc<TaskContext>), GuestError> {
        if let Some(saving) = &self.saving {
            return self.work_in_rounds(saving, definitions, inputs, body);
        }
        let round = Round {
            context: self.context(true),
            scratch: self.arguments.scratch.clone(),
            checkpoint: self.scratch("checkpoint"),
            restore: None,
            durable: self.plan.durable,
        };
        match self.call(definitions, &round, body)? {
            Ended::Done { part } => Ok((part, round.context)),
            Ended::Checkpointed(_) => Err(unrequested().into()),
        }
    }

    fn work_in_rounds<T>(
        &self,
        saving: &Saving,
        definitions: &dyn Definitions,
        inputs: &str,
        body: impl Fn(&dyn TaskRunner, &Round) -> Result<Ended<T>, TaskError>,
    ) -> Result<(T, Arc<TaskContext>), GuestError> {
        let Saving { checkpoints, watch } = saving;
        let mut saves =
            TaskCheckpoints::open(checkpoints, self.attempt, inputs, &self.scratch("saved"))?;
        let counted = user_counters();
        let mut restore = saves.furthest()?;
        for number in 1_u64.. {
            let scratch = self.scratch(&format!("round-{number}"));
            create_scratch(&scratch)?;
            let context = self.context(number == 1);
            let checkpoint = saves.next();
            let round = Round {
                context,
                scratch,
                checkpoint,
                restore: restore.take(),
                durable: true,
            };
            listen(&round, watch, &saves);
            // The counters of a round are in its checkpoint.
            set_user_counters(&counted);
            if !watch.enter(&round.context) {
                return Err(GuestError::Terminated {
                    left: "its work is saved".to_owned(),
                });
            }
            if round.restore.is_none() {
                watch.schedule();
            }
            let ended = self.call(definitions, &round, &body);
            let requests = watch.leave();
            match ended {
                Ok(Ended::Done { part }) => {
                    watch.end();
                    return Ok((part, round.context));
                }
                Ok(Ended::Checkpointed(_)) if !requests.save => return Err(unrequested().into()),
                Ok(Ended::Checkpointed(_)) => match saves.complete() {
                    Ok(made) => restore = Some(made),
                    Err(error) => {
                        self.continue_unsaved(error, requests)?;
                        watch.switch_off();
                        // The checkpoint is of use to this process only.
                        restore = Some(saves.last_begun());
                    }
                },
                Err(error) => {
                    self.continue_unsaved(error, requests)?;
                    watch.switch_off();
                    restore = saves.furthest()?;
                }
            }
            // The next round does not need the rest.
            let _ = fs::remove_dir_all(&round.scratch);
        }
        Err(unrequested().into())
    }

    /// Returns the context of a round. The first one includes the time before it as work.
    fn context(&self, is_first: bool) -> Arc<TaskContext> {
        let context = TaskContext::new(self.attempt, self.plan.task_memory);
        if is_first {
            context.add_active_millis(whole_millis(self.began.elapsed()));
        }
        Arc::new(context)
    }

    /// Handles an error of saving: unsaved work is repeated from the previous checkpoint and is not a failure
    /// of the task. Any other error is.
    fn continue_unsaved(&self, error: TaskError, requests: Requests) -> Result<(), GuestError> {
        if !requests.save || error.place != FaultPlace::SharedStorage {
            return Err(error.into());
        }
        if requests.end {
            return Err(GuestError::Terminated {
                left: error.to_string(),
            });
        }
        print_error(format_args!(
            "{}: continues from its last checkpoint without further checkpoints: {error}",
            self.attempt
        ));
        Ok(())
    }
}

/// Observes whether a round restores its checkpoint.
fn listen(round: &Round, watch: &Arc<Watch>, saves: &TaskCheckpoints) {
    let from = round.restore.clone().map(|directory| RestoredCheckpoint {
        bytes: bytes_in(&directory),
        is_of_other_process: saves.is_of_other_process(&directory),
        stored: saves.stored(),
        directory,
    });
    let listener = RestoreListener {
        watch: Arc::clone(watch),
        context: Arc::downgrade(&round.context),
        from,
    };
    round.context.gate().attach(Box::new(listener));
}

/// The checkpoint that a round restores.
struct RestoredCheckpoint {
    directory: PathBuf,
    bytes: u64,
    is_of_other_process: bool,
    stored: Option<StoredCheckpoints>,
}

/// The task's channel in place of a worker.
struct RestoreListener {
    watch: Arc<Watch>,
    context: Weak<TaskContext>,
    from: Option<RestoredCheckpoint>,
}

impl Supervisor for RestoreListener {
    fn tell(&self, message: &FromTask) -> Result<(), WireError> {
        let (Some(from), Some(context)) = (&self.from, self.context.upgrade()) else {
            return Ok(());
        };
        match message {
            FromTask::Restored => {
                let counters = context.counters();
                counters.add(Counter::Checkpoints, 1);
                counters.add(Counter::CheckpointBytes, from.bytes);
                counters.add(
                    Counter::CheckpointRestores,
                    u64::from(from.is_of_other_process),
                );
            }
            // Do not retry it.
            FromTask::RestoreRefused { .. } => {
                if let Err(error) = Checkpoint::set_aside(&from.directory) {
                    print_error(format_args!("{}: {error}", context.attempt()));
                }
                let in_store = from
                    .stored
                    .as_ref()
                    .map(|stored| stored.set_aside(&from.directory));
                if let Some(Err(error)) = in_store {
                    print_error(format_args!("{}: {error}", context.attempt()));
                }
            }
            _ => return Ok(()),
        }
        self.watch.schedule();
        Ok(())
    }

    /// Messages are handled immediately.
    fn catch_up(&self) {}
}

/// Only a guest's own watch requests checkpoints.
fn unrequested() -> TaskError {
    TaskError::fatal("the task saved a checkpoint without a request; please report it")
}

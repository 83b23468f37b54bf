//! The inside of a task process: it runs the user's code for one attempt, with gate and boundaries,
//! checkpoint files and the fetching of reduce inputs. Also starts, stops and watches such processes.
//! `napreduce` implements [`TaskRunner`].

mod checkpoint;
mod command;
mod context;
mod fetch_inputs;
mod object_stores;
mod process;
mod runner;
mod task_process;
mod user_counters;

pub use checkpoint::{
    Checkpoint, CheckpointDirectory, CheckpointError, CheckpointObjects, CheckpointStage, FetchedInput,
    NeededInput, ObjectsError, OutputPiece, StoredFile,
};
pub use command::{CommandError, CommandLine, FAILED_PART, RunningCommand, TakeOutput};
pub use context::{
    Ask, Boundary, Position, PositionUnit, Presence, ReadPosition, Script, Supervisor, SuspendHooks,
    TaskContext, TaskProgress, progress,
};
pub use fetch_inputs::{Fetch, FetchInputs, FetchOrder, FetchedInputs, InputEvent, StartFetch};
pub use object_stores::{object_stores, set_object_stores};
pub use process::*;
pub use runner::{Definitions, Ended, MapResult, ReduceResult, SavedCheckpoint, TaskRunner};
pub use task_process::{
    TaskProcessError, catch_panics, create_scratch, die_with, final_counters, prepare_part,
    task_process_main, task_process_requested,
};
pub use user_counters::{UserCounter, counter, set_user_counters, user_counters};

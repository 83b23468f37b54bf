//! The inside of a task process: it runs the user's code for one attempt, with gate and boundaries,
//! checkpoint files and the fetching of reduce inputs. `napreduce-local` starts, stops and watches such
//! processes; `napreduce` implements [`TaskRunner`].

// Musl passes no arguments to initializers, and keeps the thread id where only its own `fork` can set it.
#[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
mod before_main;
mod checkpoint;
mod command;
mod context;
mod descendants;
mod fetch_inputs;
mod heap;
mod marker;
mod object_stores;
mod paging;
mod passing;
mod proc;
mod runner;
mod signals;
mod slice;
mod stop_signals;
mod task_process;
mod user_counters;
mod watcher;

#[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
pub use before_main::serve_forks_before_main;
pub use checkpoint::{
    Checkpoint, CheckpointDirectory, CheckpointError, CheckpointObjects, CheckpointStage,
    FetchedInput, NeededInput, ObjectsError, OutputPiece, StoredFile,
};
pub use command::{
    CommandError, CommandLine, CommandPlace, FAILED_PART, RunningCommand, TakeOutput,
};
pub use context::{
    Ask, Boundary, InFlight, Position, PositionUnit, Presence, ReadPosition, Script, Supervisor,
    SuspendHooks, TaskContext, TaskProgress, progress,
};
pub use descendants::{Descendant, Descendants, descendants_of};
pub use fetch_inputs::{Fetch, FetchInputs, FetchSettings, FetchedInputs, InputEvent, StartFetch};
pub use marker::{
    FORK_MARKER, FORK_SERVER_READY, MARKER, PRESTART_NUMBER_DIGITS, PRESTART_VARIABLE,
};
pub use object_stores::{object_stores, set_object_stores};
pub use paging::{PagedProcess, Paging};
pub use passing::send_with_descriptors;
pub use proc::{Stat, bytes_of, children_of, stat_of};
pub use runner::{Definitions, Ended, MapResult, ReduceResult, SavedCheckpoint, TaskRunner};
pub use signals::{exit_when_told, install_handler, pass_on, signal_name, wake_pair};
pub use slice::run_soon_when_woken;
pub use stop_signals::StopSignals;
pub use task_process::{
    TaskProcessError, catch_panics, catch_refusal, create_scratch, die_with, final_counters,
    prepare_part, refusal, refuse, run_on_thread, task_process_main, task_process_requested,
};
pub use user_counters::{UserCounter, counter, set_user_counters, user_counters};
pub use watcher::{WORKER_VARIABLE, Watcher, directories_of_workers, end_processes_of};

/// Does nothing: programs for this system cannot be fork servers.
#[cfg(not(all(target_env = "gnu", target_pointer_width = "64")))]
pub fn serve_forks_before_main() {}

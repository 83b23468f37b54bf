//! Running a job program on an engine of somebody else, such as Spark or Hadoop: its tasks are guests there.
//!
//! Owns all that is different then: how an engine is found and started, what passes between it and the program
//! that submits, what a guest does around its task, and the forms of what they say to each other
//! (docs/guests.md). Does not own the work of a task nor the commit of an output, which are those of every job,
//! nor the command line (`napreduce`, of which this is the feature `guests`).

mod choice;
mod forms;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod hadoop;
mod spark;
mod submit;
mod task;

use std::process::ExitCode;

use napreduce_task::Definitions;

pub use choice::{EngineError, EngineFlags, EngineKind};
pub use submit::GuestEngine;

/// Whether an engine has started this process: as a guest, or to be between it and its guests.
pub fn requested() -> bool {
    task::guest_requested() || hadoop::is_requested()
}

/// Does what it was started for.
pub fn run(definitions: &dyn Definitions) -> ExitCode {
    if task::guest_requested() {
        task::guest_main(definitions);
    }
    hadoop::main()
}

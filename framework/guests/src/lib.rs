//! Running a job program on an external engine, such as Spark, with its tasks as guests. This crate
//! is the feature `guests` of `napreduce`. It starts the engine, submits jobs, runs guest tasks, and defines
//! the messages between them (docs/spark.md).

mod choice;
mod forms;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod spark;
mod submit;
mod task;

use napreduce_task::Definitions;

pub use choice::{EngineError, EngineFlags, EngineKind};
pub use submit::GuestEngine;

/// Returns whether an engine has started this process as a guest.
pub fn requested() -> bool {
    task::guest_requested()
}

/// Runs the guest and ends this process.
pub fn run(definitions: &dyn Definitions) -> ! {
    task::guest_main(definitions)
}

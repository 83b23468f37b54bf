//! The input of a reduce task: one partition of every map task's segment, merged and split into groups.

mod error;
mod input;
mod largest;
mod opening;
mod settings;
mod sources;

pub use error::ReduceError;
pub use input::{KeyValue, ReduceInput};
pub use settings::{READ_MAX, ReduceSettings, ReduceStatistics, SavedReduceInput, SavedSource};

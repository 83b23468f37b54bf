//! What a reduce task reads: one partition of every map task's segment, merged and cut into groups.
//!
//! Owns opening, intermediate merges and groups. Does not own fetching segments from other hosts, nor the
//! user's reducer.

mod error;
mod input;
mod opening;
mod saved;
mod settings;
mod source;
mod sources;

pub use error::ReduceError;
pub use input::{KeyValue, ReduceInput, ReduceStatistics};
pub use saved::{SavedReduceInput, SavedSource};
pub use settings::{READ_MAX, ReduceSettings};

//! Progress of a job for people.
//!
//! Owns the numbers of a moment, the text made of them and where it appears. Does not own where the numbers come from
//! (`coordinator`) nor the summary at the end (the framework, from the report).

mod display;
mod line;
mod snapshot;

pub(crate) use display::ProgressDisplay;
pub use snapshot::{JobProgress, PhaseProgress};

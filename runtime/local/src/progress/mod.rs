//! The display of a job's progress.

mod display;
mod line;

pub use display::{ProgressDisplay, ProgressMode};

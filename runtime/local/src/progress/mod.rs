//! Progress of a job for people.
//!
//! Owns the text made of the numbers of a moment, and where it appears. Does not own where the numbers come
//! from (`coordinator`) nor the summary at the end (the framework, from the report).

mod display;
mod line;

pub use display::{ProgressDisplay, ProgressMode};

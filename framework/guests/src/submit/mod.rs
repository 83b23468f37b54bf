//! Submission of jobs to an external engine, whose tasks are guests. The submitter claims the output, writes
//! plans, receives events, commits each part once and discards everything else. The engine is a separate
//! process with messages in files and lines (docs/guests.md).
//!
//! ```text
//! DIR/engine.json                       who submits, and the settings that were given for the engine
//! DIR/jobs/<n>.json                     a job to run, complete when it is there
//! DIR/jobs/<n>.cancel                   it is to be ended
//! DIR/napreduce-...                     program, plans and side files, under names that no other job has
//! DIR/end                               nothing more is to be run
//! DIR/log                               what the engine prints that is not for us
//! standard output of the engine         RS, one JSON object, newline: an event
//! ```

mod checkpoints;
mod directory;
mod engine;
mod outcome;
mod run;

pub use checkpoints::GuestCheckpointSettings;
pub use engine::{GuestEngine, GuestEngineSettings};

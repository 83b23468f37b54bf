//! Submission of jobs to an external engine, whose tasks are guests. The submitter claims the output, writes
//! plans, receives events, commits each part once and discards everything else. The engine is a separate
//! process with messages in files and lines (docs/spark.md).
//!
//! ```text
//! DIR/engine.json                       the submitting process, and settings of the engine
//! DIR/jobs/<n>.json                     a job to run; complete once it exists
//! DIR/jobs/<n>.cancel                   cancels the job
//! DIR/napreduce-...                     program, plans and side files, under names unique to the job
//! DIR/end                               no more jobs follow
//! DIR/log                               other output of the engine
//! standard output of the engine         RS, one JSON object, newline: an event
//! ```

mod checkpoints;
mod directory;
mod engine;
mod outcome;
mod run;

pub use checkpoints::GuestCheckpointSettings;
pub use engine::{GuestEngine, GuestEngineSettings};

//! The output of task processes.
//!
//! A process writes directly to two files, so that its last output survives a crash. The files are reused by
//! later attempts: most print nothing, and creating two files for each would cost more than the rest of its
//! start. When an attempt ends, its output is appended to the job's log.
//!
//! ```text
//! logs/job_0001/attempts.log       output of ended attempts, with a heading each
//!               attempts.index     the position of each attempt in it
//!               running/0.attempt  the attempt that writes 0.stdout and 0.stderr
//! ```
//!
//! `job` opens and appends files, `index` defines the index, `bounded` limits one stream, `shelf` limits all
//! logs.

mod bounded;
mod index;
mod job;
mod shelf;
#[cfg(test)]
mod tests;

pub(super) use shelf::{LogBounds, LogShelf};

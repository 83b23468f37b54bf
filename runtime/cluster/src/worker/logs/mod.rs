//! What task processes print.
//!
//! Owns the files of a job's logs and their bounds. Does not own where they are (`paths`) nor who
//! serves them (`shuffle`).
//!
//! A process prints to two files of its own, since nobody should stand between it and what it says
//! when it dies. They are used again by the attempts after it: most print nothing, and making two
//! files for each would cost more than the rest of its start. What was printed is copied behind what
//! the attempts before it printed.
//!
//! ```text
//! logs/job_0001/attempts.log       what attempts have printed that have ended, under a heading each
//!               attempts.index     where in it what each has printed is
//!               running/0.attempt  who prints to 0.stdout and 0.stderr now
//! ```
//!
//! Files: `job` opens and keeps, `index` is the form of the index, `bounded` the bound of one stream, `shelf`
//! that of all.

mod bounded;
mod index;
mod job;
mod shelf;
#[cfg(test)]
mod tests;

pub(super) use shelf::{LogBounds, LogShelf};

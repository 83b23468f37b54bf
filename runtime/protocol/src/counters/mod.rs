//! Counters: what tasks count, and how counts add up to a job's.
//!
//! Owns the built-in names, the process-wide registry of the user's own and the summing. Does not own when a
//! task's counts are taken over: only those of attempts whose result counts are (`coordinator`).

mod built_in;
mod values;

pub use built_in::{Counter, Counters};
pub use values::CounterValues;

//! napreduce: MapReduce in Rust whose tasks can nap.
//!
//! A job is a function from parameters to [`Job`]; its closures run in task processes, which are this same program
//! re-executed. One `main` makes the program driver, local runner and task process:
//!
//! ```no_run
//! use napreduce::{Emit, Job, words};
//!
//! fn wordcount(_: &()) -> Job {
//!     Job::text()
//!         .map(|line: &str, out: &mut Emit<String, u64>| {
//!             for word in words(line) {
//!                 out.emit(word, 1);
//!             }
//!         })
//!         .combine(|count, more| *count += more)
//!         .reduce(|word, counts, out| out.emit(word, counts.sum()))
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     napreduce::main(wordcount)
//! }
//! ```
//!
//! Owns what a user imports. Does not own how attempts run (`napreduce-live`), how records are sorted and merged
//! (`napreduce-data`) nor the rules about tasks and slots (`napreduce-core`).

#[cfg(not(target_os = "linux"))]
compile_error!(
    "napreduce runs on Linux only, from 5.4 on: how tasks are watched and suspended no other system offers"
);

// The derive macros name this crate by its own name, here too.
extern crate self as napreduce;

pub mod builder;
pub mod codec;
mod counter;
mod emit;
pub mod input;
#[cfg(doctest)]
mod must_use;
pub mod output;
pub mod program;
pub mod records;
mod settings;
mod state;
pub mod streaming;
pub mod task;
#[cfg(any(doc, feature = "testing"))]
pub mod testing;
mod user_code;
mod values;
mod words;

#[doc(inline)]
pub use builder::Job;
#[doc(inline)]
pub use codec::{Key, Value};
pub use emit::Emit;
pub use napreduce_live::{TaskError, counter, progress};
#[doc(inline)]
pub use output::Output;
#[doc(inline)]
pub use program::{Driver, Program, main};
pub use state::Save;
pub use user_code::{Mapper, Reducer, TaskInfo};
pub use values::Values;
pub use words::words;

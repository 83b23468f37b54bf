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

#![warn(missing_docs)]

#[cfg(not(target_os = "linux"))]
compile_error!(
    "napreduce runs on Linux only, from 5.4 on: how tasks are watched and suspended no other system offers"
);

// The derive macros name this crate by its own name, here too.
extern crate self as napreduce;

mod codec;
mod counter;
mod emit;
mod input;
mod job;
#[cfg(doctest)]
mod must_use;
mod outcome;
mod output;
mod program;
mod records;
mod state;
pub mod streaming;
mod task;
pub mod testing;
mod text_field;
mod values;
mod words;

#[doc(hidden)]
pub use codec::derive_support;
pub use codec::{DecodeError, GroupBy, Key, Scratch, Serde, Value};
pub use emit::Emit;
pub use input::{
    ByteLineReader, ByteLines, Compression, FixedReader, FixedRecords, InputError, InputFile, InputFormat,
    ReadPosition, RecordReader, Split, Splitting, TextLineReader, TextLines, WholeFile, WholeFileReader,
    WholeFiles,
};
pub use job::{
    CombineStage, Fold, Job, MapClosure, MapStage, Mapper, NoCombine, ReduceClosure, Reducer, Source,
};
pub use napreduce_live::{
    ByteSize, ByteSizeError, JobError, JobReport, PartReport, TaskError, UserCounter, counter, progress,
};
pub use outcome::Outcome;
pub use output::{FixedBytes, Output, OutputFormat, Text};
pub use program::{Driver, Error, JobRun, Parameters, Program, main, side_file};
pub use records::{Records, RecordsReader, TypedRecords};
pub use state::Save;
pub use task::TaskInfo;
pub use text_field::TextField;
pub use values::Values;
pub use words::{Words, words};

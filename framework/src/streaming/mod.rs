//! Any program as mapper and reducer: commands that read lines and write lines.
//!
//! Owns what the lines mean, which is what they mean in Hadoop's streaming, and the job that `nap streaming`
//! runs. Does not own the processes (live runtime).
//!
//! A mapper reads the lines of its split on standard input and writes lines of `key TAB value`. They are
//! sorted by the bytes of the key, and a reducer reads all of a partition, in the same form. What it writes
//! is the output, line by line. A line without a TAB is a key with an empty value. There is one process for
//! each attempt, started by `sh -c` in a directory of its own, where it finds the side files of the job by
//! their names.
//!
//! ```no_run
//! use napreduce::streaming::{CommandMapper, CommandReducer};
//! use napreduce::{Emit, Job};
//!
//! /// Both sides are commands.
//! fn words(_: &()) -> Job {
//!     Job::bytes().mapper(CommandMapper::new("tr -s ' ' '\\n'")).reducer(CommandReducer::new("uniq -c"))
//! }
//!
//! /// One of them is.
//! fn by_length(_: &()) -> Job {
//!     Job::bytes()
//!         .map(|line: &[u8], out: &mut Emit<Vec<u8>, Vec<u8>>| out.emit(line.len().to_string().as_bytes(), line))
//!         .reducer(CommandReducer::new("cut -f 1 | uniq -c"))
//! }
//! # let _ = (words, by_length);
//! ```
//!
//! A job with a command can be suspended (the command is stopped with its task), killed and waited for, and
//! not checkpointed: nobody can save the state of a program that does not know of it. A program that speaks
//! [`frames`] does.

mod commands;
mod conversation;
pub mod frames;
mod lines;
mod mapper;
mod part;
mod place;
mod reducer;
mod taken_along;

pub use commands::{Commands, add_to, job, main, map_only};
pub use frames::FramesProgram;
pub use mapper::CommandMapper;
pub use reducer::CommandReducer;

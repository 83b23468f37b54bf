//! Commands as mappers and reducers, with the line format of Hadoop Streaming.
//!
//! A mapper reads the lines of its split on standard input and writes lines of `key TAB value`. They are
//! sorted by the bytes of the key, and a reducer reads all of a partition in the same form. Its output lines
//! are the output of the job. A line without a TAB is a key with an empty value. Each attempt runs one
//! process, started by `sh -c` in its own directory, which contains the side files of the job.
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
//! A job with a command can be suspended (the command is stopped with its task), killed and left to finish,
//! but not checkpointed: the state of a program cannot be saved without its help. Programs that use
//! [`frames`] can be checkpointed.

mod commands;
mod conversation;
pub mod frames;
mod lines;
mod mapper;
mod place;
mod reducer;
mod shipping;

pub use commands::{Commands, add_to, job, main, map_only};
pub use frames::FramesProgram;
pub use mapper::CommandMapper;
pub use reducer::CommandReducer;

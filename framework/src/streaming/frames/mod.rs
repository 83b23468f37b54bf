//! Programs in any language as mappers and reducers that can be checkpointed. They exchange frames with the
//! task; there is a module for Python (`python` at the top of the repository).
//!
//! A frame is the length of its payload (`u32`, big-endian), a letter and the payload. There is one process
//! for each attempt, which reads frames from standard input and writes them to standard output:
//!
//! | to the program | from the program |
//! |---|---|
//! | `H` what for, and the state to go on from | `H` what its job is |
//! | `R` records of a map | `O` pairs of key and value, or lines of a part file |
//! | `G` a key, `V` values of it, `g` no more of them | `C` counters, `L` a line for the log, `X` it has failed |
//! | `S` the state is wanted | `D` the state, or `d` there is none |
//! | `E` there is no more | `F` it is done |
//!
//! Unlike a command that reads lines, such a program can be asked for its state, between two records or
//! groups: then its tasks are checkpointed as any others. `docs/python.md` has what the payloads hold.
//!
//! ```
//! use napreduce::streaming::frames::{Frame, FrameDecoder, FrameKind};
//!
//! let mut decoder = FrameDecoder::new(1 << 20);
//! decoder.push(&Frame { kind: FrameKind::Log, payload: b"half of it is done" }.encoded()?);
//! assert_eq!(decoder.next_frame()?.map(|frame| frame.kind), Some(FrameKind::Log));
//! # Ok::<(), napreduce::streaming::frames::FrameError>(())
//! ```

mod asking;
mod batch;
mod conversation;
mod frame;
mod frames_program;
mod hello;
mod job;
mod mapper;
mod number;
mod places;
mod reducer;
mod talk;

pub use frame::{Frame, FrameDecoder, FrameError, FrameKind};
pub use frames_program::FramesProgram;
pub use job::{FramesArguments, add_to, job, main};

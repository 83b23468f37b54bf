//! Programs in any language as mappers and reducers that can be checkpointed. They exchange frames with the
//! task; there is a module for Python (`python` at the top of the repository).
//!
//! A frame is the length of its payload (`u32`, big-endian), a letter and the payload. Each attempt runs one
//! process, which reads frames from standard input and writes frames to standard output:
//!
//! | to the program | from the program |
//! |---|---|
//! | `H` its role, and the state to restore | `H` the description of its job |
//! | `R` records of a map | `O` pairs of key and value, or lines of a part file |
//! | `G` a key, `V` its values, `g` the end of the group | `C` counters, `L` a log line, `P` progress, `X` a failure |
//! | `S` a request for the state | `D` the state, or `d` if there is none |
//! | `E` the end of input | `F` the end of output |
//!
//! Unlike a command that reads lines, such a program can save its state between two records or groups, so its
//! tasks can be checkpointed. `docs/other-languages.md` describes the payloads.
//!
//! ```
//! use napreduce::streaming::frames::{Frame, FrameDecoder, FrameKind};
//!
//! let mut decoder = FrameDecoder::new(1 << 20);
//! decoder.push(&Frame { kind: FrameKind::Log, payload: b"half of it is done" }.encoded()?);
//! assert_eq!(decoder.next_frame()?.map(|frame| frame.kind), Some(FrameKind::Log));
//! # Ok::<(), napreduce::streaming::frames::FrameError>(())
//! ```

mod batch;
mod conversation;
mod frame;
mod hello;
mod job;
mod mapper;
mod number;
mod places;
mod program;
mod receiver;
mod reducer;

pub use frame::{Frame, FrameDecoder, FrameError, FrameKind};
pub use job::{FramesArguments, add_to, job, main};
pub use program::FramesProgram;

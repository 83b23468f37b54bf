//! Checkpoints of attempts: one file with the description, and the data files that it names.
//!
//! ```text
//! .../checkpoints/job_0001_r_0003.1/checkpoint     the description, written last
//! .../checkpoints/job_0001_r_0003.1/part           the data files that it names
//! .../checkpoints/job_0001_r_0003.2/checkpoint     names files of its own and of .1
//!
//! checkpoint   magic "NAPCKPT\n", version u32, three lengths u64, description (JSON), state of the user's code,
//!              state of the output format, crc32c u32 of all before it; integers are little-endian
//! ```
//! If workers share no directory, the files are also stored as objects (`objects`). A checkpoint that cannot
//! be read is ignored; its task starts from scratch.

mod choice;
mod description;
mod error;
mod file;
mod objects;
mod placement;
#[cfg(test)]
mod tests;

pub use description::{Checkpoint, CheckpointStage, FetchedInput, NeededInput, OutputPiece};
pub use error::CheckpointError;
pub(crate) use error::FileResult;
pub use objects::{CheckpointObjects, ObjectsError, StoredFile};
pub use placement::CheckpointDirectory;

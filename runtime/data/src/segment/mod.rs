//! Segment files: sorted, partitioned, indexed, checksummed, immutable once sealed.
//!
//! Owns their format, writing, validation and reading. Does not own sorting (`sort`), merging (`merge`) nor who serves
//! them to other hosts. The same format holds the runs that a task spills.

mod check;
mod cursor;
mod error;
mod format;
mod reader;
mod seal;
mod writer;

pub use cursor::{Cursor, Position};
pub use error::SegmentError;
pub use format::PartitionEntry;
pub use reader::Segment;
pub use writer::{SealedSegment, WriteError};

pub(crate) use format::{BLOCK_BYTES, check_label};
pub(crate) use seal::Seal;
pub(crate) use writer::{SegmentShape, SegmentWriter};

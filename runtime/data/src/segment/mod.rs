//! Segment files: sorted, partitioned, indexed, checksummed, immutable once sealed.
//!
//! Owns their format, writing, validation and reading. Does not own sorting (`sort`), merging (`merge`) nor
//! who serves them to other hosts. The same format holds the runs that a task spills.

mod assembly;
mod check;
mod consolidated;
mod cursor;
mod destination;
mod error;
mod extent;
mod format;
mod index;
mod mapped;
mod read_ahead;
mod reader;
mod seal;
mod writer;

pub use assembly::{AssemblyError, SegmentAssembly};
pub use consolidated::{ConsolidationError, consolidate};
pub use cursor::{Cursor, SegmentPosition};
pub use error::SegmentError;
pub use extent::PartitionExtent;
pub use format::{BlockCompression, PartitionEntry};
pub use index::SegmentIndex;
pub use reader::Segment;
pub use writer::{SealedSegment, WriteError};

pub(crate) use consolidated::read_consolidated;
pub(crate) use format::{BLOCK_BYTES, check_label};
pub(crate) use seal::Seal;
pub(crate) use writer::{SegmentShape, SegmentWriter};

//! Segment files: sorted, partitioned, indexed, checksummed, immutable once sealed. Spilled runs have the same
//! format.

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
pub use error::{SegmentError, WriteError};
pub use extent::PartitionExtent;
pub use format::{BlockCompression, PartitionEntry};
pub use index::SegmentIndex;
pub use reader::Segment;
pub use writer::SealedSegment;

pub(crate) use consolidated::read_consolidated;
pub(crate) use format::{BLOCK_BYTES, check_label};
pub(crate) use seal::Seal;
pub(crate) use writer::{SegmentShape, SegmentWriter};

//! Side files, as whoever submits a job names them.

use std::path::PathBuf;

/// Bytes of a side file unless said otherwise.
pub const SIDE_FILE_BYTES_MAX: u64 = 4 << 30;

/// A file that a job takes along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideFileSource {
    /// Where it is now.
    pub path: PathBuf,
    /// The name under which tasks find it: one component.
    pub name: String,
}

//! Side files as named by the submitter of a job.

use std::path::PathBuf;

/// Default limit on the size of a side file, in bytes.
pub const SIDE_FILE_BYTES_MAX: u64 = 4 << 30;

/// A file that is distributed with a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideFileSource {
    /// The source path.
    pub path: PathBuf,
    /// The name under which tasks find the file: a single path component.
    pub name: String,
}

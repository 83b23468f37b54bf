//! Errors of storing, finding or receiving a blob.

use std::io;

use napreduce_protocol::Digest;
use thiserror::Error;

/// Why a blob operation failed.
#[derive(Debug, Error)]
pub(crate) enum BlobError {
    #[error("cannot {doing}: {source}")]
    Io { doing: String, source: io::Error },
    #[error("blob {digest} was to have {expected} bytes, but {found} came; send it again")]
    Length { digest: Digest, expected: u64, found: u64 },
    #[error("blob {digest} arrived as {found}; it was changed while it was sent, so send it again")]
    Digest { digest: Digest, found: Digest },
    #[error(
        "blob {digest} of {bytes} bytes does not fit: of the {limit} bytes that {directory} may hold, {held} are in \
         use by jobs; give it more or wait for a job to end"
    )]
    Full { digest: Digest, bytes: u64, limit: u64, held: u64, directory: String },
    /// The writer thread ended early.
    #[error("the writing of blob {digest} was broken off")]
    BrokenOff { digest: Digest },
}

impl BlobError {
    pub(super) fn io(doing: impl Into<String>, source: io::Error) -> BlobError {
        BlobError::Io { doing: doing.into(), source }
    }

    /// Whether the sender of the blob caused the error, as opposed to this machine.
    pub(crate) fn is_senders(&self) -> bool {
        matches!(self, BlobError::Length { .. } | BlobError::Digest { .. })
    }
}

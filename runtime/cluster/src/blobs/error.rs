//! Errors of storing, finding or receiving a blob.

use std::io;

use napreduce_protocol::Digest;
use thiserror::Error;

/// An error of a blob operation.
#[derive(Debug, Error)]
pub(crate) enum BlobError {
    #[error("cannot {doing}: {source}")]
    Io { doing: String, source: io::Error },
    #[error("blob {digest} arrived with {found} bytes instead of {expected}; send it again")]
    Length {
        digest: Digest,
        expected: u64,
        found: u64,
    },
    #[error("blob {digest} arrived as {found}: it changed while it was sent; send it again")]
    Digest { digest: Digest, found: Digest },
    #[error(
        "blob {digest} of {bytes} bytes does not fit into {directory}: jobs use {held} of {limit} bytes; raise the \
         limit or wait for a job to end"
    )]
    Full {
        digest: Digest,
        bytes: u64,
        limit: u64,
        held: u64,
        directory: String,
    },
    /// The writer thread ended early.
    #[error("writing blob {digest} was interrupted")]
    Interrupted { digest: Digest },
}

impl BlobError {
    pub(super) fn io(doing: impl Into<String>, source: io::Error) -> BlobError {
        BlobError::Io {
            doing: doing.into(),
            source,
        }
    }

    /// Returns whether the sender of the blob caused the error, as opposed to this machine.
    pub(crate) fn is_senders(&self) -> bool {
        matches!(self, BlobError::Length { .. } | BlobError::Digest { .. })
    }
}

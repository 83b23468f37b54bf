//! Content-addressed storage for programs and side files: blobs are named by their digest, verified, and
//! evicted beyond a size limit.

#[cfg(all(test, feature = "daemon"))]
mod crashes;
mod digest;
#[cfg(feature = "daemon")]
mod error;
mod executable;
#[cfg(feature = "daemon")]
mod fetch;
mod outlet;
#[cfg(feature = "daemon")]
mod stamp;
#[cfg(feature = "daemon")]
mod store;
#[cfg(all(test, feature = "daemon"))]
mod tests;
#[cfg(feature = "daemon")]
mod writer;

pub(crate) use digest::digest_of;
#[cfg(feature = "daemon")]
pub(crate) use error::BlobError;
pub(crate) use executable::program_architecture;
#[cfg(feature = "daemon")]
pub(crate) use fetch::{FetchError, fetch};
pub(crate) use outlet::chunks_of;
#[cfg(feature = "daemon")]
pub(crate) use stamp::Stamp;
#[cfg(feature = "daemon")]
pub(crate) use store::{BlobStore, PinnedBlob};
#[cfg(feature = "daemon")]
pub(crate) use writer::BlobIntake;

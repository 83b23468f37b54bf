//! Blobs: programs and side files, named by the digest of their bytes.
//!
//! Owns how they are named, kept within a bound, taken in and verified. What is in them nobody here looks at,
//! except to say for which processor a program is.

mod error;
mod executable;
mod fetch;
mod outlet;
mod stamp;
mod store;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use error::BlobError;
pub(crate) use executable::program_architecture;
pub(crate) use fetch::{FetchError, fetch};
pub(crate) use outlet::chunks_of;
pub(crate) use stamp::Stamp;
pub(crate) use store::{BlobStore, PinnedBlob};
pub(crate) use writer::BlobIntake;

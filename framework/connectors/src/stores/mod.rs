//! Objects of S3, Google Cloud Storage and Azure, and files of HDFS, as inputs and outputs.
//!
//! Calls block; requests run on two threads that start with the first request. Everything read from an object
//! is of one version. Credentials come from the environment by each service's usual rules and never appear in
//! errors.

#[cfg_attr(
    not(any(feature = "s3", feature = "gcs", feature = "azure")),
    allow(dead_code, unused_imports, reason = "HDFS alone signs nothing")
)]
mod connection;
#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
mod crypto;
mod error;
mod failure;
mod figures;
#[cfg(feature = "hdfs")]
mod hdfs;
#[cfg(feature = "hdfs")]
mod hdfs_files;
mod listing;
mod object;
mod object_stores;
mod requests;
mod small;
mod stream;
mod threads;
mod upload;
mod upload_listing;
mod uri;

pub use error::StorageError;
pub use figures::{StorageFigures, take_figures};
pub use listing::{FoundObject, list, stat};
pub use object::StoredObject;
pub use object_stores::stores_of;
pub use stream::{ObjectStream, REQUEST_BYTES};
pub use uri::ObjectUri;

//! The directory that makes a cluster of one machine need no address: its secret, its coordinator, its files.
//!
//! Owns where things are in it, who may enter, and that one coordinator and one `nap up` run for it. Does not
//! own what the parts keep in their sub-directories.

mod coordinator;
mod error;
mod lock;
mod place;
#[cfg(test)]
mod tests;

pub use coordinator::CoordinatorRecord;
pub use error::ClusterDirectoryError;
pub use lock::DirectoryLock;
pub use place::ClusterDirectory;

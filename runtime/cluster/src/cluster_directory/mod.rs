//! The cluster directory: secret, coordinator record and files of a cluster, so that a local cluster needs no
//! address. Checks access and locks.

mod coordinator;
mod error;
mod lock;
mod place;
#[cfg(test)]
mod tests;

pub use coordinator::CoordinatorRecord;
pub use error::ClusterDirectoryError;
pub use lock::{DirectoryLock, RunningProcess};
pub use place::ClusterDirectory;

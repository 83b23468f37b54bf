//! The interface between the runtime, which commits output to object stores, and the optional crate that
//! implements them. Objects have full names: `s3://bucket/key`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A complete upload that becomes visible when it is completed, by any process with this value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingUpload {
    /// Its id in the store.
    pub id: String,
    /// Ids of its parts, in order.
    pub parts: Vec<String>,
}

/// An incomplete upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredUpload {
    /// The target object.
    pub object: String,
    /// Its id in the store.
    pub id: String,
}

/// An existing object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectEntry {
    /// Its name.
    pub object: String,
    /// Bytes.
    pub bytes: u64,
    /// Its version.
    pub version: String,
    /// When it was written by the store's clock, in seconds since 1970.
    pub modified: i64,
}

/// The precondition of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutCondition<'a> {
    /// Unconditional.
    Always,
    /// The object must not exist.
    Absent,
    /// The object must have this version.
    Version(&'a str),
}

/// Statistics of this process's writes to stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WrittenFigures {
    /// Write requests, including failed ones.
    pub requests: u64,
    /// Bytes of stored objects.
    pub bytes: u64,
    /// Repeated requests.
    pub retries: u64,
}

/// A failed store operation, after retries.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    /// The object, the cause and a remedy.
    pub message: String,
    /// Whether a retry may succeed, later or by another process.
    pub is_passing: bool,
}

/// The stores that a program is built with. All calls block.
pub trait ObjectStores: fmt::Debug + Send + Sync {
    /// Begins an upload, which is invisible until it is completed.
    fn begin_upload(&self, object: &str) -> Result<Box<dyn UploadWriter>, StoreError>;

    /// Turns an upload into the object; returns its version, or `None` if the upload does not exist.
    fn complete_upload(
        &self,
        object: &str,
        upload: &PendingUpload,
    ) -> Result<Option<String>, StoreError>;

    /// Returns the version that the upload's object will have, if that is known in advance.
    fn version_of(&self, object: &str, upload: &PendingUpload) -> Option<String>;

    /// Drops an upload; succeeds if it does not exist.
    fn abort_upload(&self, upload: &StoredUpload) -> Result<(), StoreError>;

    /// Lists incomplete uploads below `under`.
    fn uploads(&self, under: &str) -> Result<Vec<StoredUpload>, StoreError>;

    /// Returns the content of a small object, if it exists.
    fn get(&self, object: &str) -> Result<Option<(Vec<u8>, ObjectEntry)>, StoreError>;

    /// Writes a small object; returns its version, or `None` if the condition is not met.
    fn put(
        &self,
        object: &str,
        bytes: &[u8],
        condition: PutCondition<'_>,
    ) -> Result<Option<String>, StoreError>;

    /// Looks up an object.
    fn find(&self, object: &str) -> Result<Option<ObjectEntry>, StoreError>;

    /// Removes an object; succeeds if it does not exist.
    fn remove(&self, object: &str) -> Result<(), StoreError>;

    /// Removes everything below `under`, including directories; the prefix must be the caller's own.
    fn remove_below(&self, under: &str) -> Result<(), StoreError> {
        self.list(under)?
            .iter()
            .try_for_each(|entry| self.remove(&entry.object))
    }

    /// Lists the objects below `under`, recursively.
    fn list(&self, under: &str) -> Result<Vec<ObjectEntry>, StoreError>;

    /// Returns and resets the write statistics.
    fn take_written(&self) -> WrittenFigures;
}

/// An upload being written. If dropped, it stays incomplete until it is aborted.
pub trait UploadWriter: Send {
    /// Its id in the store.
    fn id(&self) -> &str;

    /// Sends the next part; blocks for back-pressure. All parts but the last have at least
    /// [`UPLOAD_PART_BYTES_MIN`] bytes.
    fn send(&mut self, part: Vec<u8>) -> Result<(), StoreError>;

    /// Waits until the store has all parts.
    fn finish(self: Box<Self>) -> Result<PendingUpload, StoreError>;
}

/// Minimum size of every part of an upload but the last.
pub const UPLOAD_PART_BYTES_MIN: u64 = 5 << 20;
/// The most parts of an upload.
pub const UPLOAD_PARTS_MAX: u64 = 10_000;

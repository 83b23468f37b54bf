//! What is asked of stores by processes that are built without them.
//!
//! Owns the words between the runtime, which commits outputs to stores and knows none, and the crate that
//! knows them, which a program has by a feature. Does not own requests, nor what an output is made of. Names
//! are whole ones: `s3://bucket/key`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An upload of which all parts are there, and which nobody sees until it is completed: by anybody
/// who knows this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingUpload {
    /// What the store calls it.
    pub id: String,
    /// What it calls its parts, in order.
    pub parts: Vec<String>,
}

/// An upload that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredUpload {
    /// What is uploaded.
    pub object: String,
    /// What the store calls the upload.
    pub id: String,
}

/// An object that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectEntry {
    /// Its name.
    pub object: String,
    /// Bytes.
    pub bytes: u64,
    /// By what this version of it is known.
    pub version: String,
    /// When it was written by the clock of the store, in seconds since 1970.
    pub modified: i64,
}

/// What must be so for an object to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutCondition<'a> {
    /// Nothing.
    Always,
    /// There is none of this name.
    Absent,
    /// The one that is there is of this version.
    Version(&'a str),
}

/// What this process has written to stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WrittenFigures {
    /// Requests that write, those that failed included.
    pub requests: u64,
    /// Bytes of objects that were taken.
    pub bytes: u64,
    /// Requests that were made again.
    pub retries: u64,
}

/// Something that a store did not do, after it was tried for as long as makes sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    /// Which object, why, and what to do.
    pub message: String,
    /// Whether another try may end otherwise, later or by another process.
    pub is_passing: bool,
}

/// The stores that a program is built with. All calls block.
pub trait ObjectStores: fmt::Debug + Send + Sync {
    /// Begins an upload, which is invisible until it is completed.
    fn begin_upload(&self, object: &str) -> Result<Box<dyn UploadWriter>, StoreError>;

    /// Makes an upload the object. What version it is; `None` when there is no such upload (any more).
    fn complete_upload(&self, object: &str, upload: &PendingUpload) -> Result<Option<String>, StoreError>;

    /// What version the object of an upload will be, where that can be told.
    fn version_of(&self, object: &str, upload: &PendingUpload) -> Option<String>;

    /// Drops an upload; fine if there is none.
    fn abort_upload(&self, upload: &StoredUpload) -> Result<(), StoreError>;

    /// Uploads of objects below `under` that were begun and neither completed nor aborted.
    fn uploads(&self, under: &str) -> Result<Vec<StoredUpload>, StoreError>;

    /// The whole of a small object, if there is one.
    fn get(&self, object: &str) -> Result<Option<(Vec<u8>, ObjectEntry)>, StoreError>;

    /// Writes a small object. Which version it is; `None` when the condition is not met.
    fn put(
        &self,
        object: &str,
        bytes: &[u8],
        condition: PutCondition<'_>,
    ) -> Result<Option<String>, StoreError>;

    /// Looks at an object, if there is one.
    fn find(&self, object: &str) -> Result<Option<ObjectEntry>, StoreError>;

    /// Removes an object; fine if there is none.
    fn remove(&self, object: &str) -> Result<(), StoreError>;

    /// Removes all that is below `under`, which is the caller's alone: where there are directories, them,
    /// too.
    fn remove_below(&self, under: &str) -> Result<(), StoreError> {
        self.list(under)?.iter().try_for_each(|entry| self.remove(&entry.object))
    }

    /// The objects below `under`, however deep.
    fn list(&self, under: &str) -> Result<Vec<ObjectEntry>, StoreError>;

    /// What was written since somebody last took these figures.
    fn take_written(&self) -> WrittenFigures;
}

/// An upload while it is written. Dropped, it stays begun until somebody aborts it.
pub trait UploadWriter: Send {
    /// What the store calls it.
    fn id(&self) -> &str;

    /// Sends the next part, all of which but the last have at least [`UPLOAD_PART_BYTES_MIN`] bytes; waits
    /// until it may.
    fn send(&mut self, part: Vec<u8>) -> Result<(), StoreError>;

    /// Waits until the store has all parts.
    fn finish(self: Box<Self>) -> Result<PendingUpload, StoreError>;
}

/// What a part of an upload has at least, unless it is the last.
pub const UPLOAD_PART_BYTES_MIN: u64 = 5 << 20;
/// How many parts an upload has at most.
pub const UPLOAD_PARTS_MAX: u64 = 10_000;

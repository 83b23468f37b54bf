//! Writes a blob to a temporary file, which is renamed once its length and digest are verified.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use napreduce_protocol::{Blob, Digest};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::{JoinHandle, spawn_blocking};

use super::BlobError;
use super::store::{BlobStore, PinnedBlob};

/// Suffix of unfinished files.
pub(super) const UNFINISHED: &str = ".unfinished";
/// Chunks buffered for the disk.
const CHUNKS_WAITING_MAX: usize = 4;
/// Readable and executable by the owner, since a blob may be a program; no other access.
pub(super) const MODE: u32 = 0o500;

/// A blob being written. Dropping it early removes the file.
pub(crate) struct BlobWriter {
    store: Arc<BlobStore>,
    blob: Blob,
    unfinished: PathBuf,
    file: Option<File>,
    hasher: Sha256,
    written: u64,
}

impl BlobWriter {
    /// Creates the file; the store has reserved the bytes.
    pub(super) fn create(
        store: Arc<BlobStore>,
        blob: Blob,
        unfinished: PathBuf,
    ) -> Result<BlobWriter, BlobError> {
        // From here on, dropping this value releases the reservation.
        let mut writer =
            BlobWriter { store, blob, unfinished, file: None, hasher: Sha256::new(), written: 0 };
        let opened = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&writer.unfinished);
        writer.file = Some(opened.map_err(|error| writer.io("create", error))?);
        Ok(writer)
    }

    /// Appends bytes; fails if they exceed the announced length.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        let written = self.written.saturating_add(bytes.len() as u64);
        if written > self.blob.bytes {
            return Err(self.wrong_length(written));
        }
        self.hasher.update(bytes);
        let appended = self.file.as_mut().map_or(Ok(()), |file| file.write_all(bytes));
        appended.map_err(|error| self.io("write", error))?;
        self.written = written;
        Ok(())
    }

    /// Adds the blob to the store if it matches the announced length and digest.
    pub(crate) fn finish(mut self) -> Result<PinnedBlob, BlobError> {
        let digest = self.blob.digest;
        if self.written != self.blob.bytes {
            return Err(self.wrong_length(self.written));
        }
        let found = Digest(std::mem::take(&mut self.hasher).finalize().into());
        if found != digest {
            return Err(BlobError::Digest { digest, found });
        }
        // Closed before the rename: a file open for writing cannot be executed.
        let synced = self.file.take().map_or(Ok(()), |file| file.sync_data());
        let added = synced.and_then(|()| self.store.add(self.blob, &self.unfinished));
        added.map_err(|error| self.io("finish", error))
    }

    fn wrong_length(&self, found: u64) -> BlobError {
        BlobError::Length { digest: self.blob.digest, expected: self.blob.bytes, found }
    }

    fn io(&self, doing: &str, source: std::io::Error) -> BlobError {
        BlobError::io(format!("{doing} {}", self.unfinished.display()), source)
    }
}

impl Drop for BlobWriter {
    fn drop(&mut self) {
        self.store.release(self.blob.bytes);
        // Fails if the file has become a blob. Any other leftover is removed when the store is next opened.
        let _ = fs::remove_file(&self.unfinished);
    }
}

/// A blob written by its own thread, for async callers.
pub(crate) struct BlobIntake {
    blob: Blob,
    chunks: Sender<Vec<u8>>,
    writing: JoinHandle<Result<PinnedBlob, BlobError>>,
    left: u64,
}

impl BlobIntake {
    pub(crate) fn start(store: Arc<BlobStore>, blob: Blob) -> BlobIntake {
        let (chunks, mut arriving) = channel::<Vec<u8>>(CHUNKS_WAITING_MAX);
        let writing = spawn_blocking(move || {
            let mut writer = store.writer(blob)?;
            while let Some(chunk) = arriving.blocking_recv() {
                writer.write(&chunk)?;
            }
            writer.finish()
        });
        BlobIntake { blob, chunks, writing, left: blob.bytes }
    }

    /// Returns the number of bytes still missing.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Passes a chunk to the writer; returns false after a write error, which [`BlobIntake::finish`] returns.
    pub(crate) async fn push(&mut self, chunk: Vec<u8>) -> bool {
        self.left = self.left.saturating_sub(chunk.len() as u64);
        self.chunks.send(chunk).await.is_ok()
    }

    /// Returns the blob, or the first error.
    pub(crate) async fn finish(self) -> Result<PinnedBlob, BlobError> {
        drop(self.chunks);
        let digest = self.blob.digest;
        self.writing.await.unwrap_or(Err(BlobError::Interrupted { digest }))
    }
}

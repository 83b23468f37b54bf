//! Writes a blob to a temporary file, which is renamed once its length and digest are verified. If the sender's
//! connection breaks, the file can be kept, and the next writer of the blob continues it.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use napreduce_local::world::Tasks;
use napreduce_local::world::disk::{DiskFile, Opening};
use napreduce_protocol::{Blob, Digest};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::BlobError;
use super::store::{BlobStore, PinnedBlob};

/// Suffix of unfinished files.
pub(super) const UNFINISHED: &str = ".unfinished";
/// Chunks buffered for the disk.
const CHUNKS_WAITING_MAX: usize = 4;
/// Readable and executable by the owner, since a blob may be a program; no other access.
pub(super) const MODE: u32 = 0o500;
/// Mode of a blob while it is written.
const UNFINISHED_MODE: u32 = 0o600;
/// Bytes of an unfinished file that are read at a time.
const READ_BYTES: usize = 256 << 10;

/// A blob being written. Dropping it early removes the file.
pub(crate) struct BlobWriter {
    store: Arc<BlobStore>,
    blob: Blob,
    unfinished: PathBuf,
    file: Option<Box<dyn DiskFile>>,
    hasher: Sha256,
    written: u64,
    /// The unfinished file stays for the next writer.
    is_kept: bool,
}

impl BlobWriter {
    /// Creates the file; the store has reserved the bytes.
    pub(super) fn create(
        store: Arc<BlobStore>,
        blob: Blob,
        unfinished: PathBuf,
    ) -> Result<BlobWriter, BlobError> {
        let mut writer = BlobWriter::without_file(store, blob, unfinished);
        let opening = Opening::CreateNew {
            mode: UNFINISHED_MODE,
        };
        let opened = writer.store.disk().open(&writer.unfinished, opening);
        writer.file = Some(opened.map_err(|error| writer.io("create", error))?);
        Ok(writer)
    }

    /// Continues an unfinished file; the store has reserved the bytes of the blob.
    pub(super) fn resume(
        store: Arc<BlobStore>,
        blob: Blob,
        unfinished: PathBuf,
    ) -> Result<BlobWriter, BlobError> {
        let mut writer = BlobWriter::without_file(store, blob, unfinished);
        writer
            .open_and_hash()
            .map_err(|error| writer.io("continue", error))?;
        Ok(writer)
    }

    /// Returns a writer that has not opened its file. Dropping it releases the reservation.
    fn without_file(store: Arc<BlobStore>, blob: Blob, unfinished: PathBuf) -> BlobWriter {
        BlobWriter {
            store,
            blob,
            unfinished,
            file: None,
            hasher: Sha256::new(),
            written: 0,
            is_kept: false,
        }
    }

    /// Opens the unfinished file and reads it to its end, where writing continues.
    fn open_and_hash(&mut self) -> io::Result<()> {
        let mut file = self.store.disk().open(&self.unfinished, Opening::Change)?;
        let mut bytes = vec![0; READ_BYTES];
        loop {
            let count = file.read(&mut bytes)?;
            if count == 0 {
                break;
            }
            self.hasher.update(&bytes[..count]);
            self.written += count as u64;
        }
        self.file = Some(file);
        Ok(())
    }

    /// Keeps what has been written for the next writer of the blob.
    fn keep(mut self) {
        // Closing the file loses nothing: writes are not buffered.
        self.file = None;
        self.is_kept = true;
        self.store
            .keep_unfinished(self.blob.digest, self.unfinished.clone());
    }

    /// Appends bytes; fails if they exceed the announced length.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        let written = self.written.saturating_add(bytes.len() as u64);
        if written > self.blob.bytes {
            return Err(self.wrong_length(written));
        }
        self.hasher.update(bytes);
        if let Some(file) = &mut self.file {
            let appended = file.write_all(bytes);
            appended.map_err(|error| self.io("write", error))?;
        }
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
        self.sync_and_add()
            .map_err(|error| self.io("finish", error))
    }

    fn sync_and_add(&mut self) -> io::Result<PinnedBlob> {
        if let Some(file) = self.file.take() {
            file.set_mode(MODE)?;
            file.sync_data()?;
            // Closed before the rename: a file open for writing cannot be executed.
            drop(file);
        }
        self.store.add(self.blob, &self.unfinished)
    }

    /// Returns whether the file is not longer than the blob.
    pub(super) fn fits(&self) -> bool {
        self.written <= self.blob.bytes
    }

    fn wrong_length(&self, found: u64) -> BlobError {
        BlobError::Length {
            digest: self.blob.digest,
            expected: self.blob.bytes,
            found,
        }
    }

    fn io(&self, doing: &str, source: io::Error) -> BlobError {
        BlobError::io(format!("{doing} {}", self.unfinished.display()), source)
    }
}

impl Drop for BlobWriter {
    fn drop(&mut self) {
        self.store.release(self.blob.bytes);
        if !self.is_kept {
            // Fails if the file has become a blob. Any other leftover is removed when the store is next opened.
            let _ = self.store.disk().remove_file(&self.unfinished);
        }
    }
}

/// A blob that is written outside the task that receives it.
pub(crate) struct BlobIntake {
    blob: Blob,
    chunks: Sender<Vec<u8>>,
    writing: JoinHandle<Result<PinnedBlob, BlobError>>,
    left: u64,
}

impl BlobIntake {
    /// Starts to write a blob; what has been written is removed if the rest does not arrive.
    pub(crate) fn start(tasks: &Tasks, store: Arc<BlobStore>, blob: Blob) -> BlobIntake {
        let (chunks, arriving) = channel(CHUNKS_WAITING_MAX);
        let own_tasks = tasks.clone();
        let writing = tasks.spawn(async move {
            let writer = run_blocking(&own_tasks, blob, move || store.writer(blob)).await?;
            let writer = write_all(&own_tasks, writer, arriving).await?;
            run_blocking(&own_tasks, blob, move || writer.finish()).await
        });
        BlobIntake {
            blob,
            chunks,
            writing,
            left: blob.bytes,
        }
    }

    /// Starts to write a blob, or continues where an earlier intake ended; also returns the number of bytes that
    /// have been written. What has been written is kept if the rest does not arrive.
    pub(crate) async fn continuing(
        tasks: &Tasks,
        store: Arc<BlobStore>,
        blob: Blob,
    ) -> (BlobIntake, u64) {
        let (chunks, arriving) = channel(CHUNKS_WAITING_MAX);
        let (begun_sender, begun) = oneshot::channel();
        let own_tasks = tasks.clone();
        let writing = tasks.spawn(async move {
            let writer = run_blocking(&own_tasks, blob, move || store.continued(blob)).await?;
            // The receiver is gone if nothing waits for the intake any more.
            let _ = begun_sender.send(writer.written);
            let writer = write_all(&own_tasks, writer, arriving).await?;
            if writer.written == blob.bytes {
                return run_blocking(&own_tasks, blob, move || writer.finish()).await;
            }
            let error = writer.wrong_length(writer.written);
            writer.keep();
            Err(error)
        });
        // If the file cannot be opened, the sender sends the whole blob and `finish` returns the error.
        let begun = begun.await.unwrap_or(0);
        (
            BlobIntake {
                blob,
                chunks,
                writing,
                left: blob.bytes - begun,
            },
            begun,
        )
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

    /// Waits until what has arrived is written, and ignores errors.
    pub(crate) async fn stop(self) {
        drop(self.chunks);
        // The blob is not complete.
        let _ = self.writing.await;
    }

    /// Returns the blob, or the first error.
    pub(crate) async fn finish(self) -> Result<PinnedBlob, BlobError> {
        drop(self.chunks);
        let digest = self.blob.digest;
        self.writing
            .await
            .unwrap_or(Err(BlobError::Interrupted { digest }))
    }
}

/// Runs one blocking step of writing a blob.
async fn run_blocking<T: Send + 'static>(
    tasks: &Tasks,
    blob: Blob,
    step: impl FnOnce() -> Result<T, BlobError> + Send + 'static,
) -> Result<T, BlobError> {
    let digest = blob.digest;
    let done = tasks.blocking(step).await;
    // A panic has been printed.
    done.unwrap_or(Err(BlobError::Interrupted { digest }))
}

async fn write_all(
    tasks: &Tasks,
    mut writer: BlobWriter,
    mut arriving: Receiver<Vec<u8>>,
) -> Result<BlobWriter, BlobError> {
    let blob = writer.blob;
    let mut waiting = Vec::new();
    while arriving.recv_many(&mut waiting, CHUNKS_WAITING_MAX).await > 0 {
        let chunks = std::mem::take(&mut waiting);
        writer = run_blocking(tasks, blob, move || {
            for chunk in chunks {
                writer.write(&chunk)?;
            }
            Ok(writer)
        })
        .await?;
    }
    Ok(writer)
}

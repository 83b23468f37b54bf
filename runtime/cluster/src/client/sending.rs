//! Reads, digests and uploads a job's program and side files.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use napreduce_local::world::Tasks;
use napreduce_local::world::disk::RealDisk;
use napreduce_protocol::printing::print_error;
use napreduce_protocol::requests::OfferBlob;
use napreduce_protocol::{Blob, Digest, FromCoordinator, Payload, ToCoordinator};
use tokio::time::Instant;

use super::ClientError;
use super::session::{TryError, exchange, receive};
use crate::blobs::{chunks_of, digest_of, program_architecture};
use crate::transport::Connection;

/// The running program, even if its file was replaced or removed.
const OWN_PROGRAM: &str = "/proc/self/exe";
/// Maximum wait until the coordinator has written a blob to disk.
const TAKEN_DEADLINE: Duration = Duration::from_secs(120);

/// An upload that takes this long prints its progress, and again after each interval.
const PRINT_AFTER: Duration = Duration::from_secs(3);
const PRINT_INTERVAL: Duration = Duration::from_secs(5);

/// A file to send as a blob.
#[derive(Debug, Clone)]
pub(super) struct SourceFile {
    pub(super) path: PathBuf,
    pub(super) blob: Blob,
}

/// A program and its processor architecture.
#[derive(Debug, Clone)]
pub(super) struct ProgramFile {
    pub(super) file: SourceFile,
    pub(super) architecture: String,
}

/// Limits on reading files for their digests.
pub(super) struct Reading<'a> {
    /// The largest side file, in bytes.
    pub(super) bytes_max: u64,
    /// Set when the result is no longer needed.
    pub(super) cancelled: &'a AtomicBool,
}

impl SourceFile {
    /// Reads a side file to its end.
    pub(super) fn read(path: &Path, reading: &Reading<'_>) -> Result<SourceFile, ClientError> {
        let failed = |source| ClientError::File {
            path: path.to_owned(),
            source,
        };
        let file = open(path)?;
        let limit = reading.bytes_max;
        let too_large = || ClientError::FileTooLarge {
            path: path.to_owned(),
            limit,
        };
        if file.metadata().map_err(failed)?.len() > limit {
            return Err(too_large());
        }
        // Files that grow or have no length are read just beyond the limit.
        let source = CancellableFile {
            file: file.take(limit.saturating_add(1)),
            cancelled: reading.cancelled,
        };
        let (digest, bytes) = digest_of(source).map_err(failed)?;
        if bytes > limit {
            return Err(too_large());
        }
        Ok(SourceFile {
            path: path.to_owned(),
            blob: Blob { digest, bytes },
        })
    }
}

/// A reader that fails once the submission is cancelled.
struct CancellableFile<'a> {
    file: io::Take<File>,
    cancelled: &'a AtomicBool,
}

impl Read for CancellableFile<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(io::Error::other("the submission was interrupted"));
        }
        self.file.read(into)
    }
}

impl ProgramFile {
    /// Returns this process's program; its digest is computed once.
    pub(super) fn own(cancelled: &AtomicBool) -> Result<ProgramFile, ClientError> {
        static OWN: OnceLock<ProgramFile> = OnceLock::new();
        if let Some(own) = OWN.get() {
            return Ok(own.clone());
        }
        let own = ProgramFile::read(Path::new(OWN_PROGRAM), cancelled)?;
        Ok(OWN.get_or_init(|| own).clone())
    }

    pub(super) fn read(path: &Path, cancelled: &AtomicBool) -> Result<ProgramFile, ClientError> {
        let architecture = program_architecture(&RealDisk, path)
            .map_err(|error| ClientError::Program(error.to_string()))?;
        let file = SourceFile::read(
            path,
            &Reading {
                bytes_max: u64::MAX,
                cancelled,
            },
        )?;
        Ok(ProgramFile {
            file,
            architecture: architecture.to_owned(),
        })
    }
}

/// Asks the coordinator to pin a file for the next submission; uploads what it does not have.
pub(super) async fn offer(
    tasks: &Tasks,
    connection: &mut Connection,
    source: &SourceFile,
    progress: &UploadProgress,
) -> Result<(), TryError> {
    let blob = source.blob;
    let Some(begun) = exchange(connection, OfferBlob { blob }).await? else {
        return Ok(());
    };
    progress.arrived(blob, begun);
    let failed = |error| ClientError::File {
        path: source.path.clone(),
        source: error,
    };
    let mut file = open(&source.path)?;
    file.seek(SeekFrom::Start(begun)).map_err(failed)?;
    let mut sent = begun;
    let mut chunks = chunks_of(tasks, file, blob.bytes.saturating_sub(begun));
    while let Some(chunk) = chunks.recv().await {
        let bytes = Payload(chunk.map_err(failed)?);
        sent += bytes.0.len() as u64;
        connection
            .send(&ToCoordinator::Chunk(bytes))
            .await
            .map_err(TryError::new)?;
        progress.print(source, sent);
    }
    match receive(connection, TAKEN_DEADLINE).await? {
        FromCoordinator::Done => Ok(()),
        other => Err(ClientError::unexpected(&other).into()),
    }
}

/// The progress of a submission's uploads, over all connections.
pub(super) struct UploadProgress {
    /// Whether to print it.
    pub(super) tell: bool,
    /// Set when more of a blob has arrived at the coordinator than over earlier connections.
    pub(super) advanced: Arc<AtomicBool>,
    /// The bytes of each blob that had arrived when it was last offered.
    arrived: RefCell<BTreeMap<Digest, u64>>,
    print_at: Cell<Instant>,
}

impl UploadProgress {
    pub(super) fn new(tell: bool, advanced: Arc<AtomicBool>) -> UploadProgress {
        let print_at = Cell::new(Instant::now() + PRINT_AFTER);
        UploadProgress {
            tell,
            advanced,
            arrived: RefCell::default(),
            print_at,
        }
    }

    fn arrived(&self, blob: Blob, bytes: u64) {
        let before = self
            .arrived
            .borrow_mut()
            .insert(blob.digest, bytes)
            .unwrap_or(0);
        if bytes > before {
            self.advanced.store(true, Ordering::Relaxed);
        }
    }

    fn print(&self, source: &SourceFile, sent: u64) {
        let now = Instant::now();
        if !self.tell || now < self.print_at.get() {
            return;
        }
        self.print_at.set(now + PRINT_INTERVAL);
        let percent = sent.saturating_mul(100) / source.blob.bytes.max(1);
        let name = if source.path == Path::new(OWN_PROGRAM) {
            "the program".to_owned()
        } else {
            source.path.display().to_string()
        };
        print_error(format_args!(
            "sending {name}: {sent} of {} bytes ({percent} %)",
            source.blob.bytes
        ));
    }
}

/// Opens a regular file; other kinds may block or have no end.
fn open(path: &Path) -> Result<File, ClientError> {
    let failed = |source| ClientError::File {
        path: path.to_owned(),
        source,
    };
    // Without the flag, opening a pipe blocks until it has a writer.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(failed)?;
    if file.metadata().map_err(failed)?.is_file() {
        Ok(file)
    } else {
        Err(ClientError::NotAFile {
            path: path.to_owned(),
        })
    }
}

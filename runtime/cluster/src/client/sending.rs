//! What a job takes along: its program and its side files.
//!
//! Owns their digests and their way to the coordinator. Does not own what workers do with them.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use napreduce_protocol::requests::OfferBlob;
use napreduce_protocol::{Blob, Connection, Digest, FromCoordinator, Payload, ToCoordinator};

use super::ClientError;
use super::session::{Trouble, exchange, receive};
use crate::blobs::{chunks_of, program_architecture};

/// This program, also when its file was replaced or removed while it runs.
const OWN_PROGRAM: &str = "/proc/self/exe";
/// The coordinator writes what it takes in to its disk before it answers.
const TAKEN_DEADLINE: Duration = Duration::from_secs(120);

/// A file that is a blob.
#[derive(Debug, Clone)]
pub(super) struct SourceFile {
    pub(super) path: PathBuf,
    pub(super) blob: Blob,
}

/// A program, and for which processor it is.
#[derive(Debug, Clone)]
pub(super) struct ProgramFile {
    pub(super) file: SourceFile,
    pub(super) architecture: String,
}

/// What bounds the reading of files for their digests.
pub(super) struct Reading<'a> {
    /// The most bytes a side file may have.
    pub(super) bytes_max: u64,
    /// Set when nobody wants to know any more.
    pub(super) given_up: &'a AtomicBool,
}

impl SourceFile {
    /// Reads a side file to its end.
    pub(super) fn read(path: &Path, reading: &Reading<'_>) -> Result<SourceFile, ClientError> {
        let failed = |source| ClientError::File { path: path.to_owned(), source };
        let file = open(path)?;
        let limit = reading.bytes_max;
        let too_large = || ClientError::FileTooLarge { path: path.to_owned(), limit };
        if file.metadata().map_err(failed)?.len() > limit {
            return Err(too_large());
        }
        // One that grows, or does not tell its length, is read no further than it is too large.
        let source = Watched { file: file.take(limit.saturating_add(1)), given_up: reading.given_up };
        let (digest, bytes) = Digest::of(source).map_err(failed)?;
        if bytes > limit {
            return Err(too_large());
        }
        Ok(SourceFile { path: path.to_owned(), blob: Blob { digest, bytes } })
    }
}

/// A file that is read until nobody wants to know any more.
struct Watched<'a> {
    file: io::Take<File>,
    given_up: &'a AtomicBool,
}

impl Read for Watched<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.given_up.load(Ordering::Relaxed) {
            true => Err(io::Error::other("the submission was interrupted")),
            false => self.file.read(into),
        }
    }
}

impl ProgramFile {
    /// The program that this process runs; its digest is computed once in its life.
    pub(super) fn own(given_up: &AtomicBool) -> Result<ProgramFile, ClientError> {
        static OWN: OnceLock<ProgramFile> = OnceLock::new();
        if let Some(own) = OWN.get() {
            return Ok(own.clone());
        }
        let own = ProgramFile::read(Path::new(OWN_PROGRAM), given_up)?;
        Ok(OWN.get_or_init(|| own).clone())
    }

    pub(super) fn read(path: &Path, given_up: &AtomicBool) -> Result<ProgramFile, ClientError> {
        let architecture =
            program_architecture(path).map_err(|error| ClientError::Program(error.to_string()))?;
        let file = SourceFile::read(path, &Reading { bytes_max: u64::MAX, given_up })?;
        Ok(ProgramFile { file, architecture: architecture.to_owned() })
    }
}

/// Has the coordinator keep a file for the next submission; it is sent only if it is not there.
pub(super) async fn offer(connection: &mut Connection, source: &SourceFile) -> Result<(), Trouble> {
    let blob = source.blob;
    if exchange(connection, OfferBlob { blob }).await? {
        return Ok(());
    }
    let failed = |error| ClientError::File { path: source.path.clone(), source: error };
    let file = open(&source.path)?;
    let mut chunks = chunks_of(file, blob.bytes);
    while let Some(chunk) = chunks.recv().await {
        let bytes = Payload(chunk.map_err(failed)?);
        connection.send(&ToCoordinator::Chunk(bytes)).await.map_err(Trouble::new)?;
    }
    match receive(connection, TAKEN_DEADLINE).await? {
        FromCoordinator::Done => Ok(()),
        other => Err(ClientError::nonsense(&other).into()),
    }
}

/// Opens a regular file: anything else may have no end, or is never ready.
fn open(path: &Path) -> Result<File, ClientError> {
    let failed = |source| ClientError::File { path: path.to_owned(), source };
    // Without the flag the opening of a pipe waits for somebody who writes to it.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(failed)?;
    match file.metadata().map_err(failed)?.is_file() {
        true => Ok(file),
        false => Err(ClientError::NotAFile { path: path.to_owned() }),
    }
}

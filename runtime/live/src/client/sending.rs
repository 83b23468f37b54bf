//! What a job takes along: its program and its side files.
//!
//! Owns their digests and their way to the coordinator. Does not own what workers do with them.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use super::ClientError;
use super::session::{Trouble, ask, receive};
use crate::blobs::{Digest, chunks_of, program_architecture};
use crate::protocol::{Blob, FromCoordinator, Payload, ToCoordinator};
use crate::transport::Connection;

/// This program, also when its file was replaced or removed while it runs.
const OWN_PROGRAM: &str = "/proc/self/exe";
/// The coordinator writes what it takes in to its disk before it answers.
const TAKEN_DEADLINE: Duration = Duration::from_secs(120);

/// A file that a job takes along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideFileSource {
    /// Where it is now.
    pub path: PathBuf,
    /// The name under which tasks find it: one component.
    pub name: String,
}

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

impl SourceFile {
    pub(super) fn read(path: &Path) -> Result<SourceFile, ClientError> {
        let failed = |source| ClientError::File { path: path.to_owned(), source };
        let file = open(path).map_err(failed)?;
        let (digest, bytes) = Digest::of(file).map_err(failed)?;
        Ok(SourceFile { path: path.to_owned(), blob: Blob { digest, bytes } })
    }
}

impl ProgramFile {
    /// The program that this process runs; its digest is computed once in its life.
    pub(super) fn own() -> Result<ProgramFile, ClientError> {
        static OWN: OnceLock<ProgramFile> = OnceLock::new();
        if let Some(own) = OWN.get() {
            return Ok(own.clone());
        }
        let own = ProgramFile::read(Path::new(OWN_PROGRAM))?;
        Ok(OWN.get_or_init(|| own).clone())
    }

    pub(super) fn read(path: &Path) -> Result<ProgramFile, ClientError> {
        let architecture =
            program_architecture(path).map_err(|error| ClientError::Program(error.to_string()))?;
        Ok(ProgramFile { file: SourceFile::read(path)?, architecture: architecture.to_owned() })
    }
}

/// Has the coordinator keep a file for the next submission; it is sent only if it is not there.
pub(super) async fn offer(connection: &mut Connection, source: &SourceFile) -> Result<(), Trouble> {
    let blob = source.blob;
    match ask(connection, &ToCoordinator::Offer { blob }).await? {
        FromCoordinator::Present { present: true } => return Ok(()),
        FromCoordinator::Present { present: false } => {}
        other => return Err(ClientError::nonsense(&other).into()),
    }
    let failed = |error| ClientError::File { path: source.path.clone(), source: error };
    let file = open(&source.path).map_err(failed)?;
    let mut chunks = chunks_of(file, blob.bytes);
    while let Some(chunk) = chunks.recv().await {
        let bytes = Payload(chunk.map_err(failed)?);
        connection.send(&ToCoordinator::Chunk { bytes }).await.map_err(Trouble::new)?;
    }
    match receive(connection, TAKEN_DEADLINE).await? {
        FromCoordinator::Done => Ok(()),
        other => Err(ClientError::nonsense(&other).into()),
    }
}

/// Opens what can be read like a file.
fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(file)
}

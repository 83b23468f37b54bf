//! The pieces of a part file that successive attempts wrote, and their assembly.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use napreduce_protocol::PartOutput;
use napreduce_task::{OutputPiece, progress};
use xxhash_rust::xxh3::Xxh3;

use super::error::{OutputError, PiecesError};

const COPY_BYTES: usize = 1 << 20;

/// The pieces of earlier attempts, in the directory of all checkpoints.
#[derive(Debug)]
pub(crate) struct Pieces {
    base: PathBuf,
    list: Vec<OutputPiece>,
}

impl Pieces {
    /// Checks that all pieces exist with their length; their content is verified when they are read.
    pub(crate) fn find(base: &Path, list: Vec<OutputPiece>) -> Result<Pieces, PiecesError> {
        for piece in &list {
            let path = base.join(&piece.file);
            match fs::metadata(&path) {
                Ok(found) if found.is_file() && found.len() == piece.bytes => {}
                Ok(found) => {
                    let what = format!("it has {} bytes instead of {}", found.len(), piece.bytes);
                    return Err(PiecesError::Damaged { path, what });
                }
                Err(error) => {
                    return Err(PiecesError::Damaged {
                        path,
                        what: error.to_string(),
                    });
                }
            }
        }
        Ok(Pieces {
            base: base.to_owned(),
            list,
        })
    }

    /// Returns the number of records in all pieces.
    pub(crate) fn records(&self) -> u64 {
        self.list.iter().map(|piece| piece.records).sum()
    }

    pub(crate) fn into_list(self) -> Vec<OutputPiece> {
        self.list
    }

    /// Writes the pieces and `last`, a separate file that is then removed, to `target`.
    pub(crate) fn assemble(
        self,
        last: (&Path, OutputPiece),
        target: &Path,
    ) -> Result<PartOutput, PiecesError> {
        let output = |source| OutputError {
            path: target.to_owned(),
            source,
        };
        let mut whole = Whole {
            file: File::create(target).map_err(output)?,
            path: target,
            digest: Xxh3::new(),
            part: PartOutput::default(),
            buffer: vec![0; COPY_BYTES],
        };
        for piece in &self.list {
            whole.append(&self.base.join(&piece.file), piece)?;
        }
        let (path, piece) = last;
        whole.append(path, &piece)?;
        fs::remove_file(path).map_err(|source| OutputError {
            path: path.to_owned(),
            source,
        })?;
        Ok(PartOutput {
            digest: whole.digest.digest(),
            ..whole.part
        })
    }
}

/// The part file being assembled.
struct Whole<'a> {
    file: File,
    path: &'a Path,
    digest: Xxh3,
    part: PartOutput,
    buffer: Vec<u8>,
}

impl Whole<'_> {
    fn append(&mut self, path: &Path, piece: &OutputPiece) -> Result<(), PiecesError> {
        let damaged = |what: String| PiecesError::Damaged {
            path: path.to_owned(),
            what,
        };
        let mut from = File::open(path).map_err(|error| damaged(error.to_string()))?;
        let mut digest = Xxh3::new();
        let mut bytes = 0u64;
        // A piece that has grown is detected by its first extra byte and not read further.
        while bytes <= piece.bytes {
            let read = match from.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(read) => &self.buffer[..read],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(damaged(error.to_string())),
            };
            progress();
            bytes += read.len() as u64;
            digest.update(read);
            self.digest.update(read);
            self.file.write_all(read).map_err(|source| OutputError {
                path: self.path.to_owned(),
                source,
            })?;
        }
        if (bytes, digest.digest()) != (piece.bytes, piece.digest) {
            return Err(damaged(format!(
                "its {} bytes do not match their checksum",
                piece.bytes
            )));
        }
        self.part.bytes += bytes;
        self.part.records += piece.records;
        Ok(())
    }
}

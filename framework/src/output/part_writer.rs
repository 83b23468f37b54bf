//! The part file of one attempt, with buffered writes, a running digest and counts. The first error is kept
//! until `check`.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use napreduce_protocol::{PartOutput, TaskError};
use napreduce_task::{CheckpointDirectory, OutputPiece, progress};
use xxhash_rust::xxh3::Xxh3;

use super::error::{OutputError, PiecesError};
use super::pieces::Pieces;
use crate::state::unsaved;

/// Bytes buffered before a write. Larger writes were not faster in measurements; smaller ones cost system
/// calls.
const BUFFER_BYTES: usize = 1 << 20;

/// The name of a part in a checkpoint.
pub(super) const PIECE: &str = "part";

pub(crate) struct PartWriter {
    /// `None` if nothing is kept.
    file: Option<File>,
    path: PathBuf,
    buffer: Vec<u8>,
    digest: Xxh3,
    bytes: u64,
    /// Includes earlier attempts.
    pub(crate) records: u64,
    error: Option<io::Error>,
    /// Pieces of earlier attempts.
    earlier: Option<Pieces>,
}

impl PartWriter {
    pub(crate) fn create(path: &Path) -> Result<PartWriter, OutputError> {
        let file = File::create(path).map_err(|source| OutputError {
            path: path.to_owned(),
            source,
        })?;
        Ok(PartWriter {
            file: Some(file),
            path: path.to_owned(),
            ..PartWriter::discarding()
        })
    }

    /// Continues after pieces of earlier attempts; the part file is assembled at the end.
    pub(crate) fn after(earlier: Pieces, path: &Path) -> Result<PartWriter, PiecesError> {
        let records = earlier.records();
        let mut name = path.as_os_str().to_owned();
        name.push(".piece");
        let own = PartWriter::create(Path::new(&name))?;
        Ok(PartWriter {
            records,
            earlier: Some(earlier),
            path: path.to_owned(),
            ..own
        })
    }

    /// Creates a writer that discards everything.
    pub(crate) fn discarding() -> PartWriter {
        PartWriter {
            file: None,
            path: PathBuf::new(),
            buffer: Vec::new(),
            digest: Xxh3::new(),
            bytes: 0,
            records: 0,
            error: None,
            earlier: None,
        }
    }

    /// Returns the path of this attempt's bytes.
    fn own_path(&self) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        if self.earlier.is_some() {
            name.push(".piece");
        }
        PathBuf::from(name)
    }

    /// Returns the buffer to append one record to; call `end_record` afterwards.
    #[inline]
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    #[inline]
    pub(crate) fn end_record(&mut self) {
        self.records += 1;
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush();
        }
    }

    pub(crate) fn fail(&mut self, error: io::Error) {
        self.error.get_or_insert(error);
    }

    fn flush(&mut self) {
        progress();
        if self.error.is_none() {
            self.digest.update(&self.buffer);
            self.bytes += self.buffer.len() as u64;
            if let Some(Err(error)) = self.file.as_mut().map(|file| file.write_all(&self.buffer)) {
                self.error = Some(error);
            }
        }
        self.buffer.clear();
    }

    pub(crate) fn check(&mut self) -> Result<(), OutputError> {
        match self.error.take() {
            None => Ok(()),
            Some(source) => Err(OutputError {
                path: self.own_path(),
                source,
            }),
        }
    }

    /// Saves the output in a checkpoint under this name: all pieces so far, in order.
    pub(crate) fn cut(
        mut self,
        directory: &mut CheckpointDirectory,
        piece: &str,
    ) -> Result<Vec<OutputPiece>, TaskError> {
        self.flush();
        // Report errors as without a checkpoint.
        self.check()?;
        let own = self.own_path();
        let mut pieces = self
            .earlier
            .take()
            .map(Pieces::into_list)
            .unwrap_or_default();
        let records = self.records - pieces.iter().map(|piece| piece.records).sum::<u64>();
        if self.bytes > 0 || records > 0 {
            directory.take_in(&own, piece).map_err(unsaved)?;
            let file = directory.name(piece);
            let digest = self.digest.digest();
            pieces.push(OutputPiece {
                file,
                bytes: self.bytes,
                records,
                digest,
            });
        }
        Ok(pieces)
    }

    pub(crate) fn finish(mut self) -> Result<PartOutput, PiecesError> {
        self.flush();
        self.check()?;
        let own = self.own_path();
        match self.earlier {
            None => {
                let records = self.records;
                let bytes = self.bytes;
                let digest = self.digest.digest();
                Ok(PartOutput {
                    records,
                    bytes,
                    digest,
                    ..PartOutput::default()
                })
            }
            Some(earlier) => {
                let last = OutputPiece {
                    file: String::new(),
                    bytes: self.bytes,
                    records: self.records - earlier.records(),
                    digest: self.digest.digest(),
                };
                earlier.assemble((&own, last), &self.path)
            }
        }
    }
}

//! Part files written in parallel, with the settings and errors that all generators share.
//!
//! The output directory is prepared, the parts are filled under temporary names, and then renamed.

mod directory;
mod part;

use crate::units::Workers;
use crate::watch::Watch;
use directory::Directory;
use part::Parts;
use std::io;
use std::path::{Path, PathBuf};

/// Largest number of part files: their names have five digits and must sort as text.
pub const FILES_MAX: u32 = 100_000;

/// Where and how a generator writes.
#[derive(Clone, Debug)]
pub struct OutputSettings {
    /// Directory of the part files; created, with its parents, if it is missing.
    pub directory: PathBuf,
    /// Number of part files, from 1 to [`FILES_MAX`].
    pub files: u32,
    /// Whether part files of an earlier output are replaced once the new ones are complete.
    pub overwrite: bool,
    /// Number of threads; 0 is one per core. The output does not depend on it.
    pub threads: usize,
    pub names: FileNames,
    /// Reports progress and stops the call early.
    pub watch: Watch,
}

/// Names of the files of an output, numbered from 0 with five digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileNames {
    /// `part-00000`, `part-00001`, ...
    #[default]
    Parts,
    /// `document-00000.txt`, `document-00001.txt`, ..., for jobs that use the names of documents.
    Documents,
}

impl FileNames {
    const ALL: [FileNames; 2] = [FileNames::Parts, FileNames::Documents];

    /// Returns what precedes and follows the number in a file name.
    fn affixes(self) -> (&'static str, &'static str) {
        match self {
            FileNames::Parts => ("part-", ""),
            FileNames::Documents => ("document-", ".txt"),
        }
    }
}

impl OutputSettings {
    /// One part file in `directory`, which must be empty or missing, written by one thread per core.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            files: 1,
            overwrite: false,
            threads: 0,
            names: FileNames::default(),
            watch: Watch::default(),
        }
    }

    /// Returns the number of parts, or an error when it is out of range; called before any part is planned.
    pub(crate) fn part_count(&self) -> Result<u64, OutputError> {
        match self.files {
            1..=FILES_MAX => Ok(u64::from(self.files)),
            files => Err(OutputError::FileCount { files }),
        }
    }

    pub(crate) fn interrupted(&self) -> OutputError {
        OutputError::Interrupted {
            directory: self.directory.clone(),
        }
    }
}

/// Files that a generator has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFiles {
    /// Total size of all files in bytes.
    pub bytes: u64,
    /// Part files in order.
    pub files: Vec<PathBuf>,
}

/// Error of an output. No unfinished file is left behind, and an earlier output is removed only when the new
/// one is complete under temporary names.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    #[error("invalid number of files {files}; choose 1 to {FILES_MAX}")]
    FileCount { files: u32 },
    /// The output directory is not empty.
    #[error("output directory {} exists; pass --overwrite or choose another", directory.display())]
    Exists { directory: PathBuf },
    /// Overwriting would delete a file that is not part of an output.
    #[error("{} is not a part file, so --overwrite will not remove it; choose another output directory", path.display())]
    Foreign { path: PathBuf },
    /// The output path is a file.
    #[error("output {} is not a directory; choose another", directory.display())]
    NotDirectory { directory: PathBuf },
    /// An operation of the operating system failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// Operation, as a verb.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The call was stopped through [`Watch`].
    #[error("interrupted; output directory {} is unchanged", directory.display())]
    Interrupted { directory: PathBuf },
}

/// Returns a function that adds an operation and a path to an I/O error.
fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OutputError {
    move |source| OutputError::Io {
        action,
        path: path.to_owned(),
        source,
    }
}

/// Output in units that any thread can make.
pub(crate) trait Units: Sync {
    /// Returns the number of units.
    fn count(&self) -> u64;

    /// Replaces `buffer` with the bytes of a unit and returns their offset in the output.
    fn make(&self, unit: u64, buffer: &mut Vec<u8>) -> u64;
}

/// Bytes that can be made starting at any unit.
pub(crate) trait Stream: Sync {
    /// Bytes of one unit; `fill` is called with multiples of this offset.
    const UNIT_BYTES: u64;

    /// Fills `buffer` with the bytes of the stream that start at `offset`.
    fn fill(&self, offset: u64, buffer: &mut [u8]);
}

/// Returns the end of share `index` (from 1) of `total` divided into `shares`: `ceil(total * index /
/// shares)`.
pub(crate) fn share(total: u64, index: u64, shares: u64) -> u64 {
    let end = (u128::from(total) * u128::from(index)).div_ceil(u128::from(shares));
    u64::try_from(end).expect("a share ends within the total, because index <= shares")
}

/// Writes `stream` into part files; file `i` ends at offset `ends[i]`. The ends ascend, and the last is the
/// length of the stream.
pub(crate) fn write<S: Stream>(
    stream: &S,
    ends: Vec<u64>,
    settings: &OutputSettings,
) -> Result<WrittenFiles, OutputError> {
    let bytes = ends.last().copied().unwrap_or(0);
    write_planned(settings, || Ok((EvenUnits { stream, bytes }, ends)))
}

/// Units of a stream, all of one length except the last.
struct EvenUnits<'s, S> {
    stream: &'s S,
    bytes: u64,
}

impl<S: Stream> Units for EvenUnits<'_, S> {
    fn count(&self) -> u64 {
        self.bytes.div_ceil(S::UNIT_BYTES)
    }

    fn make(&self, unit: u64, buffer: &mut Vec<u8>) -> u64 {
        let offset = unit * S::UNIT_BYTES;
        // `UNIT_BYTES` is chosen to fit in memory.
        buffer.resize(S::UNIT_BYTES.min(self.bytes - offset) as usize, 0);
        self.stream.fill(offset, buffer);
        offset
    }
}

/// Writes the units that `plan` returns, divided at the file ends it returns. `plan` is called once the
/// directory is known to be writable.
pub(crate) fn write_planned<U: Units>(
    settings: &OutputSettings,
    plan: impl FnOnce() -> Result<(U, Vec<u64>), OutputError>,
) -> Result<WrittenFiles, OutputError> {
    let directory = Directory::prepare(&settings.directory, settings.overwrite)?;
    let (units, ends) = plan().inspect_err(|_| directory.discard())?;
    let bytes = ends.last().copied().unwrap_or(0);
    let parts = Parts::plan(directory.path(), settings.names, &ends);
    let result = fill_parts(&units, &parts, bytes, settings).and_then(|()| {
        directory.remove_earlier_output()?;
        parts.publish()
    });
    match result {
        Ok(files) => Ok(WrittenFiles { bytes, files }),
        Err(error) => {
            parts.discard();
            directory.discard();
            Err(error)
        }
    }
}

fn fill_parts<U: Units>(
    work: &U,
    parts: &Parts,
    bytes: u64,
    settings: &OutputSettings,
) -> Result<(), OutputError> {
    parts.create_empty()?;
    settings.watch.expect(bytes);
    let step = |buffer: &mut Vec<u8>, unit: u64| {
        let offset = work.make(unit, buffer);
        parts.write(offset, buffer)?;
        settings.watch.advance(buffer.len() as u64);
        Ok(())
    };
    let workers = Workers {
        threads: settings.threads,
        units: work.count(),
        watch: &settings.watch,
    };
    workers.run(|| settings.interrupted(), Vec::new, step)?;
    Ok(())
}

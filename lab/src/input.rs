//! Owns the inputs of experiments: made by datagen, one file each, and read into the page cache before every
//! run. What a right output looks like belongs to the checks.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use datagen::centroids::CentroidsError;
use datagen::output::OutputSettings;
use datagen::rows::RowsError;
use datagen::tera::{self, RECORD_BYTES, TeraError, TeraSettings};
use datagen::text::{self, TextError, TextSettings};
use napreduce_live::ByteSize;

use crate::process::{Interrupt, InterruptError};
use crate::program::BenchmarkJob;
use crate::workspace::WorkError;

/// How much is read at once when warming the page cache.
const WARM_BYTES: usize = 1 << 20;

/// A generated input.
#[derive(Clone, Debug)]
pub struct Input {
    pub file: PathBuf,
    pub bytes: ByteSize,
}

/// An input cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum GeneratedInputError {
    /// The rows to sort cannot be made.
    #[error(transparent)]
    Tera(#[from] TeraError),
    /// The text to count cannot be made.
    #[error(transparent)]
    Text(#[from] TextError),
    /// Movies, associations or edges cannot be made.
    #[error(transparent)]
    Rows(#[from] RowsError),
    #[error(transparent)]
    Centroids(#[from] CentroidsError),
    /// It was made and is not what was asked for.
    #[error("datagen wrote {count} files to {folder} and one was expected")]
    Files { folder: PathBuf, count: usize },
    #[error(transparent)]
    Read(#[from] WorkError),
    /// A signal asked the experiment to end.
    #[error(transparent)]
    Interrupted(#[from] InterruptError),
}

/// Makes an input of about `size` for `program` in `folder`; rows to sort are whole, so theirs may be up to
/// 99 bytes smaller.
///
/// # Errors
///
/// When it cannot be written, and on an interrupt.
pub fn generate(
    program: BenchmarkJob,
    size: ByteSize,
    folder: &Path,
    interrupt: &Interrupt,
) -> Result<Input, GeneratedInputError> {
    let mut output = OutputSettings::new(folder);
    output.watch = interrupt.watch();
    let made = match program {
        BenchmarkJob::Wordcount => {
            text::generate(&TextSettings::new(size.bytes(), output)).map_err(GeneratedInputError::from)
        }
        BenchmarkJob::Terasort => {
            let records = size.bytes() / RECORD_BYTES as u64;
            let settings = TeraSettings { records, start: 0, format: tera::Format::Ascii, output };
            tera::generate(&settings).map_err(GeneratedInputError::from)
        }
    };
    // An interrupt is one kind of error here, whoever noticed it first.
    interrupt.check()?;
    let written = made?;
    match written.files.as_slice() {
        [file] => Ok(Input { file: file.clone(), bytes: ByteSize::new(written.bytes) }),
        files => Err(GeneratedInputError::Files { folder: folder.to_owned(), count: files.len() }),
    }
}

/// Reads a file, or every file of a folder, so that the page cache holds it.
///
/// # Errors
///
/// When it cannot be read, and on an interrupt.
pub fn warm(path: &Path, interrupt: &Interrupt) -> Result<(), GeneratedInputError> {
    let failed = WorkError::using("read", path);
    if path.is_dir() {
        for entry in fs::read_dir(path).map_err(failed)? {
            warm(&entry.map_err(failed)?.path(), interrupt)?;
        }
        return Ok(());
    }
    let mut file = File::open(path).map_err(failed)?;
    let mut buffer = vec![0; WARM_BYTES];
    while file.read(&mut buffer).map_err(failed)? > 0 {
        interrupt.check()?;
    }
    Ok(())
}

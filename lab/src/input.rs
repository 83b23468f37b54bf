//! The inputs of experiments: files that datagen makes, and that are read into the page cache before every run.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use datagen::output::OutputSettings;
use datagen::tera::{self, RECORD_BYTES, TeraSettings};
use datagen::text::{self, TextSettings};
use napreduce_protocol::ByteSize;

use crate::error::cannot;
use crate::process::Interrupt;
use crate::program::BenchmarkJob;

/// How much is read at once when warming the page cache.
const WARM_BYTES: usize = 1 << 20;

#[derive(Clone, Debug)]
pub struct Input {
    pub file: PathBuf,
    pub bytes: ByteSize,
}

/// Makes an input of about `size` for `program` in `folder`; an input of whole rows may be up to 99 bytes
/// smaller.
pub fn generate(
    program: BenchmarkJob,
    size: ByteSize,
    folder: &Path,
    interrupt: &Interrupt,
) -> Result<Input> {
    let mut output = OutputSettings::new(folder);
    output.watch = interrupt.watch();
    let made = match program {
        BenchmarkJob::Wordcount => {
            text::generate(&TextSettings::new(size.bytes(), output)).map_err(anyhow::Error::from)
        }
        BenchmarkJob::Terasort => {
            let records = size.bytes() / RECORD_BYTES as u64;
            let settings = TeraSettings {
                records,
                start: 0,
                format: tera::Format::Ascii,
                output,
            };
            tera::generate(&settings).map_err(anyhow::Error::from)
        }
    };
    // Report an interrupt as such, regardless of the call that noticed it.
    interrupt.check()?;
    let written = made?;
    match written.files.as_slice() {
        [file] => Ok(Input {
            file: file.clone(),
            bytes: ByteSize::new(written.bytes),
        }),
        files => Err(anyhow!(
            "datagen wrote {} files to {} and one was expected",
            files.len(),
            folder.display()
        )),
    }
}

/// Reads a file, or every file of a folder, so that the page cache holds it.
pub fn warm(path: &Path, interrupt: &Interrupt) -> Result<()> {
    let failed = cannot("read", path);
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

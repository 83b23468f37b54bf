//! Output files that are complete or missing, and new directories. Files are written under another name and then
//! renamed; existing ones are replaced only on request.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result, anyhow};

use crate::failure::usage;

/// Writes a file and returns the result of `write`.
///
/// # Errors
/// If the file exists and `overwrite` is not set, or cannot be written; then no part of it is left.
pub fn write_whole<T>(
    output: &Path,
    overwrite: bool,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> Result<T> {
    if !overwrite && output.exists() {
        return Err(usage(anyhow!(
            "{}: already exists; name another file, or pass --overwrite",
            output.display()
        )));
    }
    write_then_rename(output, File::options().write(true).create_new(true), write)
        .with_context(|| format!("cannot write {}", output.display()))
}

/// Writes or replaces a file that only its owner may read.
///
/// # Errors
/// If it cannot be written.
pub fn write_private(output: &Path, bytes: &[u8]) -> Result<()> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    write_then_rename(output, &options, |file| file.write_all(bytes))
        .with_context(|| format!("cannot write {}", output.display()))
}

/// Creates a directory, or accepts an empty one.
///
/// # Errors
/// If it is not empty, or cannot be created or read.
pub fn create_empty(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    let mut inside =
        fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    if inside.next().is_some() {
        return Err(usage(anyhow!(
            "{}: not empty; name another directory",
            directory.display()
        )));
    }
    Ok(())
}

fn write_then_rename<T>(
    output: &Path,
    options: &OpenOptions,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> io::Result<T> {
    let name = output
        .file_name()
        .ok_or_else(|| io::Error::other("not a file name"))?;
    let mut hidden = name.to_owned();
    hidden.push(format!(".{}.partial", std::process::id()));
    let partial = output.with_file_name(hidden);
    let written = options.open(&partial).and_then(|file| {
        let mut file = BufWriter::new(file);
        let result = write(&mut file)?;
        file.flush()?;
        fs::rename(&partial, output).map(|()| result)
    });
    if written.is_err() {
        // Report the first error.
        let _ = fs::remove_file(&partial);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_write_leaves_no_file() {
        let place = tempfile::tempdir().expect("a directory");
        let output = place.path().join("x");
        let broken = write_whole(&output, false, |file| {
            file.write_all(b"half")?;
            Err::<(), _>(io::Error::other("no more"))
        });
        assert!(broken.is_err_and(|error| format!("{error:#}").ends_with("no more")));
        assert_eq!(fs::read_dir(place.path()).expect("it is there").count(), 0);
        let whole = |text: &'static str, overwrite| {
            write_whole(&output, overwrite, |file| file.write_all(text.as_bytes()))
        };
        assert!(whole("one", false).is_ok());
        let refused = whole("two", false).expect_err("it is there").to_string();
        assert!(
            refused.contains("already exists; name another file, or pass --overwrite"),
            "{refused}"
        );
        assert_eq!(fs::read(&output).expect("it is there"), b"one");
        assert!(whole("three", true).is_ok());
        assert_eq!(fs::read(&output).expect("it is there"), b"three");
    }
}

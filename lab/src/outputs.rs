//! Owns what makes two outputs the same: the names and the bytes of their part files, read from the disk.
//! What a program says of its own output counts for nothing here.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

use crate::workspace::{WorkError, remove};

/// What is done to an output that is compared.
pub const READ: &str = "read the output";

/// An output that cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum OutputsError {
    #[error(transparent)]
    File(#[from] WorkError),
    #[error("the output {path} has no part files; did its job succeed?")]
    Empty { path: PathBuf },
}

/// A fingerprint of an output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutputDigest(String);

impl OutputDigest {
    /// That of the part files in `folder`.
    ///
    /// # Errors
    /// When there are none, or they cannot be read.
    pub fn read(folder: &Path) -> Result<OutputDigest, OutputsError> {
        let mut text = String::new();
        for path in output_files(folder).map_err(WorkError::using(READ, folder))? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with("part-") {
                let bytes = fs::read(&path).map_err(WorkError::using(READ, &path))?;
                text.push_str(&format!("{name} {} {:032x}\n", bytes.len(), xxh3_128(&bytes)));
            }
        }
        if text.is_empty() {
            return Err(OutputsError::Empty { path: folder.to_owned() });
        }
        Ok(OutputDigest(format!("{:032x}", xxh3_128(text.as_bytes()))))
    }

    /// The same, of an output that is removed then.
    ///
    /// # Errors
    /// The same, and when it cannot be removed.
    pub fn take(folder: &Path) -> Result<OutputDigest, OutputsError> {
        let digest = OutputDigest::read(folder)?;
        remove(folder)?;
        Ok(digest)
    }
}

/// The files of an output folder that hold records, in name order.
///
/// # Errors
/// When the folder cannot be read.
pub fn output_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(['_', '.']) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(parts: &[(&str, &str)]) -> OutputDigest {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in parts {
            fs::write(folder.path().join(name), text).unwrap();
        }
        OutputDigest::read(folder.path()).unwrap()
    }

    #[test]
    fn every_byte_and_name_of_a_part_counts_and_nothing_else() {
        let one = digest(&[("part-r-00000", "a\n"), ("part-r-00001", "b\n"), ("_SUCCESS", "job_0001")]);
        assert_eq!(
            one,
            digest(&[("part-r-00001", "b\n"), ("part-r-00000", "a\n"), ("_SUCCESS", "job_0002")])
        );
        assert_ne!(one, digest(&[("part-r-00000", "a\n"), ("part-r-00001", "c\n")]));
        assert_ne!(one, digest(&[("part-r-00000", "a\n"), ("part-r-00002", "b\n")]));
        assert_ne!(one, digest(&[("part-r-00000", "a\nb\n"), ("part-r-00001", "")]));
    }

    #[test]
    fn no_output_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = OutputDigest::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("no part files"), "{error}");
        let error = OutputDigest::read(Path::new("/nowhere/out")).unwrap_err().to_string();
        assert!(error.contains("cannot read the output /nowhere/out"), "{error}");
    }
}

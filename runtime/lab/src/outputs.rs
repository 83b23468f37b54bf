//! Owns what makes two outputs the same: the names and the bytes of their part files, read from the disk.
//! What a program says of its own output counts for nothing here.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

/// An output that cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum OutputsError {
    #[error("cannot read the output {path}: {source}")]
    Read {
        /// A file or folder.
        path: PathBuf,
        source: io::Error,
    },
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
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| OutputsError::Read { path, source }
        };
        let mut parts: Vec<(String, PathBuf)> = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed(folder))? {
            let entry = entry.map_err(failed(folder))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("part-") {
                parts.push((name, entry.path()));
            }
        }
        if parts.is_empty() {
            return Err(OutputsError::Empty { path: folder.to_owned() });
        }
        parts.sort();
        let mut text = String::new();
        for (name, path) in parts {
            let bytes = fs::read(&path).map_err(failed(&path))?;
            text.push_str(&format!("{name} {} {:032x}\n", bytes.len(), xxh3_128(&bytes)));
        }
        Ok(OutputDigest(format!("{:032x}", xxh3_128(text.as_bytes()))))
    }
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

//! A temporary folder with the input and output of one test.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A temporary folder, removed at the end of the test.
pub struct Folder(TempDir);

impl Default for Folder {
    fn default() -> Folder {
        Folder::new()
    }
}

impl Folder {
    /// Creates an empty folder.
    pub fn new() -> Folder {
        Folder(
            tempfile::Builder::new()
                .prefix("napreduce-test-")
                .tempdir()
                .expect("a temporary folder"),
        )
    }

    /// Returns the path of a name in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file and creates its parent folders.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).expect("a folder for the file");
        }
        std::fs::write(&path, content).expect("a written file");
        path
    }

    /// Returns whether a file or folder of this name exists.
    pub fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Returns the folder itself.
    pub fn root(&self) -> &Path {
        self.0.path()
    }
}

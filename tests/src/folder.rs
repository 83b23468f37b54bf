//! A temporary folder with the input and output of one test.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder that is removed when the test ends.
pub struct Folder(TempDir);

impl Default for Folder {
    fn default() -> Folder {
        Folder::new()
    }
}

impl Folder {
    /// An empty folder.
    pub fn new() -> Folder {
        Folder(tempfile::Builder::new().prefix("napreduce-test-").tempdir().expect("a temporary folder"))
    }

    /// The path of something in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, with the folders it lies in.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).expect("a folder for the file");
        }
        std::fs::write(&path, content).expect("a written file");
        path
    }

    /// Whether something of that name is there.
    pub fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        self.0.path()
    }
}

//! A temporary folder of one test.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

static MADE: AtomicU64 = AtomicU64::new(0);

/// Removed when dropped.
pub(super) struct Folder {
    path: PathBuf,
}

fn unused() -> PathBuf {
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("napreduce-test-{}-{number}", std::process::id()))
}

impl Folder {
    pub(super) fn make() -> Folder {
        let path = unused();
        fs::create_dir_all(&path)
            .unwrap_or_else(|error| panic!("cannot create {}: {error}", path.display()));
        Folder { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns an existing folder in it.
    pub(super) fn inner(&self, name: &str) -> PathBuf {
        let path = self.path.join(name);
        fs::create_dir_all(&path)
            .unwrap_or_else(|error| panic!("cannot create {}: {error}", path.display()));
        path
    }

    /// Moves the folder to another path.
    pub(super) fn go_elsewhere(&mut self) {
        let path = unused();
        fs::rename(&self.path, &path)
            .unwrap_or_else(|error| panic!("cannot move {}: {error}", self.path.display()));
        self.path = path;
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Failing to remove a folder must not fail a test, least of all one that already fails.
        let _ = fs::remove_dir_all(&self.path);
    }
}

//! A folder of a test's own.
//!
//! Owns its making, its moving elsewhere and its removal. Does not own what is in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

static MADE: AtomicU64 = AtomicU64::new(0);

/// Removed when it is dropped.
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
        fs::create_dir_all(&path).unwrap_or_else(|error| panic!("cannot create {}: {error}", path.display()));
        Folder { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// An existing folder in it.
    pub(super) fn inner(&self, name: &str) -> PathBuf {
        let path = self.path.join(name);
        fs::create_dir_all(&path).unwrap_or_else(|error| panic!("cannot create {}: {error}", path.display()));
        path
    }

    /// Everything in it is found under another path from now on, and nowhere else.
    pub(super) fn go_elsewhere(&mut self) {
        let path = unused();
        fs::rename(&self.path, &path)
            .unwrap_or_else(|error| panic!("cannot move {}: {error}", self.path.display()));
        self.path = path;
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that cannot be removed is no reason to fail a test, least of all one that fails already.
        let _ = fs::remove_dir_all(&self.path);
    }
}

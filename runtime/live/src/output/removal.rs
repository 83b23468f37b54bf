//! The removal of `_temporary`, which at the end of a job stands between the last reduce and success.
//!
//! Owns doing it on several threads: the kernel gives back the memory of a gigabyte of segments at some 0.1 s, which is
//! much of a job that takes one. Does not own when it is due.

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread;

use super::layout::JobPaths;

/// More threads do not help: they wait for each other in the file system.
const THREADS_MAX: usize = 4;
/// Fewer files than this for each thread are not worth one.
const FILES_MIN: usize = 2;

/// Removes `_temporary` with everything in it; fine if there is none.
pub(super) fn remove_temporary(paths: &JobPaths) -> io::Result<()> {
    // What is missed here, the second step removes.
    if let Ok(entries) = fs::read_dir(paths.shuffle()) {
        let segments: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(THREADS_MAX);
        let share = segments.len().div_ceil(cores).max(FILES_MIN);
        thread::scope(|scope| {
            let (own, others) = segments.split_at(share.min(segments.len()));
            for part in others.chunks(share) {
                scope.spawn(|| remove_files(part));
            }
            remove_files(own);
        });
    }
    match fs::remove_dir_all(paths.temporary()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn remove_files(files: &[PathBuf]) {
    for file in files {
        let _ = fs::remove_file(file);
    }
}

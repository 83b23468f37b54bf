//! The removal of `_temporary`, which at the end of a job stands between the last reduce and success.
//!
//! Owns doing it on several threads: the kernel gives back the memory of a gigabyte of segments at some 0.1 s, which is
//! much of a job that takes one. Does not own when it is due.

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;

use super::layout::JobPaths;

/// More threads do not help: they wait for each other in the file system.
const THREADS_MAX: usize = 4;
/// Fewer files than this for each thread are not worth one.
const FILES_MIN: usize = 2;
/// A directory that is never empty is somebody's who writes without end.
const TRIES_MAX: usize = 100;

/// Removes `_temporary` with everything in it; fine if there is none.
///
/// It is renamed first: attempts of a worker that was given up may live on, and make directories and files by its name
/// while it is being emptied. Then they fail, as they shall.
pub(super) fn remove_temporary(paths: &JobPaths) -> io::Result<()> {
    let ended = paths.ended();
    // Of a coordinator that died while it did this.
    remove_tree(&ended)?;
    match fs::rename(paths.temporary(), &ended) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        renamed => renamed?,
    }
    // What is missed here, the second step removes.
    let shuffle = paths.shuffle();
    let shuffle = shuffle.strip_prefix(paths.temporary()).map(|inside| ended.join(inside));
    if let Some(entries) = shuffle.ok().and_then(|shuffle| fs::read_dir(shuffle).ok()) {
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
    remove_tree(&ended)
}

/// Somebody may have come by the old name just before it was renamed, and put something in a directory that was already
/// listed; nobody can do so for long.
fn remove_tree(directory: &Path) -> io::Result<()> {
    let mut tries = 0;
    loop {
        match fs::remove_dir_all(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && tries < TRIES_MAX => tries += 1,
            removed => return removed,
        }
    }
}

fn remove_files(files: &[PathBuf]) {
    for file in files {
        let _ = fs::remove_file(file);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use napreduce_core::JobId;

    use super::*;

    #[test]
    fn it_goes_away_under_the_hands_of_attempts_that_were_given_up() {
        for _ in 0..5 {
            let directory = tempfile::tempdir().expect("a directory");
            let paths = JobPaths::new(directory.path(), JobId(1), "");
            fs::create_dir_all(paths.shuffle()).expect("made");
            fs::create_dir_all(paths.ended().join("job_0001")).expect("made");
            let over = AtomicBool::new(false);
            thread::scope(|scope| {
                let job = paths.shuffle().parent().expect("a parent").to_owned();
                let over = &over;
                for name in ["a", "b"] {
                    let job = job.clone();
                    scope.spawn(move || {
                        for number in 0.. {
                            let attempt = job.join(format!("{name}{number}"));
                            let written =
                                fs::create_dir(&attempt).and_then(|()| fs::write(attempt.join("part"), name));
                            if over.load(Ordering::Relaxed) || written.is_err() {
                                return;
                            }
                        }
                    });
                }
                while fs::read_dir(&job).expect("a directory").count() < 100 {}
                let removed = remove_temporary(&paths);
                over.store(true, Ordering::Relaxed);
                removed.expect("removed");
            });
            assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 0);
            remove_temporary(&paths).expect("there is none");
        }
    }
}

//! Removes a retired `_temporary` at the end of a job. Several threads delete segments: the kernel takes
//! about 0.1 s to free the memory of a gigabyte, which is long for a job of one second.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::{io, thread};

use super::layout::retired;
use super::storage::{Storage, StorageError};
use super::trouble::Trouble;

/// Maximum threads. More do not help: they contend in the file system.
const THREADS_MAX: usize = 4;
/// Minimum files per thread; fewer do not justify a thread.
const FILES_MIN: usize = 2;
/// Maximum retries after `DirectoryNotEmpty`; more mean that a process keeps writing to the directory.
const TRIES_MAX: usize = 100;

/// Removes the retired `_temporary` of a submission with its contents; succeeds if there is none. The removal survives a
/// power loss: afterwards nobody looks for the directory again.
///
/// Attempts of a lost worker may still be running and may create files under the old path during the removal.
/// They fail once the directory is removed.
pub(super) fn remove_retired(storage: &Storage, submission: u128) -> Result<(), Trouble> {
    let retired = retired(submission);
    // Errors are ignored here: `remove_tree` below removes the remaining files or reports the error.
    for work in storage.names(&retired).unwrap_or_default() {
        let shuffle = retired.join(work).join("shuffle");
        let names = storage.names(&shuffle).unwrap_or_default();
        let segments: Vec<PathBuf> = names.into_iter().map(|name| shuffle.join(name)).collect();
        let share = share_of(segments.len(), FILES_MIN);
        in_shares(&segments, share, |files| {
            for file in files {
                // `remove_tree` below removes the file if this fails.
                let _ = storage.remove_file(file);
            }
        });
    }
    remove_tree(storage, &retired)?;
    Ok(storage.sync_directory(Path::new(""))?)
}

/// Returns how many of `count` items each thread processes, at least `at_least`.
pub(super) fn share_of(count: usize, at_least: usize) -> usize {
    let cores = thread::available_parallelism()
        .map_or(1, NonZeroUsize::get)
        .min(THREADS_MAX);
    count.div_ceil(cores).max(at_least)
}

/// Applies a function to shares of a list in parallel; returns the result of each share.
pub(super) fn in_shares<T: Sync, R: Send>(
    list: &[T],
    share: usize,
    act: impl Fn(&[T]) -> R + Sync,
) -> Vec<R> {
    thread::scope(|scope| {
        let (own, others) = list.split_at(share.min(list.len()));
        let others: Vec<_> = others
            .chunks(share)
            .map(|part| scope.spawn(|| act(part)))
            .collect();
        let own = act(own);
        // The scope propagates a thread's panic when it ends.
        std::iter::once(own)
            .chain(others.into_iter().filter_map(|thread| thread.join().ok()))
            .collect()
    })
}

/// Removes a directory. Retries if a process that opened the old path before the rename adds files to a
/// directory that was already listed.
fn remove_tree(storage: &Storage, directory: &Path) -> Result<(), StorageError> {
    let mut tries = 0;
    loop {
        match storage.remove_tree(directory) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && tries < TRIES_MAX => {
                tries += 1
            }
            removed => return removed,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::super::layout::TEMPORARY;
    use super::super::obstacles::set_aside;
    use super::super::storage::Disk;
    use super::*;

    #[test]
    fn removal_succeeds_while_attempts_still_write() {
        for _ in 0..5 {
            let directory = tempfile::tempdir().expect("a directory");
            let job = directory.path().join(TEMPORARY).join("job_0001-7");
            fs::create_dir_all(job.join("shuffle")).expect("made");
            fs::create_dir_all(directory.path().join(retired(7)).join("job_0001-7")).expect("made");
            let storage = Disk::default()
                .open_unsynced(directory.path())
                .expect("opened");
            let over = AtomicBool::new(false);
            thread::scope(|scope| {
                let over = &over;
                for name in ["a", "b"] {
                    let job = job.clone();
                    scope.spawn(move || {
                        for number in 0.. {
                            let attempt = job.join(format!("{name}{number}"));
                            let written = fs::create_dir(&attempt)
                                .and_then(|()| fs::write(attempt.join("part"), name));
                            if over.load(Ordering::Relaxed) || written.is_err() {
                                return;
                            }
                        }
                    });
                }
                while fs::read_dir(&job).expect("a directory").count() < 100 {}
                let removed =
                    set_aside(&storage, None, 7).and_then(|()| remove_retired(&storage, 7));
                over.store(true, Ordering::Relaxed);
                removed.expect("removed");
            });
            assert_eq!(
                fs::read_dir(directory.path()).expect("a directory").count(),
                0
            );
            remove_retired(&storage, 7).expect("there is none");
        }
    }
}

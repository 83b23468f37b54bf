//! The directory of a worker of a cluster: creation, lock, name, and cleanup when a life of the worker
//! begins.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use napreduce_local::process::{Life, ProcessIdentity};
use napreduce_local::world::disk::RealDisk;
use napreduce_local::world::{Random, World};
use napreduce_protocol::{IoResult, open_regular_with, read_regular};
use napreduce_task::{directories_of_workers, end_processes_of};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::error::WorkerError;
use super::paths::WorkerPaths;
use crate::cluster_directory::ClusterDirectory;
use crate::directory_mark::{DirectoryKind, DirectoryMarkError, take_directory};

/// Maximum length of the files with one line.
const LINE_BYTES_MAX: u64 = 4 << 10;
/// Maximum number of directories of unnamed workers to try before creating a new one.
const NAMELESS_MAX: usize = 10_000;

/// A directory locked by this process.
#[derive(Debug)]
pub(super) struct WorkerDirectory {
    pub(super) paths: WorkerPaths,
    pub(super) name: String,
    /// Random number of this start of the daemon.
    pub(super) incarnation: u64,
    _lock: File,
}

impl WorkerDirectory {
    /// Takes the requested directory, or one below `workers`.
    pub(super) fn take(
        world: &World,
        name: Option<&str>,
        directory: Option<&Path>,
        workers: &Path,
    ) -> Result<WorkerDirectory, WorkerError> {
        if let Some(name) = name {
            check_name(name)?;
        }
        match (directory, name) {
            (Some(directory), name) => WorkerDirectory::open(world, directory, name),
            (None, Some(name)) => WorkerDirectory::open(world, &workers.join(name), Some(name)),
            (None, None) => WorkerDirectory::take_nameless(world, workers),
        }
    }

    /// Takes a free directory that an earlier daemon of this host created, or a new one. Starting three
    /// unnamed workers twice uses the same three directories.
    fn take_nameless(world: &World, workers: &Path) -> Result<WorkerDirectory, WorkerError> {
        let prefix = format!("{}-", host_name(world));
        let mut names = Vec::new();
        let listed = fs::read_dir(workers)
            .if_there()
            .map_err(WorkerError::io(format!("list {}", workers.display())))?;
        for entry in listed.into_iter().flatten().flatten() {
            if let Ok(name) = entry.file_name().into_string()
                && is_made_up(&name, &prefix)
                && names.len() < NAMELESS_MAX
            {
                names.push(name);
            }
        }
        names.sort();
        for name in names {
            match WorkerDirectory::open(world, &workers.join(&name), Some(&name)) {
                Err(
                    WorkerError::Locked { .. }
                    | WorkerError::Mark(DirectoryMarkError::NotOurs { .. }),
                ) => {}
                opened => return opened,
            }
        }
        let name = made_up_name(world)?;
        WorkerDirectory::open(world, &workers.join(&name), Some(&name))
    }

    /// Locks a directory, creates it if it is missing, and removes what jobs of an earlier daemon left. Fails
    /// if the directory contains foreign files.
    fn open(
        world: &World,
        directory: &Path,
        asked: Option<&str>,
    ) -> Result<WorkerDirectory, WorkerError> {
        let absolute = std::path::absolute(directory);
        let root = absolute.map_err(WorkerError::io(format!("find {}", directory.display())))?;
        let paths = WorkerPaths::new(root);
        make(paths.root())?;
        take_directory(
            &RealDisk,
            paths.root(),
            DirectoryKind::Worker,
            |_| true,
            || made_before_marks(&paths),
        )?;
        let lock = lock(&paths)?;
        let name = settle_name(world, &paths, asked)?;
        let incarnation = draw(&world.random)?;
        let directory = WorkerDirectory {
            paths,
            name,
            incarnation,
            _lock: lock,
        };
        clear_jobs(&directory.paths)?;
        make(&directory.paths.logs())?;
        write(&directory.paths.process(), &identity(world)?)?;
        write(
            &directory.paths.incarnation(),
            &format!("{incarnation:016x}\n"),
        )?;
        Ok(directory)
    }
}

/// Ends the processes that killed workers of a cluster directory have left on this machine, also of workers that are
/// not started again. Workers that live are left alone. Blocking.
///
/// ```no_run
/// let directory = napreduce_cluster::ClusterDirectory::resolve(None)?;
/// napreduce_cluster::end_leftovers(&directory);
/// # Ok::<(), napreduce_cluster::ClusterDirectoryError>(())
/// ```
pub fn end_leftovers(directory: &ClusterDirectory) {
    let workers = directory.path().join("workers");
    for worker in directories_of_workers() {
        if worker.parent() != Some(&workers) {
            continue;
        }
        let paths = WorkerPaths::new(worker);
        // A live worker holds the lock. A worker that is being started does this itself.
        if let Ok(_lock) = lock(&paths) {
            end_processes_of(paths.root());
        }
    }
}

/// Removes everything that jobs need only while they run. Blocking.
pub(super) fn clear_jobs(paths: &WorkerPaths) -> Result<(), WorkerError> {
    remove(&paths.jobs())?;
    make(&paths.jobs())
}

/// Removes logs of jobs numbered by another journal, whose numbers are reused; returns whether there were
/// any. Blocking.
pub(super) fn keep_logs_of(paths: &WorkerPaths, journal: u64) -> Result<bool, WorkerError> {
    let text = format!("{journal:016x}\n");
    if read_regular(&paths.journal(), LINE_BYTES_MAX).is_ok_and(|found| found == text.as_bytes()) {
        return Ok(false);
    }
    remove(&paths.logs())?;
    make(&paths.logs())?;
    write(&paths.journal(), &text)?;
    Ok(true)
}

/// Returns whether another worker's directory is visible here: it contains the same incarnation number.
pub(super) fn is_within_sight(directory: &Path, incarnation: u64) -> bool {
    let found = read_regular(&WorkerPaths::new(directory).incarnation(), LINE_BYTES_MAX);
    found.is_ok_and(|found| found == format!("{incarnation:016x}\n").as_bytes())
}

/// Returns whether the daemon of a visible directory is also a process visible here.
pub(super) fn is_neighbour(world: &World, directory: &Path) -> bool {
    let Ok(text) = read_regular(&WorkerPaths::new(directory).process(), LINE_BYTES_MAX) else {
        return false;
    };
    match serde_json::from_slice::<ProcessIdentity>(&text) {
        Ok(process) => matches!(world.process.life_of(&process), Ok(Life::Alive)),
        Err(_) => false,
    }
}

fn identity(world: &World) -> Result<String, WorkerError> {
    let identity = world
        .process
        .identity()
        .and_then(|process| Ok(serde_json::to_string(&process)?));
    identity
        .map(|text| text + "\n")
        .map_err(WorkerError::io("identify this process"))
}

/// Returns this host's own name.
pub(super) fn host_name(world: &World) -> String {
    let name = world.process.host();
    let clean: String = name
        .chars()
        .filter(|character| is_valid_in_name(*character))
        .collect();
    let clean = clean.trim_start_matches('.');
    if clean.is_empty() {
        String::from("worker")
    } else {
        clean.chars().take(48).collect()
    }
}

fn made_up_name(world: &World) -> Result<String, WorkerError> {
    let number = draw(&world.random)? & 0xff_ffff;
    Ok(format!("{}-{number:06x}", host_name(world)))
}

fn is_made_up(name: &str, prefix: &str) -> bool {
    match name.strip_prefix(prefix) {
        Some(number) => number.len() == 6 && number.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => false,
    }
}

fn draw(random: &Random) -> Result<u64, WorkerError> {
    random
        .number()
        .map_err(WorkerError::io("get a random number"))
}

fn check_name(name: &str) -> Result<(), WorkerError> {
    let is_valid = (1..=64).contains(&name.len())
        && name.chars().all(is_valid_in_name)
        && !name.starts_with('.');
    if !is_valid {
        return Err(WorkerError::Name {
            name: name.to_owned(),
        });
    }
    Ok(())
}

fn is_valid_in_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-_.".contains(character)
}

/// Settles the worker's name: requested, stored in the directory, or new. Stores it in the directory.
fn settle_name(
    world: &World,
    paths: &WorkerPaths,
    asked: Option<&str>,
) -> Result<String, WorkerError> {
    match (read_name(&paths.name())?, asked) {
        (Some(found), Some(asked)) if found != asked => Err(WorkerError::OtherName {
            path: paths.root().to_owned(),
            found,
            asked: asked.to_owned(),
        }),
        (Some(found), _) => Ok(found),
        (None, asked) => {
            let name = match asked {
                Some(asked) => asked.to_owned(),
                None => made_up_name(world)?,
            };
            write(&paths.name(), &format!("{name}\n"))?;
            Ok(name)
        }
    }
}

/// Reads the name in a directory; `None` if there is no valid one.
fn read_name(file: &Path) -> Result<Option<String>, WorkerError> {
    let read = read_regular(file, LINE_BYTES_MAX).if_there();
    let Some(bytes) = read.map_err(WorkerError::io(format!("read {}", file.display())))? else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&bytes);
    let name = text.trim();
    if check_name(name).is_err() {
        return Ok(None);
    }
    Ok(Some(name.to_owned()))
}

/// Returns whether a worker of a version without marks has started here.
fn made_before_marks(paths: &WorkerPaths) -> bool {
    let number = read_regular(&paths.incarnation(), LINE_BYTES_MAX).unwrap_or_default();
    let number = String::from_utf8_lossy(&number);
    let is_number = number.len() == 17 && u64::from_str_radix(number.trim_end(), 16).is_ok();
    is_number && paths.name().is_file() && paths.lock().is_file()
}

fn lock(paths: &WorkerPaths) -> Result<File, WorkerError> {
    let path = paths.lock();
    let failed = |source| WorkerError::io(format!("lock {}", path.display()))(source);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = open_regular_with(&options, &path).map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(WorkerError::Locked {
            path: paths.root().to_owned(),
        }),
        Err(error) => Err(failed(error.into())),
    }
}

pub(super) fn make(directory: &Path) -> Result<(), WorkerError> {
    let made = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory);
    made.map_err(WorkerError::io(format!("create {}", directory.display())))
}

fn remove(directory: &Path) -> Result<(), WorkerError> {
    let removed = fs::remove_dir_all(directory).if_there().map(drop);
    removed.map_err(WorkerError::io(format!("remove {}", directory.display())))
}

/// Writes a file atomically.
fn write(path: &Path, text: &str) -> Result<(), WorkerError> {
    let unfinished: PathBuf = path.with_extension("new");
    let written = fs::write(&unfinished, text).and_then(|()| fs::rename(&unfinished, path));
    written.map_err(WorkerError::io(format!("write {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(name: Option<&str>, workers: &Path) -> Result<WorkerDirectory, String> {
        WorkerDirectory::take(&World::real(), name, None, workers)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn second_daemon_in_directory_is_refused() {
        let place = tempfile::tempdir().expect("a directory");
        let first = take(Some("one"), place.path()).expect("a free directory");
        let error = take(Some("one"), place.path()).expect_err("it is in use");
        assert!(
            error.starts_with("another worker is running in "),
            "{error}"
        );
        drop(first);
        take(Some("one"), place.path()).expect("a free directory");
    }

    #[test]
    fn generated_worker_names_are_distinct_and_stable() {
        let place = tempfile::tempdir().expect("a directory");
        let names = || {
            let homes = [(); 3].map(|()| take(None, place.path()).expect("a directory"));
            let mut names = homes.map(|directory| directory.name);
            names.sort();
            names
        };
        let first = names();
        assert!(first[0] != first[1] && first[1] != first[2], "{first:?}");
        assert_eq!(names(), first);
    }

    #[test]
    fn restart_keeps_logs_and_removes_job_files() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = place.path().join("here");
        let open =
            |name| WorkerDirectory::take(&World::real(), name, Some(&directory), place.path());
        let directory = open(None).expect("a directory");
        let name = directory.name.clone();
        let incarnation = directory.incarnation;
        fs::create_dir_all(directory.paths.jobs().join("job_0001/shuffle")).expect("made");
        fs::create_dir_all(directory.paths.logs().join("job_0001")).expect("made");
        drop(directory);
        let error = open(Some("other"))
            .expect_err("it has another name")
            .to_string();
        assert!(
            error.contains(&format!("belongs to worker {name}, not other")),
            "{error}"
        );
        let directory = open(None).expect("a directory");
        assert_eq!(directory.name, name);
        assert_ne!(directory.incarnation, incarnation);
        assert!(directory.paths.logs().join("job_0001").exists());
        assert!(!directory.paths.jobs().join("job_0001").exists());
        assert!(is_within_sight(
            directory.paths.root(),
            directory.incarnation
        ));
        assert!(!is_within_sight(directory.paths.root(), incarnation));
        let world = World::real();
        assert!(is_neighbour(&world, directory.paths.root()));
        assert!(!is_neighbour(&world, place.path()));
    }

    #[test]
    fn foreign_directory_is_refused_and_unchanged() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = place.path().join("project");
        for kept in ["jobs", "logs"] {
            fs::create_dir_all(directory.join(kept)).expect("made");
            fs::write(directory.join(kept).join("mine"), "").expect("written");
        }
        let error = WorkerDirectory::take(&World::real(), None, Some(&directory), place.path())
            .expect_err("it is another worker's");
        assert_eq!(error.exit_status(), 2);
        assert!(
            error
                .to_string()
                .contains("choose an empty or new directory"),
            "{error}"
        );
        for kept in ["jobs", "logs"] {
            assert!(directory.join(kept).join("mine").exists());
        }
        assert_eq!(fs::read_dir(&directory).expect("a directory").count(), 2);
    }

    #[test]
    fn directory_of_earlier_version_is_accepted() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = take(Some("one"), place.path()).expect("a directory");
        fs::remove_file(directory.paths.root().join(crate::directory_mark::MARK))
            .expect("there is a mark");
        drop(directory);
        take(Some("one"), place.path()).expect("it was a worker's before");
    }

    #[test]
    fn logs_of_another_journal_are_removed() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = take(Some("one"), place.path()).expect("a directory");
        let log = directory.paths.logs().join("job_0001");
        for (journal, kept) in [(7, false), (7, true), (8, false)] {
            fs::create_dir_all(&log).expect("made");
            assert_eq!(
                keep_logs_of(&directory.paths, journal).expect("looked"),
                !kept
            );
            assert_eq!(log.exists(), kept);
        }
    }

    #[test]
    fn worker_name_with_directories_is_invalid() {
        let place = tempfile::tempdir().expect("a directory");
        for name in [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            ".hidden",
            "a b",
            &"x".repeat(65),
        ] {
            let error = take(Some(name), place.path()).expect_err("no such name");
            assert!(error.contains("invalid worker name"), "{error}");
        }
    }
}

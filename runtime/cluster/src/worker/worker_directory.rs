//! The directory of a worker of a cluster: creation, lock, name, and cleanup when a life of the worker
//! begins.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use napreduce_local::locked_file::{LockedFile, Locking, try_lock};
use napreduce_local::process::{Life, ProcessIdentity};
use napreduce_local::world::disk::RealDisk;
use napreduce_local::world::{Random, World};
use napreduce_protocol::{IoResult, open_regular_with, read_regular};
use napreduce_task::{directories_of_workers, end_processes_of};

use super::error::WorkerError;
use super::paths::WorkerPaths;
use crate::cluster_directory::ClusterDirectory;
use crate::directory_mark::{DirectoryKind, DirectoryMarkError, take_directory};

/// Maximum length of the files with one line.
const LINE_BYTES_MAX: u64 = 4 << 10;
/// Maximum number of directories of unnamed workers to try before creating a new one.
const UNNAMED_MAX: usize = 10_000;

/// A directory locked by this process.
#[derive(Debug)]
pub(super) struct WorkerDirectory {
    pub(super) paths: WorkerPaths,
    pub(super) name: String,
    /// Random number of this start of the daemon.
    pub(super) incarnation: u64,
    /// Held while the daemon lives.
    _lock: LockedFile,
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
            (None, None) => WorkerDirectory::take_unnamed(world, workers),
        }
    }

    /// Takes a free directory that an earlier daemon of this host created, or a new one. Starting three
    /// unnamed workers twice uses the same three directories.
    fn take_unnamed(world: &World, workers: &Path) -> Result<WorkerDirectory, WorkerError> {
        for name in generated_names(world, workers)? {
            match WorkerDirectory::open(world, &workers.join(&name), Some(&name)) {
                Err(
                    WorkerError::Locked { .. }
                    | WorkerError::Mark(DirectoryMarkError::NotOurs { .. }),
                ) => {}
                opened => return opened,
            }
        }
        let name = generate_name(world)?;
        WorkerDirectory::open(world, &workers.join(&name), Some(&name))
    }

    /// Locks a directory, creates it if it is missing, and removes what jobs of an earlier daemon left. Fails
    /// if the directory contains foreign files.
    fn open(
        world: &World,
        directory: &Path,
        requested_name: Option<&str>,
    ) -> Result<WorkerDirectory, WorkerError> {
        let absolute = std::path::absolute(directory);
        let root = absolute.map_err(WorkerError::io(format!("find {}", directory.display())))?;
        let paths = WorkerPaths::new(root);
        make_directory(paths.root())?;
        let is_foreign = |_: &str| true;
        let made_before = || is_of_version_without_marks(&paths);
        take_directory(
            &RealDisk,
            paths.root(),
            DirectoryKind::Worker,
            is_foreign,
            made_before,
        )?;
        let lock = lock(&paths)?;
        let name = settle_name(world, &paths, requested_name)?;
        let incarnation = random_number(&world.random)?;
        clear_jobs(&paths)?;
        make_directory(&paths.logs())?;
        write_atomically(&paths.process(), &identity(world)?)?;
        write_atomically(&paths.incarnation(), &incarnation_line(incarnation))?;
        Ok(WorkerDirectory {
            paths,
            name,
            incarnation,
            _lock: lock,
        })
    }
}

/// Returns the sorted names of directories that earlier unnamed workers of this host created.
fn generated_names(world: &World, workers: &Path) -> Result<Vec<String>, WorkerError> {
    let listed = fs::read_dir(workers)
        .if_there()
        .map_err(WorkerError::io(format!("list {}", workers.display())))?;
    let Some(entries) = listed else {
        return Ok(Vec::new());
    };
    let prefix = format!("{}-", host_name(world));
    let mut names = Vec::new();
    for entry in entries {
        // An entry that cannot be read is skipped; a new directory takes its place.
        let Ok(entry) = entry else { continue };
        if let Ok(name) = entry.file_name().into_string()
            && is_generated_name(&name, &prefix)
            && names.len() < UNNAMED_MAX
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
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
    remove_directory(&paths.jobs())?;
    make_directory(&paths.jobs())
}

/// Removes logs of jobs numbered by another journal, whose numbers are reused; returns whether there were
/// any. Blocking.
pub(super) fn remove_logs_of_other_journals(
    paths: &WorkerPaths,
    journal: u64,
) -> Result<bool, WorkerError> {
    let line = format!("{journal:016x}\n");
    if contains_line(&paths.journal(), &line) {
        return Ok(false);
    }
    remove_directory(&paths.logs())?;
    make_directory(&paths.logs())?;
    write_atomically(&paths.journal(), &line)?;
    Ok(true)
}

/// Returns whether another worker's directory is visible here: it contains the same incarnation number.
pub(super) fn is_visible(directory: &Path, incarnation: u64) -> bool {
    let path = WorkerPaths::new(directory).incarnation();
    contains_line(&path, &incarnation_line(incarnation))
}

fn incarnation_line(incarnation: u64) -> String {
    format!("{incarnation:016x}\n")
}

/// Returns whether a file can be read and contains exactly this line.
fn contains_line(path: &Path, line: &str) -> bool {
    match read_regular(path, LINE_BYTES_MAX) {
        Ok(found) => found == line.as_bytes(),
        Err(_) => false,
    }
}

/// Returns whether the daemon of a visible directory is also a process visible here.
pub(super) fn has_visible_process(world: &World, directory: &Path) -> bool {
    let Ok(text) = read_regular(&WorkerPaths::new(directory).process(), LINE_BYTES_MAX) else {
        return false;
    };
    match serde_json::from_slice::<ProcessIdentity>(&text) {
        Ok(process) => matches!(world.process.life_of(&process), Ok(Life::Alive)),
        Err(_) => false,
    }
}

/// Returns the line that identifies the daemon's process.
fn identity(world: &World) -> Result<String, WorkerError> {
    let process = world
        .process
        .identity()
        .map_err(WorkerError::io("identify this process"))?;
    let text = serde_json::to_string(&process)
        .map_err(io::Error::from)
        .map_err(WorkerError::io("identify this process"))?;
    Ok(text + "\n")
}

/// Returns this host's name as a part of a worker's name.
pub(super) fn host_name(world: &World) -> String {
    let mut valid = world.process.host();
    valid.retain(is_valid_in_name);
    let name = valid.trim_start_matches('.');
    if name.is_empty() {
        return String::from("worker");
    }
    name.chars().take(48).collect()
}

/// Returns a new name for a worker without one: its host and a random number.
fn generate_name(world: &World) -> Result<String, WorkerError> {
    let number = random_number(&world.random)? & 0xff_ffff;
    Ok(format!("{}-{number:06x}", host_name(world)))
}

fn is_generated_name(name: &str, prefix: &str) -> bool {
    match name.strip_prefix(prefix) {
        Some(number) => number.len() == 6 && number.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => false,
    }
}

fn random_number(random: &Random) -> Result<u64, WorkerError> {
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
    requested: Option<&str>,
) -> Result<String, WorkerError> {
    let stored = read_name(&paths.name())?;
    if let Some(found) = stored {
        if let Some(requested) = requested
            && found != requested
        {
            return Err(WorkerError::OtherName {
                path: paths.root().to_owned(),
                found,
                asked: requested.to_owned(),
            });
        }
        return Ok(found);
    }
    let name = match requested {
        Some(requested) => requested.to_owned(),
        None => generate_name(world)?,
    };
    write_atomically(&paths.name(), &format!("{name}\n"))?;
    Ok(name)
}

/// Reads the name in a directory; `None` if there is no valid one.
fn read_name(file: &Path) -> Result<Option<String>, WorkerError> {
    let found = read_regular(file, LINE_BYTES_MAX)
        .if_there()
        .map_err(WorkerError::io(format!("read {}", file.display())))?;
    let Some(bytes) = found else {
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
fn is_of_version_without_marks(paths: &WorkerPaths) -> bool {
    let line = read_regular(&paths.incarnation(), LINE_BYTES_MAX).unwrap_or_default();
    let line = String::from_utf8_lossy(&line);
    let is_incarnation = line.len() == 17 && u64::from_str_radix(line.trim_end(), 16).is_ok();
    is_incarnation && paths.name().is_file() && paths.lock().is_file()
}

fn lock(paths: &WorkerPaths) -> Result<LockedFile, WorkerError> {
    let path = paths.lock();
    let failed = |source| WorkerError::io(format!("lock {}", path.display()))(source);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = open_regular_with(&options, &path).map_err(failed)?;
    match try_lock(file).map_err(failed)? {
        Locking::Held(lock) => Ok(lock),
        Locking::Busy => Err(WorkerError::Locked {
            path: paths.root().to_owned(),
        }),
    }
}

pub(super) fn make_directory(directory: &Path) -> Result<(), WorkerError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(WorkerError::io(format!("create {}", directory.display())))
}

fn remove_directory(directory: &Path) -> Result<(), WorkerError> {
    fs::remove_dir_all(directory)
        .if_there()
        .map_err(WorkerError::io(format!("remove {}", directory.display())))?;
    Ok(())
}

/// Writes a file atomically. A power failure may lose it.
fn write_atomically(path: &Path, text: &str) -> Result<(), WorkerError> {
    let doing = format!("write {}", path.display());
    let unfinished = path.with_extension("new");
    fs::write(&unfinished, text).map_err(WorkerError::io(doing.clone()))?;
    fs::rename(&unfinished, path).map_err(WorkerError::io(doing))
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
        assert!(is_visible(directory.paths.root(), directory.incarnation));
        assert!(!is_visible(directory.paths.root(), incarnation));
        let world = World::real();
        assert!(has_visible_process(&world, directory.paths.root()));
        assert!(!has_visible_process(&world, place.path()));
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
                remove_logs_of_other_journals(&directory.paths, journal).expect("looked"),
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

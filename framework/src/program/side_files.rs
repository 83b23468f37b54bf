//! Side files: `--files`, and their lookup with `side_file` in a driver, in an embedded task and on a worker.
//! A `SideFile` is the content of one, loaded once in a process.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::{self, Display};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::{fs, io};

use napreduce_local::SideFileSource;
use napreduce_protocol::{lock, mark_permanent};

use crate::input::local_path;

/// The directory into which a worker puts the side files of a job.
const DIRECTORY_VARIABLE: &str = "NAPREDUCE_FILES_DIR";

/// Start of the error message for an unknown name.
const UNKNOWN: &str = "unknown side file";

/// Local paths by name; empty in task processes of a worker.
static HERE: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// The files of the job that this thread plans or runs, in a program that may run several jobs at once. They
    /// replace those of the process.
    static OF_THREAD: RefCell<Option<BTreeMap<String, PathBuf>>> = const { RefCell::new(None) };
}

/// Calls a function with the files that this thread finds.
fn with_files<R>(look: impl FnOnce(&BTreeMap<String, PathBuf>) -> R) -> R {
    OF_THREAD.with_borrow(|of_thread| match of_thread {
        Some(files) => look(files),
        None => look(&lock(&HERE)),
    })
}

/// Returns the path of a side file by the name given with `--files PATH[#NAME]`, by default its file name.
///
/// Definitions, maps and reduces may call it, embedded and on a cluster. [`SideFile`] also loads the file.
///
/// ```
/// use napreduce::program::side_file;
/// use napreduce::{Job, TaskError};
///
/// fn with_size(_: &()) -> Job {
///     Job::text().map_only(|line, out| -> Result<(), TaskError> {
///         let limits = side_file("limits").and_then(std::fs::metadata);
///         let limits = limits.map_err(|error| TaskError::fatal(error.to_string()))?;
///         out.emit(line, limits.len());
///         Ok(())
///     })
/// }
/// # use napreduce::testing::JobTest;
/// # let test = JobTest::new(|| with_size(&())).input("the\n").side_file("limits", "12345");
/// # assert_eq!(test.run().text(), "the\t5\n");
/// ```
///
/// # Errors
///
/// Fails with `NotFound` and the list of known names if there is no file of this name.
pub fn side_file(name: &str) -> io::Result<PathBuf> {
    let found = with_files(|files| find(name, files, std::env::var_os(DIRECTORY_VARIABLE)));
    found.inspect_err(|_| mark_permanent(UNKNOWN))
}

/// The content of a side file, loaded by a function when a task first needs it. All tasks of a process share
/// it; a file that was replaced meanwhile is loaded again.
///
/// ```
/// use std::collections::HashSet;
/// use std::io;
///
/// use napreduce::Job;
/// use napreduce::program::SideFile;
/// use napreduce::testing::JobTest;
///
/// /// `unlisted INPUT... --output DIR --files PATH#stop-words`
/// fn unlisted() -> Job {
///     let stop_words = SideFile::new("stop-words", |path| -> io::Result<HashSet<String>> {
///         Ok(std::fs::read_to_string(path)?.lines().map(str::to_owned).collect())
///     });
///     Job::text().map_only(move |line, out| {
///         if !stop_words.get().contains(line) {
///             out.emit(line, ());
///         }
///     })
/// }
///
/// let test = JobTest::new(unlisted).input("the\nowl\n").side_file("stop-words", "a\nthe\n");
/// assert_eq!(test.run().text(), "owl\n");
/// ```
#[must_use = "its content is loaded by `get`"]
pub struct SideFile<T> {
    name: String,
    /// Looked up when the job is defined, since another job of the process may have another file of the name.
    path: Result<PathBuf, String>,
    loader: Loader<T>,
    content: OnceLock<Arc<T>>,
}

type Load<T> = dyn Fn(&Path) -> Result<T, String> + Send + Sync;

/// The function of a `SideFile`.
struct Loader<T> {
    /// Distinguishes functions for one file.
    address: usize,
    load: Arc<Load<T>>,
}

impl<T: Send + Sync + 'static> SideFile<T> {
    /// Names a side file of the job and the function that loads it, which can capture nothing. Definitions
    /// call it; it reads nothing.
    pub fn new<E: Display + 'static>(name: &str, load: fn(&Path) -> Result<T, E>) -> SideFile<T> {
        let loader = Loader {
            address: load as usize,
            load: Arc::new(move |path| load(path).map_err(|error| error.to_string())),
        };
        let path = side_file(name).map_err(|error| error.to_string());
        SideFile {
            name: name.to_owned(),
            path,
            loader,
            content: OnceLock::new(),
        }
    }

    /// Returns the content.
    ///
    /// # Panics
    ///
    /// Panics if the job has no such file, which fails the job, or if it cannot be loaded, which fails the
    /// attempt. The message names the file, the cause and the remedy. An `Err` would do less: a map that
    /// returns [`BadRecord`](crate::builder::BadRecord) would report all its records as bad.
    #[track_caller]
    pub fn get(&self) -> &T {
        if let Some(content) = self.content.get() {
            return content;
        }
        match self.load() {
            Ok(content) => self.content.get_or_init(|| content),
            Err(message) => panic!("{message}"),
        }
    }

    #[cold]
    fn load(&self) -> Result<Arc<T>, String> {
        let path = self.path.as_ref().map_err(String::clone)?;
        shared(path, &self.loader).map_err(|error| {
            format!(
                "cannot load the side file {:?} from {}: {error}",
                self.name,
                path.display()
            )
        })
    }
}

impl<T> Clone for SideFile<T> {
    fn clone(&self) -> Self {
        let loader = Loader {
            address: self.loader.address,
            load: Arc::clone(&self.loader.load),
        };
        SideFile {
            name: self.name.clone(),
            path: self.path.clone(),
            loader,
            content: self.content.clone(),
        }
    }
}

impl<T> fmt::Debug for SideFile<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SideFile")
            .field("name", &self.name)
            .field("path", &self.path)
            .finish()
    }
}

/// Contents by file, function and type. Jobs that run at once may have different files of one name.
static LOADED: Mutex<BTreeMap<(PathBuf, usize, TypeId), Arc<Slot>>> = Mutex::new(BTreeMap::new());

/// The place of one content; locked while it is loaded.
type Slot = Mutex<Option<(FileState, Arc<dyn Any + Send + Sync>)>>;

/// Length, modification time and inode of a file.
type FileState = (u64, i64, i64, u64);

/// Returns the content of a file, which is loaded unless the process has it.
fn shared<T: Send + Sync + 'static>(path: &Path, loader: &Loader<T>) -> Result<Arc<T>, String> {
    let key = (path.to_owned(), loader.address, TypeId::of::<T>());
    let slot = Arc::clone(lock(&LOADED).entry(key).or_default());
    let mut slot = lock(&slot);
    let file = fs::metadata(path).map_err(|error| error.to_string())?;
    let state = (file.len(), file.mtime(), file.mtime_nsec(), file.ino());
    if let Some((of_state, content)) = &*slot
        && *of_state == state
        && let Ok(content) = Arc::clone(content).downcast()
    {
        return Ok(content);
    }
    let content = Arc::new((loader.load)(path)?);
    *slot = Some((state, Arc::<T>::clone(&content)));
    Ok(content)
}

fn find(
    name: &str,
    here: &BTreeMap<String, PathBuf>,
    directory: Option<OsString>,
) -> io::Result<PathBuf> {
    if let Some(path) = here.get(name) {
        return Ok(path.clone());
    }
    if let Some(directory) = directory.filter(|_| is_name(name)) {
        let path = Path::new(&directory).join(name);
        if path.exists() {
            return Ok(path);
        }
    }
    let known = if here.is_empty() {
        String::new()
    } else {
        format!(
            "; the job has {}",
            here.keys()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(", ")
        )
    };
    Err(io::Error::new(
        io::ErrorKind::NotFound,
        format!(
            "{UNKNOWN} {name:?}; pass --files PATH#{name}, or call job.side_file({name:?}, PATH), in a driver \
             Driver::set_side_file, in a test JobTest::side_file{known}"
        ),
    ))
}

/// Returns all side files of the job by name.
#[cfg(feature = "streaming")]
pub(crate) fn all() -> io::Result<BTreeMap<OsString, PathBuf>> {
    let here: BTreeMap<OsString, PathBuf> = with_files(|files| {
        files
            .iter()
            .map(|(name, path)| (name.into(), path.clone()))
            .collect()
    });
    if !here.is_empty() {
        return Ok(here);
    }
    let Some(directory) = std::env::var_os(DIRECTORY_VARIABLE) else {
        return Ok(BTreeMap::new());
    };
    fs::read_dir(directory)?
        .map(|entry| entry.map(|entry| (entry.file_name(), entry.path())))
        .collect()
}

/// Replaces the files that `side_file` finds in this process; returns the earlier ones.
pub(crate) fn set_local(files: BTreeMap<String, PathBuf>) -> BTreeMap<String, PathBuf> {
    OF_THREAD.set(None);
    std::mem::replace(&mut *lock(&HERE), files)
}

/// Sets the files that `side_file` finds in this thread, which runs one task.
pub(crate) fn set_of_thread(files: BTreeMap<String, PathBuf>) {
    OF_THREAD.set(Some(files));
}

/// Calls a function in which `side_file` finds these files.
pub(crate) fn for_thread<R>(files: BTreeMap<String, PathBuf>, call: impl FnOnce() -> R) -> R {
    let before = OF_THREAD.replace(Some(files));
    let result = call();
    OF_THREAD.set(before);
    result
}

/// Returns a file with an explicit name.
pub(crate) fn named(path: &Path, name: &str) -> Result<SideFileSource, String> {
    if is_name(name) {
        Ok(SideFileSource {
            path: path.to_owned(),
            name: name.to_owned(),
        })
    } else {
        Err(format!(
            "invalid side file name {name:?}; use a name without slashes"
        ))
    }
}

/// Returns the files by name, with absolute paths. Fails if one is missing or two have the same name.
pub(crate) fn by_name(files: &[SideFileSource]) -> Result<BTreeMap<String, PathBuf>, String> {
    let mut by_name = BTreeMap::new();
    for SideFileSource { path, name } in files {
        let shown = path.display();
        let unreadable = |error: io::Error| {
            let is_missing = error.kind() == io::ErrorKind::NotFound;
            let hint = if is_missing {
                r"; in a path a comma is written \, and a # is written \#"
            } else {
                ""
            };
            format!("cannot read the side file {shown}: {error}{hint}")
        };
        if !fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(format!(
                "side file {shown} is not a regular file; name a regular file"
            ));
        }
        let absolute = std::path::absolute(path).map_err(unreadable)?;
        if by_name.insert(name.clone(), absolute).is_some() {
            return Err(format!(
                "two side files have the name {name:?}; rename one with PATH#NAME"
            ));
        }
    }
    Ok(by_name)
}

/// Parses `--files PATH[#NAME],...`. A comma or `#` is part of the path if nothing else is found; `\,` and
/// `\#` always are.
pub(super) fn parse(text: &str) -> Result<Vec<SideFileSource>, String> {
    let is_there = |text: &str| Path::new(text).exists();
    let listed = split(text, ',').into_iter().map(|one| {
        let source = parse_one(one)?;
        Ok(if !source.path.exists() && is_there(one) {
            of_path(one)?
        } else {
            source
        })
    });
    match listed.collect::<Result<Vec<_>, String>>() {
        Ok(listed) if listed.iter().all(|source| source.path.exists()) => Ok(listed),
        _ if is_there(text) => Ok(vec![of_path(text)?]),
        listed => listed,
    }
}

/// Parses `PATH` or `PATH#NAME`.
fn parse_one(text: &str) -> Result<SideFileSource, String> {
    let parts = split(text, '#');
    let Some((name, path)) = parts.split_last().filter(|(_, path)| !path.is_empty()) else {
        return of_path(&unescaped(text));
    };
    let path = local_path(Path::new(&unescaped(&path.join("#"))));
    let name = unescaped(name);
    let is_source = is_name(&name) && !path.as_os_str().is_empty();
    if is_source {
        Ok(SideFileSource { path, name })
    } else {
        Err(no_source(text))
    }
}

/// Returns a file under its own name.
fn of_path(text: &str) -> Result<SideFileSource, String> {
    let path = local_path(Path::new(text));
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .filter(|name| is_name(name))
        .map(str::to_owned);
    let name = name.ok_or_else(|| no_source(text))?;
    Ok(SideFileSource { path, name })
}

fn no_source(text: &str) -> String {
    format!("{text:?} is not a file name; use PATH, or PATH#NAME with a name without slashes")
}

/// Splits a text at unescaped letters; keeps the escapes.
fn split(text: &str, letter: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut begin = 0;
    let mut is_escaped = false;
    for (at, found) in text.char_indices() {
        if found == letter && !is_escaped {
            parts.push(&text[begin..at]);
            begin = at + 1;
        }
        is_escaped = found == '\\' && !is_escaped;
    }
    parts.push(&text[begin..]);
    parts
}

/// Removes the backslashes before commas, `#` and backslashes.
fn unescaped(text: &str) -> String {
    let mut letters = text.chars().peekable();
    let mut plain = String::new();
    while let Some(letter) = letters.next() {
        match letters.next_if(|next| letter == '\\' && matches!(next, ',' | '#' | '\\')) {
            Some(next) => plain.push(next),
            None => plain.push(letter),
        }
    }
    plain
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn side_file_name_defaults_to_file_name() {
        let source = |path: &str, name: &str| SideFileSource {
            path: path.into(),
            name: name.to_owned(),
        };
        assert_eq!(
            parse("data/stop.txt"),
            Ok(vec![source("data/stop.txt", "stop.txt")])
        );
        assert_eq!(
            parse("file:///data/stop.txt#words"),
            Ok(vec![source("/data/stop.txt", "words")])
        );
        assert_eq!(
            parse("a#b#c,d"),
            Ok(vec![source("a#b", "c"), source("d", "d")])
        );
        for text in ["", "a#", "a#../b", "a#..", "..", "#b", "a#b/c"] {
            let error = parse(text).expect_err(text);
            assert!(
                error.contains("is not a file name; use PATH, or PATH#NAME"),
                "{error}"
            );
        }
    }

    #[test]
    fn side_file_names_may_have_commas_and_hashes() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let read = |text: &str| -> Vec<(String, String)> {
            let listed = parse(text).expect("it names files");
            listed
                .into_iter()
                .map(|source| (source.path.display().to_string(), source.name))
                .collect()
        };
        let named = |file: &str, name: &str| (path(file), name.to_owned());
        for name in ["a,b", "a#b", r"a\b", "plain"] {
            fs::write(path(name), name).expect("written");
            assert_eq!(read(&path(name)), [named(name, name)]);
        }
        let both = format!("{},{}", path(r"a\,b"), path(r"a\#b#a\#\,"));
        assert_eq!(read(&both), [named("a,b", "a,b"), named("a#b", "a#,")]);
        assert_eq!(
            read(&format!("{},{}", path("a#b"), path("plain#a"))),
            [named("a#b", "a#b"), named("plain", "a")]
        );
        fs::write(path("a"), "").expect("written");
        assert_eq!(
            read(&path("a#b")),
            [named("a", "b")],
            "a file with a name of its own comes first"
        );
    }

    #[test]
    fn missing_and_duplicate_side_files_are_rejected() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a");
        fs::write(&path, "x").expect("a written file");
        let source = |path: &Path, name: &str| SideFileSource {
            path: path.to_owned(),
            name: name.to_owned(),
        };
        let files = by_name(&[source(&path, "a"), source(&path, "b")]).expect("two names");
        assert_eq!(
            files,
            BTreeMap::from([
                ("a".to_owned(), path.clone()),
                ("b".to_owned(), path.clone())
            ])
        );
        let error = by_name(&[source(&path, "a"), source(&path, "a")]).expect_err("one name");
        assert_eq!(
            error,
            "two side files have the name \"a\"; rename one with PATH#NAME"
        );
        let missing = folder.path().join("missing");
        let error = by_name(&[source(&missing, "a")]).expect_err("no file");
        assert!(
            error.starts_with(&format!(
                "cannot read the side file {}: ",
                missing.display()
            )),
            "{error}"
        );
        for path in [folder.path(), Path::new("/dev/zero")] {
            let error = by_name(&[source(path, "a")]).expect_err("no file");
            assert_eq!(
                error,
                format!(
                    "side file {} is not a regular file; name a regular file",
                    path.display()
                )
            );
        }
    }

    #[test]
    fn worker_stores_side_files_per_job() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join("a"), "x").expect("a written file");
        let directory = || Some(folder.path().as_os_str().to_owned());
        let none = BTreeMap::new();
        assert_eq!(
            find("a", &none, directory()).expect("it is there"),
            folder.path().join("a")
        );
        for name in ["b", "../a", "", "."] {
            let error = find(name, &none, directory()).expect_err(name);
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
            assert!(
                error
                    .to_string()
                    .contains(&format!("; pass --files PATH#{name}, or")),
                "{error}"
            );
        }
        let here = BTreeMap::from([("words".to_owned(), PathBuf::from("/w"))]);
        assert_eq!(
            find("words", &here, None).expect("it is known"),
            Path::new("/w")
        );
        let error = find("word", &here, None)
            .expect_err("another name")
            .to_string();
        assert_eq!(
            error,
            "unknown side file \"word\"; pass --files PATH#word, or call job.side_file(\"word\", PATH), in a driver \
             Driver::set_side_file, in a test \
             JobTest::side_file; the job has words"
        );
    }

    fn file_at<T: Send + Sync + 'static, E: Display + 'static>(
        path: &Path,
        load: fn(&Path) -> Result<T, E>,
    ) -> SideFile<T> {
        SideFile {
            path: Ok(path.to_owned()),
            ..SideFile::new("words", load)
        }
    }

    fn panic_of<T>(call: impl FnOnce() -> T) -> String {
        let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)) else {
            panic!("it returned")
        };
        *panic.downcast().expect("a message")
    }

    #[test]
    fn content_is_loaded_once_until_file_is_replaced() {
        static LOADS: AtomicU64 = AtomicU64::new(0);
        let load = |path: &Path| {
            LOADS.fetch_add(1, Ordering::Relaxed);
            fs::read_to_string(path)
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("words");
        fs::write(&path, "a").expect("a written file");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(file_at(&path, load).get(), "a"));
            }
        });
        let before = file_at(&path, load);
        assert_eq!(
            (before.get().as_str(), LOADS.load(Ordering::Relaxed)),
            ("a", 1)
        );
        fs::write(&path, "other").expect("a written file");
        assert_eq!(file_at(&path, load).get(), "other");
        assert_eq!(
            (before.get().as_str(), LOADS.load(Ordering::Relaxed)),
            ("a", 2)
        );
    }

    #[test]
    fn files_and_functions_have_contents_of_their_own() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let paths = ["one", "three"].map(|text| {
            let path = folder.path().join(text);
            fs::write(&path, text).expect("a written file");
            path
        });
        let text = |path: &Path| fs::read_to_string(path);
        let length = |path: &Path| fs::metadata(path).map(|file| file.len());
        for _ in 0..2 {
            assert_eq!(
                paths
                    .each_ref()
                    .map(|path| file_at(path, text).get().clone()),
                ["one", "three"]
            );
            assert_eq!(
                paths.each_ref().map(|path| *file_at(path, length).get()),
                [3, 5]
            );
        }
    }

    #[test]
    fn failed_load_names_path_and_cause() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("words");
        let file = file_at(&path, |path| {
            let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
            text.parse::<u64>()
                .map_err(|error| format!("line 1: {error}"))
        });
        let place = format!(
            "cannot load the side file \"words\" from {}: ",
            path.display()
        );
        assert_eq!(
            panic_of(|| *file.get()),
            format!("{place}No such file or directory (os error 2)")
        );
        fs::write(&path, "x").expect("a written file");
        assert_eq!(
            panic_of(|| *file.get()),
            format!("{place}line 1: invalid digit found in string")
        );
        fs::write(&path, "7").expect("a written file");
        assert_eq!(*file.get(), 7, "a failure is not kept");
    }

    #[test]
    fn missing_file_is_named_with_remedy() {
        let file = SideFile::new("no-such-words", |path| fs::read(path));
        let message = panic_of(|| file.get().len());
        assert!(
            message.starts_with(
                "unknown side file \"no-such-words\"; pass --files PATH#no-such-words"
            ),
            "{message}"
        );
    }
}

//! Side files: `--files`, and their lookup with `side_file` in a driver, in an embedded task and on a worker.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use napreduce_local::SideFileSource;
use napreduce_protocol::mark_permanent;

use crate::input::local_path;

/// The directory into which a worker puts the side files of a job.
const DIRECTORY_VARIABLE: &str = "NAPREDUCE_FILES_DIR";

/// Start of the error message for an unknown name.
const UNKNOWN: &str = "unknown side file";

/// Local paths by name; empty in task processes of a worker.
static HERE: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());

/// Returns the path of a side file by the name given with `--files PATH[#NAME]`, by default its file name.
///
/// Definitions, maps and reduces may call it, embedded and on a cluster.
///
/// ```
/// use napreduce::program::side_file;
/// use napreduce::{Job, TaskError};
///
/// fn without_stop_words(_: &()) -> Job {
///     let stop_words = side_file("stop.txt").and_then(std::fs::read_to_string);
///     Job::text().map_only(move |line, out| -> Result<(), TaskError> {
///         // Without the file the job fails.
///         let stop_words = stop_words.as_ref().map_err(|error| TaskError::fatal(error.to_string()))?;
///         if !stop_words.lines().any(|word| word == line) {
///             out.emit(line, ());
///         }
///         Ok(())
///     })
/// }
/// # use napreduce::testing::JobTest;
/// # let failed = std::panic::catch_unwind(|| JobTest::new(|| without_stop_words(&())).input("the\n").run());
/// # let message = failed.expect_err("no file was passed");
/// # let message = message.downcast_ref::<String>().expect("a message");
/// # assert!(message.contains("unknown side file \"stop.txt\"; ship it with --files PATH"), "{message}");
/// ```
///
/// # Errors
///
/// Fails with `NotFound` and the list of known names if there is no file of this name.
pub fn side_file(name: &str) -> io::Result<PathBuf> {
    let here = HERE.lock().unwrap_or_else(PoisonError::into_inner);
    find(name, &here, std::env::var_os(DIRECTORY_VARIABLE)).inspect_err(|_| mark_permanent(UNKNOWN))
}

fn find(name: &str, here: &BTreeMap<String, PathBuf>, directory: Option<OsString>) -> io::Result<PathBuf> {
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
        String::from("ship it with --files PATH")
    } else {
        format!("the job has {}", here.keys().map(String::as_str).collect::<Vec<_>>().join(", "))
    };
    Err(io::Error::new(io::ErrorKind::NotFound, format!("{UNKNOWN} {name:?}; {known}")))
}

/// Returns all side files of the job by name.
#[cfg(feature = "streaming")]
pub(crate) fn all() -> io::Result<BTreeMap<OsString, PathBuf>> {
    let here = HERE.lock().unwrap_or_else(PoisonError::into_inner);
    if !here.is_empty() {
        return Ok(here.iter().map(|(name, path)| (name.into(), path.clone())).collect());
    }
    let Some(directory) = std::env::var_os(DIRECTORY_VARIABLE) else { return Ok(BTreeMap::new()) };
    std::fs::read_dir(directory)?.map(|entry| entry.map(|entry| (entry.file_name(), entry.path()))).collect()
}

/// Replaces the files that `side_file` finds in this process.
pub(crate) fn set_local(files: BTreeMap<String, PathBuf>) {
    *HERE.lock().unwrap_or_else(PoisonError::into_inner) = files;
}

/// Returns a file with an explicit name.
pub(crate) fn named(path: &Path, name: &str) -> Result<SideFileSource, String> {
    if is_name(name) {
        Ok(SideFileSource { path: path.to_owned(), name: name.to_owned() })
    } else {
        Err(format!("invalid side file name {name:?}; use a name without slashes"))
    }
}

/// Returns the files by name, with absolute paths. Fails if one is missing or two have the same name.
pub(crate) fn by_name(files: &[SideFileSource]) -> Result<BTreeMap<String, PathBuf>, String> {
    let mut by_name = BTreeMap::new();
    for SideFileSource { path, name } in files {
        let shown = path.display();
        let unreadable = |error: io::Error| {
            let is_missing = error.kind() == io::ErrorKind::NotFound;
            let hint =
                if is_missing { r"; in a path a comma is written \, and a # is written \#" } else { "" };
            format!("cannot read the side file {shown}: {error}{hint}")
        };
        if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(format!("side file {shown} is not a regular file; name a regular file"));
        }
        let absolute = std::path::absolute(path).map_err(unreadable)?;
        if by_name.insert(name.clone(), absolute).is_some() {
            return Err(format!("two side files have the name {name:?}; rename one with PATH#NAME"));
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
        Ok(if !source.path.exists() && is_there(one) { of_path(one)? } else { source })
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
    let (path, name) = (local_path(Path::new(&unescaped(&path.join("#")))), unescaped(name));
    let is_source = is_name(&name) && !path.as_os_str().is_empty();
    if is_source { Ok(SideFileSource { path, name }) } else { Err(no_source(text)) }
}

/// Returns a file under its own name.
fn of_path(text: &str) -> Result<SideFileSource, String> {
    let path = local_path(Path::new(text));
    let name =
        path.file_name().and_then(|name| name.to_str()).filter(|name| is_name(name)).map(str::to_owned);
    let name = name.ok_or_else(|| no_source(text))?;
    Ok(SideFileSource { path, name })
}

fn no_source(text: &str) -> String {
    format!("{text:?} is not a file name; use PATH, or PATH#NAME with a name without slashes")
}

/// Splits a text at unescaped letters; keeps the escapes.
fn split(text: &str, letter: char) -> Vec<&str> {
    let (mut parts, mut begin, mut is_escaped) = (Vec::new(), 0, false);
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
    use super::*;

    #[test]
    fn side_file_name_defaults_to_file_name() {
        let source = |path: &str, name: &str| SideFileSource { path: path.into(), name: name.to_owned() };
        assert_eq!(parse("data/stop.txt"), Ok(vec![source("data/stop.txt", "stop.txt")]));
        assert_eq!(parse("file:///data/stop.txt#words"), Ok(vec![source("/data/stop.txt", "words")]));
        assert_eq!(parse("a#b#c,d"), Ok(vec![source("a#b", "c"), source("d", "d")]));
        for text in ["", "a#", "a#../b", "a#..", "..", "#b", "a#b/c"] {
            let error = parse(text).expect_err(text);
            assert!(error.contains("is not a file name; use PATH, or PATH#NAME"), "{error}");
        }
    }

    #[test]
    fn side_file_names_may_have_commas_and_hashes() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let read = |text: &str| -> Vec<(String, String)> {
            let listed = parse(text).expect("it names files");
            listed.into_iter().map(|source| (source.path.display().to_string(), source.name)).collect()
        };
        let named = |file: &str, name: &str| (path(file), name.to_owned());
        for name in ["a,b", "a#b", r"a\b", "plain"] {
            std::fs::write(path(name), name).expect("written");
            assert_eq!(read(&path(name)), [named(name, name)]);
        }
        let both = format!("{},{}", path(r"a\,b"), path(r"a\#b#a\#\,"));
        assert_eq!(read(&both), [named("a,b", "a,b"), named("a#b", "a#,")]);
        assert_eq!(
            read(&format!("{},{}", path("a#b"), path("plain#a"))),
            [named("a#b", "a#b"), named("plain", "a")]
        );
        std::fs::write(path("a"), "").expect("written");
        assert_eq!(read(&path("a#b")), [named("a", "b")], "a file with a name of its own comes first");
    }

    #[test]
    fn missing_and_duplicate_side_files_are_rejected() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a");
        std::fs::write(&path, "x").expect("a written file");
        let source =
            |path: &Path, name: &str| SideFileSource { path: path.to_owned(), name: name.to_owned() };
        let files = by_name(&[source(&path, "a"), source(&path, "b")]).expect("two names");
        assert_eq!(files, BTreeMap::from([("a".to_owned(), path.clone()), ("b".to_owned(), path.clone())]));
        let error = by_name(&[source(&path, "a"), source(&path, "a")]).expect_err("one name");
        assert_eq!(error, "two side files have the name \"a\"; rename one with PATH#NAME");
        let missing = folder.path().join("missing");
        let error = by_name(&[source(&missing, "a")]).expect_err("no file");
        assert!(error.starts_with(&format!("cannot read the side file {}: ", missing.display())), "{error}");
        for path in [folder.path(), Path::new("/dev/zero")] {
            let error = by_name(&[source(path, "a")]).expect_err("no file");
            assert_eq!(
                error,
                format!("side file {} is not a regular file; name a regular file", path.display())
            );
        }
    }

    #[test]
    fn worker_stores_side_files_per_job() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("a"), "x").expect("a written file");
        let directory = || Some(folder.path().as_os_str().to_owned());
        let none = BTreeMap::new();
        assert_eq!(find("a", &none, directory()).expect("it is there"), folder.path().join("a"));
        for name in ["b", "../a", "", "."] {
            let error = find(name, &none, directory()).expect_err(name);
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
            assert!(error.to_string().ends_with("ship it with --files PATH"), "{error}");
        }
        let here = BTreeMap::from([("words".to_owned(), PathBuf::from("/w"))]);
        assert_eq!(find("words", &here, None).expect("it is known"), Path::new("/w"));
        let error = find("word", &here, None).expect_err("another name").to_string();
        assert_eq!(error, "unknown side file \"word\"; the job has words");
    }
}

//! The mark of a directory that is ours: a file that says what the directory is for.
//!
//! Owns the file, and the refusal of a directory that somebody else filled: daemons remove and replace what
//! lies in theirs. Does not own what they keep there, nor whether another daemon uses it at this moment (they
//! lock files of their own).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use napreduce_engine::listed;
use napreduce_protocol::{IoResult, read_regular};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The name of the mark.
pub(crate) const MARK: &str = "napreduce.json";
/// What a start that was cut short may have left of one.
const UNFINISHED: &str = "napreduce.json.new";
/// Version of the text of a mark.
const VERSION: u32 = 1;
const MARK_BYTES_MAX: u64 = 4096;

listed! {
    /// What a directory of ours is for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum DirectoryKind {
        /// A cluster directory.
        Cluster = "cluster directory",
        /// A worker's own directory.
        Worker = "worker's directory",
    }
}

/// A directory that is not taken into use.
#[derive(Debug, Error)]
pub enum DirectoryMarkError {
    /// There is something in it, and nothing says that we put it there.
    #[error(
        "{} is not empty (it holds {found:?}) and no {}: there is no {MARK} in it; choose one that is empty or \
         missing, since what is in it could be lost",
        .path.display(), .kind
    )]
    NotOurs {
        /// The directory.
        path: PathBuf,
        /// What it was to be.
        kind: DirectoryKind,
        /// The name of something in it.
        found: String,
    },
    /// It is ours, but for something else.
    #[error("{} is a {}, not a {}; choose another directory", .path.display(), .is, .kind)]
    OfAnotherKind {
        /// The directory.
        path: PathBuf,
        /// What it was to be.
        kind: DirectoryKind,
        /// What it is.
        is: DirectoryKind,
    },
    /// The mark cannot be understood.
    #[error("{} is not understood: {reason}; choose another directory", .path.display())]
    Unknown {
        /// The mark.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The system does not let us.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl DirectoryMarkError {
    /// The exit status of a program that ends with this: 2 when another directory has to be given, else 1.
    pub fn exit_status(&self) -> u8 {
        if matches!(self, DirectoryMarkError::Io { .. }) { 1 } else { 2 }
    }
}

#[derive(Serialize, Deserialize)]
struct Mark {
    version: u32,
    directory: DirectoryKind,
}

/// Makes a directory that is there ours, if it is empty; one that is not must bear our mark. Two daemons that
/// come at the same time both succeed.
///
/// `foreign` says of a name whether it is somebody else's; `made_before` whether a version without marks made
/// the directory.
pub(crate) fn take_directory(
    path: &Path,
    kind: DirectoryKind,
    foreign: impl Fn(&str) -> bool,
    made_before: impl Fn() -> bool,
) -> Result<(), DirectoryMarkError> {
    let failed = |doing| move |source| DirectoryMarkError::Io { doing, path: path.to_owned(), source };
    let directory = File::open(path).map_err(failed("open"))?;
    // Of two, one looks and marks after the other. A file system without locks has them write the same text.
    let _ = flock(&directory, FlockOperation::LockExclusive);
    if let Some(is) = read(path)? {
        let of_another = || DirectoryMarkError::OfAnotherKind { path: path.to_owned(), kind, is };
        return if is == kind { Ok(()) } else { Err(of_another()) };
    }
    let mut others = Vec::new();
    for entry in fs::read_dir(path).map_err(failed("list"))? {
        let name = entry.map_err(failed("list"))?.file_name().to_string_lossy().into_owned();
        others.extend((name != UNFINISHED && foreign(&name)).then_some(name));
    }
    if let Some(found) = others.into_iter().min()
        && !made_before()
    {
        return Err(DirectoryMarkError::NotOurs { path: path.to_owned(), kind, found });
    }
    write(path, kind).map_err(failed("mark"))
}

fn read(path: &Path) -> Result<Option<DirectoryKind>, DirectoryMarkError> {
    let path = path.join(MARK);
    let unknown = |reason| DirectoryMarkError::Unknown { path: path.clone(), reason };
    let unread = |source| DirectoryMarkError::Io { doing: "read", path: path.clone(), source };
    let Some(text) = read_regular(&path, MARK_BYTES_MAX).if_there().map_err(unread)? else { return Ok(None) };
    let mark: Mark = serde_json::from_slice(&text).map_err(|error| unknown(error.to_string()))?;
    match mark.version {
        VERSION => Ok(Some(mark.directory)),
        other => Err(unknown(format!("it has version {other}, and this program knows version {VERSION}"))),
    }
}

fn write(path: &Path, kind: DirectoryKind) -> io::Result<()> {
    let unfinished = path.join(UNFINISHED);
    let text = serde_json::to_string(&Mark { version: VERSION, directory: kind })?;
    fs::write(&unfinished, text + "\n")?;
    fs::rename(&unfinished, path.join(MARK))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(path: &Path, kind: DirectoryKind) -> Result<(), String> {
        take_directory(path, kind, |name| name != "harmless", || path.join("old").exists())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_directory_is_ours_when_it_is_empty_or_marked() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path();
        fs::write(path.join("harmless"), "").expect("written");
        fs::write(path.join(UNFINISHED), "{\"ver").expect("written");
        take(path, DirectoryKind::Worker).expect("nothing of anybody's is in it");
        fs::write(path.join("something"), "").expect("written");
        take(path, DirectoryKind::Worker).expect("it is marked");
        let error = take(path, DirectoryKind::Cluster).expect_err("it is something else");
        assert!(
            error.ends_with("is a worker's directory, not a cluster directory; choose another directory")
        );
        let mark = fs::read_to_string(path.join(MARK)).expect("a mark");
        assert_eq!(mark, "{\"version\":1,\"directory\":\"worker\"}\n");
    }

    #[test]
    fn a_directory_of_somebody_else_is_refused_and_stays_as_it_is() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path();
        fs::write(path.join("letters"), "").expect("written");
        let error = take(path, DirectoryKind::Worker).expect_err("it is somebody's");
        assert!(error.contains("is not empty (it holds \"letters\") and no worker's directory"), "{error}");
        assert!(error.contains("choose one that is empty or missing"), "{error}");
        assert_eq!(fs::read_dir(path).expect("a directory").count(), 1);
        fs::write(path.join("old"), "").expect("written");
        take(path, DirectoryKind::Worker).expect("an earlier version has made it");
    }

    #[test]
    fn a_mark_that_is_not_understood_is_named() {
        let place = tempfile::tempdir().expect("a directory");
        for text in
            ["", "{}", "{\"version\":2,\"directory\":\"worker\"}", "{\"version\":1,\"directory\":\"attic\"}"]
        {
            fs::write(place.path().join(MARK), text).expect("written");
            let error = take(place.path(), DirectoryKind::Worker).expect_err("it makes no sense");
            assert!(error.contains("napreduce.json is not understood: "), "{error}");
        }
    }
}

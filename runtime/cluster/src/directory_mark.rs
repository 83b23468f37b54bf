//! The mark file of a directory used by napreduce. Daemons remove and replace files in their directories, so
//! a non-empty directory without a mark is refused.

use std::io;
use std::path::{Path, PathBuf};

use napreduce_engine::listed;
use napreduce_local::world::disk::{Disk, Replacement};
use napreduce_protocol::IoResult;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The name of the mark.
pub(crate) const MARK: &str = "napreduce.json";
/// An unfinished mark of an interrupted start.
const UNFINISHED: &str = "napreduce.json.new";
/// Version of the mark's format.
const VERSION: u32 = 1;
const MARK_BYTES_MAX: u64 = 4096;
/// The permissions of the mark, before the process's mask.
const MARK_MODE: u32 = 0o666;

listed! {
    /// The purpose of a directory.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum DirectoryKind {
        /// A cluster directory.
        Cluster = "cluster directory",
        /// A worker's own directory.
        Worker = "worker's directory",
    }
}

/// The refusal of a directory.
#[derive(Debug, Error)]
pub enum DirectoryMarkError {
    /// It contains files but no mark.
    #[error(
        "{} contains {found:?} and is not a {} (it has no {MARK}); choose an empty or new directory",
        .path.display(), .kind
    )]
    NotOurs {
        /// The directory.
        path: PathBuf,
        /// The intended purpose.
        kind: DirectoryKind,
        /// The name of a file in it.
        found: String,
    },
    /// Its mark has another purpose.
    #[error("{} is a {}, not a {}; choose another directory", .path.display(), .is, .kind)]
    OfAnotherKind {
        /// The directory.
        path: PathBuf,
        /// The intended purpose.
        kind: DirectoryKind,
        /// The actual purpose.
        is: DirectoryKind,
    },
    /// The mark is invalid.
    #[error("cannot parse {}: {reason}; choose another directory", .path.display())]
    Unknown {
        /// The mark.
        path: PathBuf,
        /// The defect.
        reason: String,
    },
    /// A system call failed.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        /// The failed operation.
        doing: &'static str,
        /// Its path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl DirectoryMarkError {
    /// Returns the exit status: 2 if another directory has to be given, else 1.
    pub fn exit_status(&self) -> u8 {
        if matches!(self, DirectoryMarkError::Io { .. }) {
            1
        } else {
            2
        }
    }

    fn io(
        doing: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> DirectoryMarkError + use<> {
        let path = path.to_owned();
        move |source| DirectoryMarkError::Io {
            doing,
            path,
            source,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Mark {
    version: u32,
    directory: DirectoryKind,
}

/// Marks an existing directory if it is empty; otherwise checks its mark. Two daemons that start at the same
/// time both succeed.
///
/// `foreign` returns whether a name is a foreign file; `made_before` whether a version without marks created
/// the directory.
pub(crate) fn take_directory(
    disk: &dyn Disk,
    path: &Path,
    kind: DirectoryKind,
    foreign: impl Fn(&str) -> bool,
    made_before: impl Fn() -> bool,
) -> Result<(), DirectoryMarkError> {
    // Serializes two daemons. On a file system without locks both write the same text.
    let _lock = disk.lock_directory(path);
    if let Some(is) = read(disk, path)? {
        if is != kind {
            return Err(DirectoryMarkError::OfAnotherKind {
                path: path.to_owned(),
                kind,
                is,
            });
        }
        return Ok(());
    }
    let mut others = Vec::new();
    for name in disk
        .list(path)
        .map_err(DirectoryMarkError::io("list", path))?
    {
        let name = name.to_string_lossy().into_owned();
        if name != UNFINISHED && foreign(&name) {
            others.push(name);
        }
    }
    if let Some(found) = others.into_iter().min()
        && !made_before()
    {
        return Err(DirectoryMarkError::NotOurs {
            path: path.to_owned(),
            kind,
            found,
        });
    }
    write(disk, path, kind).map_err(DirectoryMarkError::io("mark", path))
}

fn read(disk: &dyn Disk, path: &Path) -> Result<Option<DirectoryKind>, DirectoryMarkError> {
    let path = path.join(MARK);
    let unknown = |reason| DirectoryMarkError::Unknown {
        path: path.clone(),
        reason,
    };
    let Some(text) = disk
        .read(&path, MARK_BYTES_MAX)
        .if_there()
        .map_err(DirectoryMarkError::io("read", &path))?
    else {
        return Ok(None);
    };
    let mark: Mark = serde_json::from_slice(&text).map_err(|error| unknown(error.to_string()))?;
    match mark.version {
        VERSION => Ok(Some(mark.directory)),
        other => Err(unknown(format!(
            "it has version {other}, but this program reads version {VERSION}"
        ))),
    }
}

fn write(disk: &dyn Disk, path: &Path, kind: DirectoryKind) -> io::Result<()> {
    let text = serde_json::to_string(&Mark {
        version: VERSION,
        directory: kind,
    })?;
    let text = text + "\n";
    let replacement = Replacement {
        unfinished: &path.join(UNFINISHED),
        content: text.as_bytes(),
        mode: MARK_MODE,
    };
    disk.replace(&path.join(MARK), &replacement)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use napreduce_local::world::disk::RealDisk;

    use super::*;

    fn take(path: &Path, kind: DirectoryKind) -> Result<(), String> {
        take_directory(
            &RealDisk,
            path,
            kind,
            |name| name != "harmless",
            || path.join("old").exists(),
        )
        .map_err(|error| error.to_string())
    }

    #[test]
    fn empty_or_marked_directory_is_accepted() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path();
        fs::write(path.join("harmless"), "").expect("written");
        fs::write(path.join(UNFINISHED), "{\"ver").expect("written");
        take(path, DirectoryKind::Worker).expect("nothing of anybody's is in it");
        fs::write(path.join("something"), "").expect("written");
        take(path, DirectoryKind::Worker).expect("it is marked");
        let error = take(path, DirectoryKind::Cluster).expect_err("it is something else");
        assert!(error.ends_with(
            "is a worker's directory, not a cluster directory; choose another directory"
        ));
        let mark = fs::read_to_string(path.join(MARK)).expect("a mark");
        assert_eq!(mark, "{\"version\":1,\"directory\":\"worker\"}\n");
    }

    #[test]
    fn foreign_directory_is_refused_and_unchanged() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path();
        fs::write(path.join("letters"), "").expect("written");
        let error = take(path, DirectoryKind::Worker).expect_err("it is somebody's");
        assert!(
            error.contains("contains \"letters\" and is not a worker's directory"),
            "{error}"
        );
        assert!(
            error.contains("choose an empty or new directory"),
            "{error}"
        );
        assert_eq!(fs::read_dir(path).expect("a directory").count(), 1);
        fs::write(path.join("old"), "").expect("written");
        take(path, DirectoryKind::Worker).expect("an earlier version has made it");
    }

    #[test]
    fn unreadable_mark_is_reported() {
        let place = tempfile::tempdir().expect("a directory");
        for text in [
            "",
            "{}",
            "{\"version\":2,\"directory\":\"worker\"}",
            "{\"version\":1,\"directory\":\"attic\"}",
        ] {
            fs::write(place.path().join(MARK), text).expect("written");
            let error = take(place.path(), DirectoryKind::Worker).expect_err("it makes no sense");
            assert!(
                error.starts_with("cannot parse ") && error.contains("napreduce.json: "),
                "{error}"
            );
        }
    }
}

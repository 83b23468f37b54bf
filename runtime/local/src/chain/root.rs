//! The directory for intermediate data between the jobs of a program, its removal, and the search for
//! directories of killed programs. A directory without the marker file is never removed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use napreduce_protocol::{IoResult, read_regular};
use serde::{Deserialize, Serialize};

use crate::locked_file::{LockedFile, Locking, try_lock, try_lock_where_supported};
use crate::process::ProcessIdentity;

/// The file that identifies the directory's chain and owner.
const MARKER: &str = ".napreduce-intermediate";
const MARKER_VERSION: u32 = 1;
const MARKER_BYTES_MAX: u64 = 4096;
const INFIX: &str = ".intermediate-";
/// Follows the name of a root that is being removed.
const REMOVING: &str = ".removing";

/// The party that removes a root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Owner {
    /// The coordinator that registered the chain.
    Cluster,
    /// The program that created it; if that has ended, the next program with the same output directory.
    Program(ProcessIdentity),
}

#[derive(Serialize, Deserialize)]
struct Marker {
    version: u32,
    /// The token, as in the directory name.
    token: String,
    owner: Owner,
}

/// The result of removing a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It no longer exists.
    Gone,
    /// It lacks the marker of the chain, so it was not removed.
    NotOurs,
}

/// Returns the root of a chain next to an output.
pub(super) fn root_path(output: &Path, token: u128) -> PathBuf {
    let mut name = prefix(output);
    name.push(hexadecimal(token));
    output.with_file_name(name)
}

fn prefix(output: &Path) -> OsString {
    let mut name = OsString::from(".");
    name.push(output.file_name().unwrap_or("output".as_ref()));
    name.push(INFIX);
    name
}

fn hexadecimal(token: u128) -> String {
    format!("{token:032x}")
}

/// Returns whether a path has the name of that chain's root.
pub fn is_root(path: &Path, token: u128) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let end = format!("{INFIX}{}", hexadecimal(token));
    path.is_absolute() && name.starts_with(b".") && name.ends_with(end.as_bytes())
}

/// Creates a root with its marker, which stays locked until the result is dropped.
pub(super) fn make(root: &Path, token: u128, owner: Owner) -> io::Result<LockedFile> {
    if let Some(parent) = root.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::create_dir(root)?;
    let marker = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(root.join(MARKER))?;
    // Without file locks, the identity of the process shows whether it is alive.
    let Locking::Held(mut marker) = try_lock_where_supported(marker)? else {
        return Err(io::ErrorKind::WouldBlock.into());
    };
    let content = Marker {
        version: MARKER_VERSION,
        token: hexadecimal(token),
        owner,
    };
    let mut text = serde_json::to_vec(&content)?;
    text.push(b'\n');
    marker.write_all(&text)?;
    Ok(marker)
}

/// Removes a root recursively if it has the marker of the chain; follows no links. Can be repeated after a
/// failure. Blocking.
///
/// Renames the root first: a program that was disconnected and comes back finds all of its data or none.
pub fn remove(root: &Path, token: u128) -> io::Result<Removal> {
    let removing = removing_path(root);
    // An earlier removal may have been interrupted after the renaming.
    if !is_ours(&removing, token)? {
        return Ok(Removal::NotOurs);
    }
    remove_renamed(&removing)?;
    if !is_ours(root, token)? {
        return Ok(Removal::NotOurs);
    }
    if fs::rename(root, &removing).if_there()?.is_some() {
        // Otherwise a power loss could bring the root back without some of its files.
        File::open(parent_of(root))?.sync_all()?;
    }
    remove_renamed(&removing)?;
    Ok(Removal::Gone)
}

fn removing_path(root: &Path) -> PathBuf {
    let mut name = root.file_name().unwrap_or_default().to_owned();
    name.push(REMOVING);
    root.with_file_name(name)
}

/// Returns whether nothing is at a path, or a directory with the marker of the chain. An empty one is ours, too:
/// its creation or removal was interrupted.
fn is_ours(path: &Path, token: u128) -> io::Result<bool> {
    let Some(found) = fs::symlink_metadata(path).if_there()? else {
        return Ok(true);
    };
    if !found.is_dir() {
        return Ok(false);
    }
    if let Some(marker) = read_marker(path)? {
        return Ok(marker.token == hexadecimal(token));
    }
    Ok(entries_besides_marker(path)?.is_empty())
}

/// Removes a renamed root, the marker last: what an interrupted removal leaves has the marker.
fn remove_renamed(removing: &Path) -> io::Result<()> {
    let Some(paths) = entries_besides_marker(removing).if_there()? else {
        return Ok(());
    };
    for path in paths {
        let removed = match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(&path),
            Ok(_) => fs::remove_file(&path),
            Err(error) => Err(error),
        };
        removed.if_there().map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
    }
    // A network file system keeps a removed file that is open under another name. The next try removes it.
    let added = entries_besides_marker(removing).if_there()?;
    if let Some(path) = added.unwrap_or_default().first() {
        return Err(io::Error::other(format!(
            "{} was added meanwhile",
            path.display()
        )));
    }
    fs::remove_file(removing.join(MARKER)).if_there()?;
    fs::remove_dir(removing).if_there()?;
    Ok(())
}

/// Returns the directory that contains a path, which may be relative.
fn parent_of(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Returns all entries except the marker.
fn entries_besides_marker(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        if entry.file_name() != MARKER {
            paths.push(entry.path());
        }
    }
    Ok(paths)
}

fn read_marker(root: &Path) -> io::Result<Option<Marker>> {
    let path = root.join(MARKER);
    let text = match read_regular(&path, MARKER_BYTES_MAX).if_there() {
        Ok(Some(text)) => text,
        Ok(None) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(None),
        Err(error) => return Err(error),
    };
    let marker: Option<Marker> = serde_json::from_slice(&text).ok();
    Ok(marker.filter(|marker| marker.version == MARKER_VERSION))
}

/// Removes the roots of killed programs next to an output; returns a line for each, and for each that could
/// not be removed.
pub(super) fn remove_abandoned(output: &Path) -> Vec<String> {
    let prefix = prefix(output);
    // A missing parent is empty; an unreadable one is reported by the write that follows.
    let entries = fs::read_dir(parent_of(output))
        .into_iter()
        .flatten()
        .flatten();
    let mut lines = Vec::new();
    for entry in entries {
        let Some(token) = token_in_name(&entry.file_name(), &prefix) else {
            continue;
        };
        let found = entry.path();
        let removed = match is_abandoned(&found) {
            Ok(true) => remove(&root_path(output, token), token),
            Ok(false) => continue,
            Err(error) => Err(error),
        };
        match removed {
            Ok(Removal::Gone) => lines.push(format!(
                "removed {}, left behind by a killed run",
                found.display()
            )),
            Ok(Removal::NotOurs) => {}
            Err(error) => lines.push(format!(
                "cannot remove {}, left behind by a killed run: {error}; remove it by hand",
                found.display()
            )),
        }
    }
    lines
}

/// Returns the token in the name of a root, which may be renamed; `None` for other names.
fn token_in_name(name: &OsStr, prefix: &OsStr) -> Option<u128> {
    let rest = name
        .as_encoded_bytes()
        .strip_prefix(prefix.as_encoded_bytes())?;
    let digits = rest.strip_suffix(REMOVING.as_bytes()).unwrap_or(rest);
    if digits.len() != 32 {
        return None;
    }
    let digits = std::str::from_utf8(digits).ok()?;
    u128::from_str_radix(digits, 16).ok()
}

/// Returns whether the root's program has ended. The root of a cluster is removed by its coordinator.
fn is_abandoned(root: &Path) -> io::Result<bool> {
    let Some(marker) = read_marker(root)? else {
        return Ok(false);
    };
    let Owner::Program(program) = marker.owner else {
        return Ok(false);
    };
    let file = File::open(root.join(MARKER))?;
    if matches!(try_lock(file), Ok(Locking::Busy)) {
        return Ok(false);
    }
    program.is_gone()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: u128 = 0xfeed;

    fn place() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("deep/out");
        let root = root_path(&output, TOKEN);
        (folder, output, root)
    }

    fn this() -> ProcessIdentity {
        ProcessIdentity::this().expect("an identity")
    }

    /// Returns the identity of an ended process.
    fn gone() -> ProcessIdentity {
        let text = serde_json::to_string(&this()).expect("text");
        let started = text.find("\"started\":").expect("a start") + "\"started\":".len();
        let rest = text[started..].find(',').expect("more") + started;
        serde_json::from_str(&format!("{}1{}", &text[..started], &text[rest..]))
            .expect("an identity")
    }

    #[test]
    fn root_is_removed_without_following_links() {
        let (folder, _, root) = place();
        let kept = folder.path().join("kept");
        fs::create_dir(&kept).expect("made");
        fs::write(kept.join("mine"), "").expect("written");
        let lock = make(&root, TOKEN, Owner::Cluster).expect("made");
        fs::create_dir_all(root.join("counts/_temporary")).expect("made");
        fs::write(root.join("counts/part-r-00000"), "").expect("written");
        std::os::unix::fs::symlink(&kept, root.join("link")).expect("linked");
        std::os::unix::fs::symlink(&kept, root.join("counts/link")).expect("linked");
        assert_eq!(remove(&root, TOKEN + 1).expect("looked"), Removal::NotOurs);
        assert!(root.join("counts/part-r-00000").exists());
        assert_eq!(remove(&root, TOKEN).expect("removed"), Removal::Gone);
        assert!(!root.exists() && kept.join("mine").exists());
        assert_eq!(remove(&root, TOKEN).expect("looked"), Removal::Gone);
        drop(lock);
        // A link in place of the root.
        std::os::unix::fs::symlink(&kept, &root).expect("linked");
        assert_eq!(remove(&root, TOKEN).expect("looked"), Removal::NotOurs);
        assert!(kept.join("mine").exists());
    }

    #[test]
    fn unmarked_directory_is_kept_unless_empty() {
        let (_folder, _, root) = place();
        fs::create_dir_all(&root).expect("made");
        fs::write(root.join("mine"), "").expect("written");
        assert_eq!(remove(&root, TOKEN).expect("looked"), Removal::NotOurs);
        assert!(root.join("mine").exists());
        fs::remove_file(root.join("mine")).expect("removed");
        assert_eq!(remove(&root, TOKEN).expect("removed"), Removal::Gone);
        assert!(!root.exists());
    }

    /// Jobs find no part of the root after a removal that was interrupted or failed.
    #[test]
    fn interrupted_removal_leaves_no_part_of_root() {
        let (_folder, output, root) = place();
        let removing = removing_path(&root);
        drop(make(&root, TOKEN, Owner::Program(gone())).expect("made"));
        fs::create_dir(root.join("counts")).expect("made");
        fs::write(root.join("counts/part-r-00000"), "").expect("written");
        fs::rename(&root, &removing).expect("renamed");
        assert_eq!(remove(&root, TOKEN + 1).expect("looked"), Removal::NotOurs);
        assert!(removing.exists());
        // The program came back and made a root again.
        drop(make(&root, TOKEN, Owner::Cluster).expect("made"));
        assert_eq!(remove(&root, TOKEN).expect("removed"), Removal::Gone);
        assert!(!root.exists() && !removing.exists());
        // The program was killed while it removed its root.
        drop(make(&root, TOKEN, Owner::Program(gone())).expect("made"));
        fs::rename(&root, &removing).expect("renamed");
        let lines = remove_abandoned(&output);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("removed "), "{lines:?}");
        assert!(!removing.exists());
    }

    #[test]
    fn foreign_directory_under_name_of_removed_root_is_kept() {
        let (_folder, _, root) = place();
        drop(make(&root, TOKEN, Owner::Cluster).expect("made"));
        let removing = removing_path(&root);
        fs::create_dir(&removing).expect("made");
        fs::write(removing.join("mine"), "").expect("written");
        assert_eq!(remove(&root, TOKEN).expect("looked"), Removal::NotOurs);
        assert!(root.exists() && removing.join("mine").exists());
    }

    #[test]
    fn root_of_killed_program_is_removed() {
        let (_folder, output, root) = place();
        let owners = [
            (1, Owner::Program(this())),
            (2, Owner::Program(gone())),
            (3, Owner::Cluster),
        ];
        for (token, owner) in owners {
            drop(make(&root_path(&output, token), token, owner).expect("made"));
        }
        let locked = make(&root, TOKEN, Owner::Program(gone())).expect("made");
        let lines = remove_abandoned(&output);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].starts_with("removed ") && lines[0].contains(&hexadecimal(2)),
            "{lines:?}"
        );
        for (token, there) in [(1, true), (2, false), (3, true), (TOKEN, true)] {
            assert_eq!(root_path(&output, token).exists(), there, "{token}");
        }
        drop(locked);
        assert_eq!(remove_abandoned(&output).len(), 1);
        assert!(!root.exists());
    }

    #[test]
    fn directory_with_other_name_is_no_root() {
        let root = root_path(Path::new("/data/out"), TOKEN);
        assert!(is_root(&root, TOKEN), "{}", root.display());
        assert!(!is_root(&root, TOKEN + 1));
        for path in [
            "/",
            "/home",
            "/data/out",
            ".out.intermediate-0000000000000000000000000000feed",
        ] {
            assert!(!is_root(Path::new(path), TOKEN), "{path}");
        }
    }
}

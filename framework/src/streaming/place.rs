//! The working directory and environment of an attempt's command, with copies of the side files of the job.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, absolute};

use napreduce_protocol::{StorageScheme, TaskError};
use napreduce_task::CommandPlace;

use crate::program::all_side_files;

/// Name of the directory in an attempt's scratch directory.
const DIRECTORY: &str = "command";
const FILES_VARIABLE: &str = "NAPREDUCE_FILES_DIR";
const INPUT_VARIABLE: &str = "NAPREDUCE_INPUT_FILE";
/// Variables with lists of folders to search for programs and their libraries.
const SEARCH_VARIABLES: [&str; 8] = [
    "PATH",
    "PYTHONPATH",
    "PERL5LIB",
    "RUBYLIB",
    "NODE_PATH",
    "CLASSPATH",
    "R_LIBS",
    "LD_LIBRARY_PATH",
];

/// Creates the directory of an attempt's command; `input` is the file that a mapper reads. A map task with
/// several input files runs one command per file in the same directory.
pub(super) fn make_place(scratch: &Path, input: Option<&Path>) -> Result<CommandPlace, TaskError> {
    let path = scratch.join(DIRECTORY);
    make(&path, input)
        .map_err(|error| TaskError::io(format!("make {} for the command", path.display()), &error))
}

fn make(path: &Path, input: Option<&Path>) -> io::Result<CommandPlace> {
    let directory = absolute(path)?;
    fs::create_dir_all(&directory)?;
    for (name, file) in all_side_files()? {
        copy_read_only(&file, &directory.join(name))?;
    }
    let mut environment = vec![(FILES_VARIABLE, directory.clone().into_os_string())];
    for name in SEARCH_VARIABLES {
        let absolute = env::var_os(name).and_then(|folders| absolute_folders(&folders));
        environment.extend(absolute.map(|folders| (name, folders)));
    }
    if let Some(input) = input {
        // The command starts in another directory. Names of objects do not depend on it.
        let input = if StorageScheme::from_path(input).is_some() {
            input.to_owned()
        } else {
            absolute(input)?
        };
        environment.push((INPUT_VARIABLE, input.into_os_string()));
    }
    Ok(CommandPlace {
        directory: Some(directory),
        environment,
    })
}

/// Copies a side file, which a command may then change without an effect on the original or on other
/// attempts. Keeps the copy of an earlier command of the attempt unless that has changed it.
fn copy_read_only(original: &Path, copy: &Path) -> io::Result<()> {
    let mut from = File::open(original)?;
    let metadata = from.metadata()?;
    let modified = metadata.modified()?;
    let executable = metadata.permissions().mode() & 0o111;
    let mode = 0o444 | executable;
    match fs::symlink_metadata(copy) {
        Ok(found) => {
            let is_unchanged = found.is_file()
                && found.len() == metadata.len()
                && found.permissions().mode() & 0o7777 == mode
                && found.modified()? == modified;
            if is_unchanged {
                return Ok(());
            }
            if found.is_dir() {
                fs::remove_dir_all(copy)?;
            } else {
                fs::remove_file(copy)?;
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut to = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(copy)?;
    io::copy(&mut from, &mut to)?;
    to.set_modified(modified)?;
    to.set_permissions(Permissions::from_mode(mode))
}

/// Makes relative folders of a list absolute, since the command starts in another directory. Returns `None`
/// if there are none.
fn absolute_folders(folders: &OsStr) -> Option<OsString> {
    // The shell interprets an empty name and `~` itself.
    let is_relative = |folder: &Path| {
        folder.is_relative() && !folder.as_os_str().is_empty() && !folder.starts_with("~")
    };
    if !env::split_paths(folders).any(|folder| is_relative(&folder)) {
        return None;
    }
    let absolute_folders = env::split_paths(folders).map(|folder| {
        if is_relative(&folder) {
            absolute(&folder).unwrap_or(folder)
        } else {
            folder
        }
    });
    // Fails if the working directory contains a colon.
    env::join_paths(absolute_folders).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_copy_of_side_file_is_made_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let original = folder.path().join("original");
        let link = folder.path().join("link");
        let copy = folder.path().join("copy");
        fs::write(&original, "to be").expect("written");
        fs::set_permissions(&original, Permissions::from_mode(0o750)).expect("permissions");
        std::os::unix::fs::symlink(&original, &link).expect("a link");
        let check = || {
            copy_read_only(&link, &copy).expect("a copy");
            let found = fs::symlink_metadata(&copy).expect("a copy");
            assert!(found.is_file());
            assert_eq!(found.permissions().mode() & 0o7777, 0o554);
            assert_eq!(fs::read_to_string(&copy).expect("text"), "to be");
        };
        check();
        check();
        fs::set_permissions(&copy, Permissions::from_mode(0o644)).expect("permissions");
        fs::write(&copy, "or no").expect("written");
        check();
        fs::remove_file(&copy).expect("removed");
        std::os::unix::fs::symlink(&original, &copy).expect("a link");
        check();
        assert_eq!(fs::read_to_string(&original).expect("text"), "to be");
        assert_eq!(
            fs::metadata(&original)
                .expect("a file")
                .permissions()
                .mode()
                & 0o7777,
            0o750
        );
    }

    #[test]
    fn relative_folders_of_list_become_absolute() {
        let here = env::current_dir().expect("a current directory");
        let here = here.to_str().expect("a path of letters");
        for (given, expected) in [
            ("/usr/bin:/bin", None),
            ("", None),
            ("~/bin:/bin", None),
            ("python", Some(format!("{here}/python"))),
            ("/a:lib:./x:", Some(format!("/a:{here}/lib:{here}/x:"))),
        ] {
            let folders = absolute_folders(OsStr::new(given));
            assert_eq!(folders, expected.map(OsString::from), "{given}");
        }
    }
}

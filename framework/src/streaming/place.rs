//! The working directory and environment of an attempt's command, with links to the side files of the job.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, absolute};

use napreduce_protocol::{StorageScheme, TaskError};
use napreduce_task::CommandPlace;

use crate::program::all_side_files;

/// Name of the directory in an attempt's scratch directory.
const DIRECTORY: &str = "command";
const FILES_VARIABLE: &str = "NAPREDUCE_FILES_DIR";
const INPUT_VARIABLE: &str = "NAPREDUCE_INPUT_FILE";
/// Variables with lists of folders to search for programs and their libraries.
const SEARCH_VARIABLES: [&str; 8] =
    ["PATH", "PYTHONPATH", "PERL5LIB", "RUBYLIB", "NODE_PATH", "CLASSPATH", "R_LIBS", "LD_LIBRARY_PATH"];

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
        match symlink(absolute(file)?, directory.join(name)) {
            // The command of the previous input file has created it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
    }
    let mut environment = vec![(FILES_VARIABLE, directory.clone().into_os_string())];
    for name in SEARCH_VARIABLES {
        let absolute = env::var_os(name).and_then(|folders| absolute_folders(&folders));
        environment.extend(absolute.map(|folders| (name, folders)));
    }
    if let Some(input) = input {
        // The command starts in another directory. Names of objects do not depend on it.
        let input = if StorageScheme::of(input).is_some() { input.to_owned() } else { absolute(input)? };
        environment.push((INPUT_VARIABLE, input.into_os_string()));
    }
    Ok(CommandPlace { directory: Some(directory), environment })
}

/// Makes relative folders of a list absolute, since the command starts in another directory. Returns `None`
/// if there are none.
fn absolute_folders(folders: &OsStr) -> Option<OsString> {
    // The shell interprets an empty name and `~` itself.
    let is_relative =
        |folder: &Path| folder.is_relative() && !folder.as_os_str().is_empty() && !folder.starts_with("~");
    if !env::split_paths(folders).any(|folder| is_relative(&folder)) {
        return None;
    }
    let absolute_folders = env::split_paths(folders)
        .map(|folder| if is_relative(&folder) { absolute(&folder).unwrap_or(folder) } else { folder });
    // Fails if the working directory contains a colon.
    env::join_paths(absolute_folders).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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

//! The working directory of an attempt's command, with links to the side files of the job.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, absolute};

use napreduce_protocol::{StorageScheme, TaskError};
use napreduce_task::CommandPlace;

use crate::program::all_side_files;

/// Inside an attempt's scratch.
const DIRECTORY: &str = "command";
const FILES_VARIABLE: &str = "NAPREDUCE_FILES_DIR";
const INPUT_VARIABLE: &str = "NAPREDUCE_INPUT_FILE";
/// Variables with lists of folders, in which programs, and what they load, are looked for.
const SEARCH_VARIABLES: [&str; 8] =
    ["PATH", "PYTHONPATH", "PERL5LIB", "RUBYLIB", "NODE_PATH", "CLASSPATH", "R_LIBS", "LD_LIBRARY_PATH"];

/// Makes the directory of the command of an attempt, which is given the file `input` to read, if it is a
/// mapper. One that reads several files has a command for each, in the same directory.
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
            // From the file before.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
    }
    let mut environment = vec![(FILES_VARIABLE, directory.clone().into_os_string())];
    for name in SEARCH_VARIABLES {
        let absolute = env::var_os(name).and_then(|folders| absolute_folders(&folders));
        environment.extend(absolute.map(|folders| (name, folders)));
    }
    // Embedded, it is as it was typed, and begins where the program was started.
    if let Some(input) = input {
        // The name of an object is the same everywhere.
        let input = if StorageScheme::of(input).is_some() { input.to_owned() } else { absolute(input)? };
        environment.push((INPUT_VARIABLE, input.into_os_string()));
    }
    Ok(CommandPlace { directory: Some(directory), environment })
}

/// A list of folders in which relative ones begin where this process works, since the command starts
/// elsewhere; `None` when it is right as it is.
fn absolute_folders(folders: &OsStr) -> Option<OsString> {
    // A shell has its own idea of an empty name and of `~`.
    let begins_here =
        |folder: &Path| folder.is_relative() && !folder.as_os_str().is_empty() && !folder.starts_with("~");
    if !env::split_paths(folders).any(|folder| begins_here(&folder)) {
        return None;
    }
    let whole = env::split_paths(folders).map(|folder| match begins_here(&folder) {
        true => absolute(&folder).unwrap_or(folder),
        false => folder,
    });
    // A folder whose name has a colon cannot be in a list.
    env::join_paths(whole).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_a_list_begin_where_the_process_works() {
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

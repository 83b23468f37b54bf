//! Where a command of an attempt starts: a directory of its own, in which it finds the side files of the job.
//!
//! Owns the directory, its links and the variables that name files, the same embedded and on a
//! cluster. Does not own where side files are (`program`) nor the removal of the directory, which
//! ends with the attempt's scratch.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, absolute};

use napreduce_live::{CommandPlace, StorageScheme, TaskError};

use crate::program::all_side_files;

/// Inside an attempt's scratch.
const DIRECTORY: &str = "command";
const FILES_VARIABLE: &str = "NAPREDUCE_FILES_DIR";
const INPUT_VARIABLE: &str = "NAPREDUCE_INPUT_FILE";

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
    // Embedded, it is as it was typed, and begins where the program was started.
    if let Some(input) = input {
        // The name of an object is the same everywhere.
        let input = if StorageScheme::of(input).is_some() { input.to_owned() } else { absolute(input)? };
        environment.push((INPUT_VARIABLE, input.into_os_string()));
    }
    Ok(CommandPlace { directory: Some(directory), environment })
}

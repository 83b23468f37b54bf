//! The program of a job: how it is run, and its description of the job.

use std::collections::BTreeMap;
use std::ffi::OsString;

use napreduce_task::CommandPlace;
use serde::{Deserialize, Serialize};

use super::hello::Description;

/// Makes a program speak frames instead of running a job.
const SPEAK_VARIABLE: &str = "NAPREDUCE_FRAMES";
/// Python's order of sets and of the like changes from process to process unless this is said, and with it
/// what a map emits.
const HASH_VARIABLE: &str = "PYTHONHASHSEED";
/// Python takes the program for where its link leads to, and would not find other files of the job beside it.
const MODULES_VARIABLE: &str = "PYTHONPATH";

/// A program that speaks frames, as the job of `nap frames` has it.
///
/// ```no_run
/// use napreduce::streaming::frames::{FramesProgram, job};
///
/// let program = FramesProgram::ask("python3 wordcount.py", "wordcount.py", [("least".to_owned(), "2".to_owned())])?;
/// let words = job(&program);
/// # let _ = words;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FramesProgram {
    /// For `sh -c`.
    pub(super) command: String,
    /// For people.
    pub(super) name: String,
    pub(super) parameters: BTreeMap<String, String>,
    /// Names of side files that Python imports modules from.
    #[serde(default)]
    pub(super) py_files: Vec<String>,
    pub(super) description: Description,
}

/// What a program finds in its environment beside what commands find.
pub(super) fn environment(place: &CommandPlace, py_files: &[String]) -> Vec<(&'static str, OsString)> {
    let mut variables = vec![(SPEAK_VARIABLE, OsString::from("1"))];
    if std::env::var_os(HASH_VARIABLE).is_none() {
        variables.push((HASH_VARIABLE, OsString::from("0")));
    }
    if let Some(directory) = &place.directory {
        let mut paths = directory.clone().into_os_string();
        for file in py_files {
            paths.push(":");
            paths.push(directory.join(file));
        }
        let own = place.environment.iter().find(|(name, _)| *name == MODULES_VARIABLE);
        let before = own.map_or_else(|| std::env::var_os(MODULES_VARIABLE), |(_, value)| Some(value.clone()));
        if let Some(before) = before.filter(|before| !before.is_empty()) {
            paths.push(":");
            paths.push(before);
        }
        variables.push((MODULES_VARIABLE, paths));
    }
    variables
}

//! The files that INPUT arguments mean.
//!
//! Owns the expansion of files, directories and globs, and the errors about them. Does not own what is in the
//! files.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::InputError;

/// A file to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    /// Its path, beginning as the argument did.
    pub path: PathBuf,
    /// Its size in bytes as it is stored.
    pub size: u64,
}

/// The files that `inputs` mean, sorted by path, each once however many arguments mean it, and each known to
/// be readable.
///
/// A directory means the files directly in it; names starting with `_` or `.` are left out, there and where a
/// glob matches them without spelling that first letter. A directory that a glob matches is a directory
/// argument.
pub fn expand<P: AsRef<Path>>(inputs: &[P]) -> Result<Vec<InputFile>, InputError> {
    let mut files = BTreeMap::new();
    for input in inputs {
        let path = input.as_ref();
        match (metadata(path), path.to_str()) {
            (Ok(metadata), _) => add_path(path, &metadata, &mut files)?,
            // What exists under this very name is meant by it, also with the letters of a glob.
            (Err(error), Some(pattern)) if is_absent(&error) && is_glob(pattern) => {
                add_glob(pattern, &mut files)?;
            }
            (Err(error), _) => return Err(unreadable(path, error)),
        }
    }
    Ok(files.into_iter().map(|(path, size)| InputFile { path, size }).collect())
}

fn metadata(path: &Path) -> io::Result<Metadata> {
    fs::metadata(path)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn unreadable(path: &Path, error: io::Error) -> InputError {
    if is_absent(&error) {
        InputError::Missing { path: path.to_owned() }
    } else {
        InputError::unreadable(path, error)
    }
}

fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

fn is_hidden(name: &OsStr) -> bool {
    matches!(name.as_encoded_bytes().first(), Some(b'_' | b'.'))
}

fn add_path(path: &Path, metadata: &Metadata, files: &mut BTreeMap<PathBuf, u64>) -> Result<(), InputError> {
    if metadata.is_dir() {
        add_directory(path, files)
    } else if metadata.is_file() {
        add_file(path, metadata.len(), files)
    } else {
        Err(InputError::NotAFile { path: path.to_owned() })
    }
}

fn add_file(path: &Path, size: u64, files: &mut BTreeMap<PathBuf, u64>) -> Result<(), InputError> {
    // Better to know now than in a task.
    File::open(path).map_err(|error| unreadable(path, error))?;
    files.insert(path.to_owned(), size);
    Ok(())
}

fn add_directory(directory: &Path, files: &mut BTreeMap<PathBuf, u64>) -> Result<(), InputError> {
    let entries = fs::read_dir(directory).map_err(|error| InputError::unreadable(directory, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| InputError::unreadable(directory, error))?;
        if is_hidden(&entry.file_name()) {
            continue;
        }
        let path = entry.path();
        let metadata = metadata(&path).map_err(|error| unreadable(&path, error))?;
        if !metadata.is_dir() {
            add_path(&path, &metadata, files)?;
        }
    }
    Ok(())
}

fn add_glob(pattern: &str, files: &mut BTreeMap<PathBuf, u64>) -> Result<(), InputError> {
    let matches = glob::glob(pattern)
        .map_err(|error| InputError::BadPattern { pattern: pattern.to_owned(), reason: error.to_string() })?;
    let hidden_meant = Path::new(pattern).file_name().is_some_and(is_hidden);
    let mut found = false;
    for path in matches {
        let path = path.map_err(|error| {
            let path = error.path().to_owned();
            InputError::unreadable(&path, error.into())
        })?;
        if !hidden_meant && path.file_name().is_some_and(is_hidden) {
            continue;
        }
        found = true;
        let metadata = metadata(&path).map_err(|error| unreadable(&path, error))?;
        add_path(&path, &metadata, files)?;
    }
    if found { Ok(()) } else { Err(InputError::NoMatch { pattern: pattern.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use tempfile::TempDir;

    /// A directory with files and the hidden names around them.
    fn directory() -> TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = directory.path();
        for folder in ["in", "in/deeper", "empty", "logs"] {
            fs::create_dir(root.join(folder)).expect("a new directory");
        }
        for file in [
            "in/b.txt",
            "in/a.txt",
            "in/_SUCCESS",
            "in/.hidden",
            "in/deeper/c.txt",
            "logs/x[1].log",
            "logs/y.log",
        ] {
            fs::write(root.join(file), file).expect("a written file");
        }
        directory
    }

    /// What the arguments mean, below the directory.
    fn expanded(directory: &TempDir, arguments: &[&str]) -> Result<Vec<String>, String> {
        let root = directory.path();
        let arguments: Vec<_> = arguments.iter().map(|argument| root.join(argument)).collect();
        let below = |text: String| text.replace(&format!("{}/", root.display()), "");
        match expand(&arguments) {
            Ok(files) => Ok(files
                .into_iter()
                .map(|file| {
                    let name = below(file.path.display().to_string());
                    assert_eq!(file.size, fs::metadata(&file.path).expect("it was found").len());
                    name
                })
                .collect()),
            Err(error) => Err(below(error.to_string())),
        }
    }

    #[test]
    fn files_directories_and_globs_give_sorted_files_once() {
        let root = directory();
        let found = |arguments: &[&str]| expanded(&root, arguments).expect("they exist");
        assert_eq!(found(&["in/b.txt"]), ["in/b.txt"]);
        assert_eq!(found(&["in"]), ["in/a.txt", "in/b.txt"]);
        assert_eq!(found(&["in/b.txt", "in", "in/*.txt", "in/b.txt"]), ["in/a.txt", "in/b.txt"]);
        assert_eq!(found(&["logs/?.log", "in/[a-a].txt"]), ["in/a.txt", "logs/y.log"]);
        assert_eq!(found(&["empty"]), [""; 0]);
        assert_eq!(found(&[]), [""; 0]);
    }

    #[test]
    fn hidden_names_are_meant_only_when_spelled() {
        let root = directory();
        let found = |argument: &str| expanded(&root, &[argument]);
        assert_eq!(found("in/*"), Ok(vec!["in/a.txt".into(), "in/b.txt".into(), "in/deeper/c.txt".into()]));
        assert_eq!(found("in/_*"), Ok(vec!["in/_SUCCESS".into()]));
        assert_eq!(found("in/.hidden"), Ok(vec!["in/.hidden".into()]));
    }

    #[test]
    fn a_name_that_exists_is_no_pattern() {
        let root = directory();
        assert_eq!(expanded(&root, &["logs/x[1].log"]), Ok(vec!["logs/x[1].log".into()]));
    }

    #[test]
    fn what_is_missing_or_no_file_is_named() {
        let root = directory();
        let error = |argument: &str| expanded(&root, &["in", argument]).expect_err("it is wrong");
        assert_eq!(error("in/x"), "input in/x does not exist");
        assert_eq!(error("in/a.txt/x"), "input in/a.txt/x does not exist");
        assert_eq!(error("in/*.csv"), "input in/*.csv matches no file");
        assert!(error("in/[").starts_with("input in/[ is not a valid pattern: "));

        let _socket = UnixListener::bind(root.path().join("socket")).expect("a socket");
        assert_eq!(error("socket"), "input socket is neither a file nor a directory");
        symlink(root.path().join("gone"), root.path().join("in/link")).expect("a link");
        assert_eq!(error("in"), "input in/link does not exist");
    }

    #[test]
    fn what_may_not_be_read_says_so() {
        let denied = io::Error::from_raw_os_error(13);
        let error = unreadable(Path::new("data/x"), denied);
        assert_eq!(error.to_string(), "cannot read data/x: permission denied");
    }
}

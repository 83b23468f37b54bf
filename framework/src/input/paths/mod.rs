//! Expansion of INPUT arguments to files. Each file is read once, even if it is listed twice.

mod name_pattern;
mod pattern;
#[cfg(feature = "storage")]
mod stored;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use napreduce_local::named_output_files;
use napreduce_protocol::{Split, StorageScheme};

use self::pattern::PathPattern;
use super::error::InputError;

/// A file to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    /// Its path, beginning as the argument did.
    pub path: PathBuf,
    /// Its stored size in bytes.
    pub size: u64,
    /// The version of an object in a store; `None` for a file.
    pub version: Option<String>,
}

impl InputFile {
    /// Returns one split of the whole file.
    pub fn whole(&self) -> Split {
        Split {
            version: self.version.clone(),
            ..Split::whole(&self.path, self.size)
        }
    }
}

/// Expands `inputs` to files, sorted by path and checked to be readable. Each file appears once, under the
/// first of its names; hard and symbolic links count as names of one file.
///
/// An object in a store is given as `s3://bucket/key`; all keys that begin with a key and a slash are in the
/// directory of that key.
///
/// A directory means the files directly in it, or with `recursive` all files below it; otherwise
/// subdirectories are an error. Names starting with `_` or `.` are skipped in directories and by globs that
/// do not spell that first letter. A directory that a glob matches is treated like a directory argument.
///
/// The directory with the output of a job stands for its part files: named outputs, which its `_SUCCESS` lists, are
/// skipped there, and read where their files are given themselves (`out/errors-*`).
///
/// `{a,b}` expands to two arguments, and `file:///path` to a path. A backslash makes the next character of a
/// glob literal.
pub fn expand<P: AsRef<Path>>(inputs: &[P], recursive: bool) -> Result<Vec<InputFile>, InputError> {
    let mut expansion = Expansion {
        recursive,
        ..Expansion::default()
    };
    for input in inputs {
        expansion.add_argument(&local_path(input.as_ref()))?;
    }
    Ok(expansion.in_order())
}

/// Returns the path of a local file URI as Hadoop writes it; returns other paths unchanged.
pub(crate) fn local_path(path: &Path) -> PathBuf {
    let uri = path.to_str().and_then(|text| text.strip_prefix("file:"));
    let local = uri.and_then(|rest| {
        rest.strip_prefix("//localhost")
            .or(rest.strip_prefix("//"))
            .or(Some(rest))
    });
    local
        .filter(|local| local.starts_with('/'))
        .map_or_else(|| path.to_owned(), PathBuf::from)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn unreadable(path: &Path, error: io::Error) -> InputError {
    if is_absent(&error) {
        InputError::Missing {
            path: path.to_owned(),
        }
    } else {
        InputError::unreadable(path, error)
    }
}

/// Returns whether a file has another size than its metadata state, as those of /proc and /sys do. Such files
/// occupy no blocks.
pub(crate) fn has_unknown_size(file: &File, metadata: &Metadata) -> io::Result<bool> {
    if !metadata.is_file() || metadata.blocks() > 0 {
        return Ok(false);
    }
    let mut byte = [0];
    match metadata.len().checked_sub(1) {
        None => Ok(file.read_at(&mut byte, 0)? > 0),
        Some(last) => Ok(file.read_at(&mut byte, last)? == 0),
    }
}

fn is_hidden(name: &OsStr) -> bool {
    matches!(name.as_encoded_bytes().first(), Some(b'_' | b'.'))
}

/// Device and inode.
type Identity = (u64, u64);

fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

/// A path and the metadata of its target.
type Entry = (PathBuf, Metadata);

/// Returns the visible entries of a directory, by name.
fn entries(directory: &Path) -> Result<Vec<Entry>, InputError> {
    let listed = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let listed = listed.map_err(|error| InputError::unreadable(directory, error))?;
    let mut paths: Vec<_> = listed
        .iter()
        .filter(|entry| !is_hidden(&entry.file_name()))
        .map(fs::DirEntry::path)
        .collect();
    paths.sort();
    let followed = |path: PathBuf| match fs::metadata(&path) {
        Ok(metadata) => Ok((path, metadata)),
        Err(error) => Err(unreadable(&path, error)),
    };
    paths.into_iter().map(followed).collect()
}

/// The file that a job writes last in its output directory.
const SUCCESS: &str = "_SUCCESS";

/// Returns the names of the files of named outputs in the output directory of a job.
fn named_outputs_in(directory: &Path) -> Result<HashSet<OsString>, InputError> {
    let success = directory.join(SUCCESS);
    let is_file = fs::symlink_metadata(&success).is_ok_and(|metadata| metadata.is_file());
    if !is_file {
        return Ok(HashSet::new());
    }
    let listed = fs::read(&success).map_err(|error| InputError::unreadable(&success, error))?;
    Ok(named_output_files(&listed)
        .into_iter()
        .map(OsString::from)
        .collect())
}

/// The paths with the same device and inode.
struct Names {
    first: PathBuf,
    /// Their canonical paths, filled when there are two.
    resolved: HashSet<PathBuf>,
}

#[derive(Default)]
struct Expansion {
    recursive: bool,
    files: BTreeMap<PathBuf, u64>,
    objects: BTreeMap<OsString, InputFile>,
    known: HashMap<Identity, Names>,
    /// Visited directories; a link to a parent ends there.
    directories: HashSet<Identity>,
}

impl Expansion {
    fn add_argument(&mut self, path: &Path) -> Result<(), InputError> {
        let scheme = StorageScheme::from_path(path);
        let found = match scheme {
            Some(_) => None,
            None => Some(fs::metadata(path)),
        };
        match found {
            // An existing file of exactly this name has priority over a glob.
            Some(Ok(metadata)) => return self.add(path, &metadata, &HashSet::new()),
            Some(Err(error)) if !is_absent(&error) => return Err(unreadable(path, error)),
            _ => {}
        }
        let argument = path.as_os_str().as_bytes();
        if let Some(alternatives) = pattern::alternatives(argument) {
            for one in alternatives {
                self.add_argument(Path::new(OsStr::from_bytes(&one)))?;
            }
            return Ok(());
        }
        if scheme.is_none() && pattern::is_glob(argument) {
            return self.add_glob(argument);
        }
        match scheme {
            Some(scheme) => self.add_objects(path, scheme),
            None => Err(InputError::Missing {
                path: path.to_owned(),
            }),
        }
    }

    /// Adds the files of a path. Directories in `covered` are arguments themselves, however they are reached.
    fn add(
        &mut self,
        path: &Path,
        metadata: &Metadata,
        covered: &HashSet<Identity>,
    ) -> Result<(), InputError> {
        if metadata.is_dir() {
            self.add_directory(path, metadata, covered)
        } else if metadata.is_file() {
            self.add_file(path, metadata)
        } else {
            Err(InputError::NotAFile {
                path: path.to_owned(),
            })
        }
    }

    fn add_file(&mut self, path: &Path, metadata: &Metadata) -> Result<(), InputError> {
        // Fail now instead of in a task.
        let file = File::open(path).map_err(|error| unreadable(path, error))?;
        if has_unknown_size(&file, metadata).map_err(|error| unreadable(path, error))? {
            return Err(InputError::UnknownSize {
                path: path.to_owned(),
            });
        }
        if self.is_new(path, metadata)? {
            self.files.insert(path.to_owned(), metadata.len());
        }
        Ok(())
    }

    /// Returns whether no earlier path led to this file. Some file systems give several files the same inode,
    /// so a file without hard links is also compared by its canonical path.
    fn is_new(&mut self, path: &Path, metadata: &Metadata) -> Result<bool, InputError> {
        let mut is_first = false;
        let names = self.known.entry(identity(metadata)).or_insert_with(|| {
            is_first = true;
            Names {
                first: path.to_owned(),
                resolved: HashSet::new(),
            }
        });
        if is_first {
            return Ok(true);
        }
        if metadata.nlink() > 1 || names.first == path {
            return Ok(false);
        }
        let resolve = |path: &Path| fs::canonicalize(path).map_err(|error| unreadable(path, error));
        names.resolved.insert(resolve(&names.first)?);
        Ok(names.resolved.insert(resolve(path)?))
    }

    fn add_directory(
        &mut self,
        directory: &Path,
        metadata: &Metadata,
        covered: &HashSet<Identity>,
    ) -> Result<(), InputError> {
        if !self.directories.insert(identity(metadata)) {
            return Ok(());
        }
        let named_outputs = named_outputs_in(directory)?;
        for (path, metadata) in entries(directory)? {
            if path
                .file_name()
                .is_some_and(|name| named_outputs.contains(name))
            {
                continue;
            }
            if !metadata.is_dir() || self.recursive {
                self.add(&path, &metadata, covered)?;
            } else if !covered.contains(&identity(&metadata)) {
                return Err(InputError::Nested {
                    directory: directory.to_owned(),
                    nested: path,
                });
            }
        }
        Ok(())
    }

    /// Adds the objects of a name in a store.
    #[cfg(feature = "storage")]
    fn add_objects(&mut self, path: &Path, _: StorageScheme) -> Result<(), InputError> {
        for object in stored::expand(path, self.recursive)? {
            // As text: equal paths may be names of different objects.
            self.objects
                .insert(object.path.clone().into_os_string(), object);
        }
        Ok(())
    }

    #[cfg(not(feature = "storage"))]
    fn add_objects(&mut self, path: &Path, scheme: StorageScheme) -> Result<(), InputError> {
        let path = path.to_owned();
        let store = scheme.to_string();
        Err(InputError::NoStorage {
            path,
            store,
            feature: scheme.feature(),
        })
    }

    /// Returns the files in the order of paths.
    fn in_order(self) -> Vec<InputFile> {
        let files = self.files.into_iter().map(|(path, size)| InputFile {
            path,
            size,
            version: None,
        });
        let mut files: Vec<InputFile> = files.chain(self.objects.into_values()).collect();
        files.sort_by(|one, other| {
            one.path
                .cmp(&other.path)
                .then_with(|| one.path.as_os_str().cmp(other.path.as_os_str()))
        });
        files
    }

    fn add_glob(&mut self, glob: &[u8]) -> Result<(), InputError> {
        let matches = PathPattern::parse(glob)?.matches()?;
        if matches.is_empty() {
            return Err(InputError::NoMatch {
                pattern: String::from_utf8_lossy(glob).into_owned(),
            });
        }
        let directories = matches.iter().filter(|(_, metadata)| metadata.is_dir());
        let covered = directories
            .map(|(_, metadata)| identity(metadata))
            .collect();
        matches
            .iter()
            .try_for_each(|(path, metadata)| self.add(path, metadata, &covered))
    }
}

//! Inputs that cannot be read in splits: standard input, under the name `-`, named pipes, and files of unknown
//! size. Each is copied to an unlinked file, which the kernel removes however the program ends.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::input::has_unknown_size;
use crate::program::Error;

/// The name of standard input.
pub(super) const DASH: &str = "-";
/// Maximum number of symbolic links followed.
const LINKS_MAX: usize = 40;

/// Returns the name under which an input is copied that can be read only once, that refers to another file in
/// each process, such as `/dev/stdin` and the paths of `<(command)`, or whose size is unknown. Returns `None`
/// for all others.
pub(crate) fn transient_name(path: &Path) -> Option<PathBuf> {
    if path == Path::new(DASH) {
        return Some(path.to_owned());
    }
    match own_descriptor(path) {
        Some(0) => Some(DASH.into()),
        Some(_) => Some(path.to_owned()),
        None => must_be_copied(path).then(|| path.to_owned()),
    }
}

/// Returns whether a path leads to a pipe, or to a file of unknown size.
fn must_be_copied(path: &Path) -> bool {
    let Ok(metadata) = fs::metadata(path) else {
        return false;
    };
    if metadata.file_type().is_fifo() {
        return true;
    }
    // An error is reported when the file is read.
    metadata.is_file()
        && File::open(path).is_ok_and(|file| has_unknown_size(&file, &metadata).unwrap_or(true))
}

/// Returns the path by which a transient input is compared with the files of an output directory.
pub(super) fn compared_path(name: &Path) -> &Path {
    if name == Path::new(DASH) {
        Path::new("/dev/stdin")
    } else {
        name
    }
}

/// Returns the descriptor of this process to which a path leads.
fn own_descriptor(path: &Path) -> Option<u32> {
    let own = fs::canonicalize("/proc/self").ok()?;
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let directory = Path::new(".").join(path.parent()?);
        let directory = fs::canonicalize(directory).ok()?;
        if directory.starts_with(&own) && directory.ends_with("fd") {
            return path.file_name()?.to_str()?.parse().ok();
        }
        path = directory.join(fs::read_link(&path).ok()?);
    }
    None
}

/// The copy of such an input.
pub(super) struct SpooledInput {
    file: File,
}

impl SpooledInput {
    /// Reads the input of this name, for which [`transient_name`] returned a name, to its end.
    pub(super) fn read(name: &Path) -> Result<SpooledInput, Error> {
        if name == Path::new(DASH) {
            return SpooledInput::spool("standard input", &mut io::stdin().lock());
        }
        let shown = name.display().to_string();
        let mut from = File::open(name).map_err(|error| {
            Error::Usage(format!(
                "cannot read {shown}: {error}; write its data to a file and name that"
            ))
        })?;
        SpooledInput::spool(&shown, &mut from)
    }

    /// Reads to the end, into a file in the directory for temporary files.
    fn spool(name: &str, from: &mut impl Read) -> Result<SpooledInput, Error> {
        let directory = std::env::temp_dir();
        let spooled = unnamed_file(&directory).and_then(|mut file| {
            io::copy(from, &mut file)?;
            Ok(SpooledInput { file })
        });
        spooled.map_err(|error| {
            let directory = directory.display();
            Error::Usage(format!(
                "cannot copy {name} to {directory}: {error}; set TMPDIR to a directory with enough space"
            ))
        })
    }

    /// Returns a path valid for all processes of this machine while this one runs.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            self.file.as_raw_fd()
        ))
    }
}

fn unnamed_file(directory: &Path) -> io::Result<File> {
    for number in 0.. {
        let path = directory.join(format!("napreduce-input-{}-{number}", std::process::id()));
        match File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
        {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => {
                let file = opened?;
                fs::remove_file(&path)?;
                return Ok(file);
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stdin_copy_exists_until_drop() {
        let spooled = SpooledInput::spool("standard input", &mut &b"to be\n"[..])
            .expect("room for six bytes");
        let path = spooled.path();
        assert_eq!(fs::read(&path).expect("it is there"), b"to be\n");
        assert_eq!(fs::read(&path).expect("from the beginning"), b"to be\n");
        assert!(fs::metadata(&path).expect("it is there").is_file());
        drop(spooled);
        assert!(
            !fs::read_link(&path)
                .is_ok_and(|target| target.to_string_lossy().contains("napreduce-input"))
        );
    }

    #[test]
    fn transient_inputs_are_recognized() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "to be\n").expect("written");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/stdin", &link).expect("a link");
        for path in [
            Path::new("-"),
            Path::new("/dev/stdin"),
            Path::new("/dev/fd/0"),
            Path::new("/proc/self/fd/0"),
            &link,
        ] {
            assert_eq!(
                transient_name(path).as_deref(),
                Some(Path::new(DASH)),
                "{}",
                path.display()
            );
        }
        let opened = File::open(&file).expect("it is there");
        let own = PathBuf::from(format!("/dev/fd/{}", opened.as_raw_fd()));
        assert_eq!(transient_name(&own), Some(own.clone()));
        let spooled = SpooledInput::read(&own).expect("it can be read");
        assert_eq!(fs::read(spooled.path()).expect("it is there"), b"to be\n");
        let processors = Path::new("/proc/cpuinfo");
        assert_eq!(transient_name(processors).as_deref(), Some(processors));
        let spooled = SpooledInput::read(processors).expect("it can be read");
        let size = fs::metadata(spooled.path()).expect("it is there").len();
        assert!(size > 0);
        for path in [
            &file,
            Path::new("s3://bucket/key"),
            Path::new("no-such-file"),
            Path::new("/dev/null"),
        ] {
            assert_eq!(transient_name(path), None, "{}", path.display());
        }
    }
}

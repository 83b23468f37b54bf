//! Opens regular files in directories that other users may write to, and files that a user names. A name may be that of
//! a pipe, which blocks, of an endless device, or of a link to a foreign file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file for reading: no pipe, device, socket, directory or symbolic link. Never blocks.
///
/// # Errors
///
/// System errors, and [`io::ErrorKind::InvalidInput`] for other kinds of files.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open_regular_with(OpenOptions::new().read(true), path)
}

/// Opens a regular file with `options`.
///
/// # Errors
///
/// As for [`open_regular`].
pub fn open_regular_with(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).expect("flags of open are a C int");
    let file = options
        .clone()
        .custom_flags(flags)
        .open(path)
        .map_err(|error| {
            let error_code = error.raw_os_error();
            if error_code == Some(libc::ELOOP) {
                irregular("is a symbolic link; links are not followed here")
            } else if error_code == Some(libc::ENXIO) {
                irregular("is not a regular file")
            } else {
                error
            }
        })?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(irregular("is not a regular file"))
    }
}

/// Syncs the directory that a file is in. A file that was created or renamed, and whose content was synced, is still
/// missing after a power loss if its directory was not synced.
///
/// # Errors
///
/// System errors.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(parent)?.sync_all()
}

/// Reads the whole of a regular file of at most `bytes_max` bytes.
///
/// # Errors
///
/// As for [`open_regular`], and for a longer file.
pub fn read_regular(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_bounded(open_regular(path)?, bytes_max)
}

/// Reads a text file that a user named, of at most `bytes_max` bytes: a regular file, which may be behind symbolic links.
///
/// ```
/// use napreduce_protocol::read_named_text;
///
/// let error = read_named_text("/dev/zero".as_ref(), 1 << 20).unwrap_err();
/// assert_eq!(error.to_string(), "it is not a regular file");
/// ```
///
/// # Errors
///
/// System errors, and [`io::ErrorKind::InvalidInput`] for other kinds of files and for a longer file.
/// [`io::ErrorKind::InvalidData`] if it is not UTF-8.
pub fn read_named_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    read_text(open_named(path)?, bytes_max)
}

/// Opens a regular file that a user named, which may be behind symbolic links.
///
/// # Errors
///
/// System errors, and [`io::ErrorKind::InvalidInput`] for other kinds of files.
pub fn open_named(path: &Path) -> io::Result<File> {
    // Without the flag, opening a pipe blocks until it has a writer.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).expect("flags of open are a C int");
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(irregular("is not a regular file"));
    }
    Ok(file)
}

/// Reads a text of at most `bytes_max` bytes to its end.
///
/// # Errors
///
/// Errors of the reader, [`io::ErrorKind::InvalidInput`] for a longer text, and [`io::ErrorKind::InvalidData`] if it is
/// not UTF-8.
pub fn read_text(from: impl Read, bytes_max: u64) -> io::Result<String> {
    let bytes = read_bounded(from, bytes_max)?;
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Reads at most `bytes_max` bytes to their end.
///
/// # Errors
///
/// Errors of the reader, and [`io::ErrorKind::InvalidInput`] for more bytes.
pub fn read_bounded(from: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(irregular(&format!("has more than {bytes_max} bytes")));
    }
    Ok(bytes)
}

fn irregular(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("it {what}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn open_regular_refuses_other_file_kinds() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "text").expect("written");
        symlink(path("file"), path("link")).expect("a link");
        symlink("/dev/zero", path("zeros")).expect("a link");
        symlink("nowhere", path("dangling")).expect("a link");
        mknodat(
            CWD,
            path("pipe"),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .expect("a pipe");
        let _listener = UnixListener::bind(path("socket")).expect("a socket");
        fs::create_dir(path("directory")).expect("made");
        assert_eq!(
            read_regular(&path("file"), 4).expect("a regular file"),
            b"text"
        );
        let too_long = read_regular(&path("file"), 3).expect_err("it is longer");
        assert!(
            too_long.to_string().contains("more than 3 bytes"),
            "{too_long}"
        );
        for name in ["link", "zeros", "dangling", "pipe", "socket", "directory"] {
            let error = read_regular(&path(name), 9).expect_err(name);
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}: {error}");
        }
        assert_eq!(
            read_named_text(&path("link"), 4).expect("a link to a regular file"),
            "text"
        );
        let too_long = read_named_text(&path("file"), 3).expect_err("it is longer");
        assert!(
            too_long.to_string().contains("more than 3 bytes"),
            "{too_long}"
        );
        for name in ["zeros", "pipe", "directory"] {
            let error = read_named_text(&path(name), 9).expect_err(name);
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}: {error}");
        }
        let writing = open_regular_with(OpenOptions::new().write(true).create(true), &path("pipe"));
        assert_eq!(
            writing.expect_err("a pipe").kind(),
            io::ErrorKind::InvalidInput
        );
        assert_eq!(
            open_regular(&path("none")).expect_err("nothing").kind(),
            io::ErrorKind::NotFound
        );
    }
}

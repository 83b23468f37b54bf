//! Standard input as an input, under the name `-`.
//!
//! Owns the file in which it is kept, which has no name any more, so that nothing stays behind however the
//! program ends. Does not own what is read from it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::program::Error;

/// What is typed for it.
pub(super) const DASH: &str = "-";

/// All that was read from standard input.
pub(super) struct StandardInput {
    file: File,
}

impl StandardInput {
    /// Reads to the end, into a file of the directory for temporary files.
    pub(super) fn spool(from: &mut impl Read) -> Result<StandardInput, Error> {
        let directory = std::env::temp_dir();
        let spooled = unnamed_file(&directory).and_then(|mut file| {
            io::copy(from, &mut file)?;
            Ok(StandardInput { file })
        });
        spooled.map_err(|error| {
            let directory = directory.display();
            Error::Usage(format!(
                "cannot keep standard input in {directory}: {error}; set TMPDIR to a directory with room for it"
            ))
        })
    }

    /// Where processes of this machine find it, as long as this one runs.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()))
    }
}

fn unnamed_file(directory: &Path) -> io::Result<File> {
    for number in 0.. {
        let path = directory.join(format!("napreduce-input-{}-{number}", std::process::id()));
        match File::options().read(true).write(true).create_new(true).open(&path) {
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
    fn what_was_read_is_found_until_it_is_dropped() {
        let spooled = StandardInput::spool(&mut &b"to be\n"[..]).expect("room for six bytes");
        let path = spooled.path();
        assert_eq!(fs::read(&path).expect("it is there"), b"to be\n");
        assert_eq!(fs::read(&path).expect("from the beginning"), b"to be\n");
        assert!(fs::metadata(&path).expect("it is there").is_file());
        drop(spooled);
        assert!(
            !fs::read_link(&path).is_ok_and(|target| target.to_string_lossy().contains("napreduce-input"))
        );
    }
}

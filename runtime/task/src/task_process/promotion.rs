//! The commit of one attempt: syncs its part file and renames it to where the job's commit finds it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use napreduce_protocol::TaskError;

/// A question for errors about missing files.
pub(super) const WAS_IT_CHANGED: &str = "; was the output directory changed while the job ran?";

/// The path of a written part file, and its final path or object.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartPaths<'a> {
    pub(super) written: &'a Path,
    pub(super) target: &'a Path,
}

/// The rename of a part file.
#[derive(Debug)]
pub(super) struct Promotion {
    pub(super) written: PathBuf,
    pub(super) target: PathBuf,
    pub(super) bytes: u64,
    /// Whether to sync the file and its directory.
    pub(super) sync: bool,
}

impl Promotion {
    /// Does the work that can fail before the commit request.
    pub(super) fn prepare(&self) -> Result<(), TaskError> {
        if self.sync {
            sync(&self.written)
        } else {
            Ok(())
        }
    }

    pub(super) fn carry_out(&self) -> Result<(), TaskError> {
        match fs::rename(&self.written, &self.target) {
            // A network file system may repeat a request after it was carried out, and then report a missing
            // file.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_there() => {}
            Err(error) => {
                let doing = format!(
                    "move {} to {}",
                    self.written.display(),
                    self.target.display()
                );
                return Err(in_output(doing, &error));
            }
            Ok(()) => {}
        }
        match self.target.parent() {
            Some(directory) if self.sync => sync(directory),
            _ => Ok(()),
        }
    }

    fn is_there(&self) -> bool {
        fs::symlink_metadata(&self.target)
            .is_ok_and(|found| found.is_file() && found.len() == self.bytes)
    }
}

fn sync(path: &Path) -> Result<(), TaskError> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(|error| in_output(format!("sync {}", path.display()), &error))
}

/// Returns the error of a file operation in the output directory. A missing file was removed by others or is
/// unreachable; the coordinator determines which, and whether a retry can help.
pub(super) fn in_output(doing: String, error: &io::Error) -> TaskError {
    let failed = TaskError::io(doing, error);
    match error.kind() {
        io::ErrorKind::NotFound => TaskError {
            message: format!("{}{WAS_IT_CHANGED}", failed.message),
            ..failed
        },
        _ => failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_moved_by_repeated_request_is_promoted() {
        for sync in [false, true] {
            let folder = tempfile::tempdir().expect("a folder");
            let written = folder.path().join("written");
            let target = folder.path().join("target");
            fs::write(&written, "part").expect("written");
            let promotion = Promotion {
                written: written.clone(),
                target: target.clone(),
                bytes: 4,
                sync,
            };
            promotion.prepare().expect("synced");
            promotion.carry_out().expect("moved");
            promotion.carry_out().expect("moved before");
            fs::write(&target, "another").expect("written");
            let error = promotion.carry_out().expect_err("another file is there");
            assert!(
                error.message.contains("was the output directory changed"),
                "{}",
                error.message
            );
        }
    }
}

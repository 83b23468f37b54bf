//! Selects the checkpoint from which an attempt continues if several attempts have saved and no worker
//! decides.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use napreduce_engine::TaskId;
use napreduce_protocol::IoResult;

use super::description::Checkpoint;
use super::error::{CheckpointError, FileResult};

impl Checkpoint {
    /// Returns the directory in `base` with the most advanced readable checkpoint of `task`; `None` if there
    /// is none. Reports unreadable checkpoints to `remark` and disables damaged ones. Skips incomplete ones.
    ///
    /// # Errors
    /// Fails if `base` cannot be read or a damaged checkpoint cannot be disabled.
    pub fn furthest(
        base: &Path,
        task: TaskId,
        mut remark: impl FnMut(&CheckpointError),
    ) -> Result<Option<PathBuf>, CheckpointError> {
        let Some(entries) = fs::read_dir(base).if_there().at("read", base)? else {
            return Ok(None);
        };
        let mut best: Option<((u64, u64), PathBuf)> = None;
        for entry in entries {
            let directory = entry.at("read", base)?.path();
            match Checkpoint::read(&directory, task) {
                Ok(checkpoint) => {
                    let reached = (checkpoint.records(), checkpoint.active_millis);
                    if best
                        .as_ref()
                        .is_none_or(|(furthest, _)| *furthest < reached)
                    {
                        best = Some((reached, directory));
                    }
                }
                Err(CheckpointError::Io { source, .. })
                    if source.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    remark(&error);
                    if !matches!(error, CheckpointError::Io { .. }) {
                        Checkpoint::set_aside(&directory)?;
                    }
                }
            }
        }
        Ok(best.map(|(_, directory)| directory))
    }
}

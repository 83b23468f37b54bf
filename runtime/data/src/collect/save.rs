//! Checkpoints of a map task: everything collected so far as sealed runs from which a later attempt resumes.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::collect::buffer::Parts;
use crate::collect::spill::{Run, RunShape, run_name, write_sorted};
use crate::collect::{CollectError, CollectStatistics};
use crate::combine::Fold;
use crate::saved::{SavePlace, SavedFile, SavedFileError};
use crate::segment::Seal;

/// The data of a map task's checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedCollection {
    /// In order of arrival.
    runs: Vec<SavedFile>,
    /// Runs begun by all attempts so far: run numbers of a task are unique.
    pub(super) runs_begun: u32,
    statistics: CollectStatistics,
}

impl SavedCollection {
    pub(super) fn new(
        runs: Vec<SavedFile>,
        runs_begun: usize,
        statistics: CollectStatistics,
    ) -> SavedCollection {
        let runs_begun = u32::try_from(runs_begun).unwrap_or(u32::MAX);
        SavedCollection {
            runs,
            runs_begun,
            statistics,
        }
    }

    pub fn files(&self) -> &[SavedFile] {
        &self.runs
    }

    pub fn statistics(&self) -> &CollectStatistics {
        &self.statistics
    }

    /// Opens the runs and checks that they fit a task of this shape.
    pub(super) fn open(&self, base: &Path, shape: &RunShape) -> Result<Vec<Run>, CollectError> {
        let mut runs = Vec::with_capacity(self.runs.len());
        for saved in &self.runs {
            let segment = saved.open(base)?;
            let found = (segment.encoding(), segment.partitions());
            let wanted = &shape.segment;
            if found != (wanted.encoding, wanted.partitions) {
                let what = format!(
                    "has {} partitions of {:?} records; expected {} of {:?}",
                    found.1, found.0, wanted.partitions, wanted.encoding
                );
                return Err(SavedFileError {
                    path: segment.path().to_owned(),
                    what,
                }
                .into());
            }
            runs.push(saved.resume(&segment));
        }
        Ok(runs)
    }
}

/// Writes the arena as a run and saves all runs; returns their descriptions and the next run number.
pub(super) fn save_runs(
    parts: Parts,
    place: &SavePlace,
    fold: &dyn Fold,
) -> Result<(Vec<SavedFile>, usize), CollectError> {
    let Parts {
        mut runs,
        arena,
        mut runs_begun,
        shape,
    } = parts;
    if let Some(mut arena) = arena {
        // Written to the checkpoint directory directly, which may be on another file system.
        let path = place.base.join(&place.folder).join(run_name(runs_begun));
        runs_begun += 1;
        let (mut writer, _grant) = shape.writer_at(&path, None)?;
        write_sorted(&arena.sort(), fold, &mut writer)?;
        runs.push(Run::new(writer.finish(Seal {
            durable: place.durable,
        })?));
    }
    let saved = runs
        .iter_mut()
        .map(|run| run.save(place))
        .collect::<Result<Vec<_>, _>>()?;
    Ok((saved, runs_begun))
}

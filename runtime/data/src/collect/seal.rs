//! The end of a map task: merges the runs and the last arena into the sealed segment. A single run becomes
//! the segment by a rename unless a checkpoint refers to it; then it is copied under this attempt's label.

use std::path::{Path, PathBuf};

use crate::collect::CollectError;
use crate::collect::buffer::Parts;
use crate::collect::spill::{Run, seal_run, write_sorted};
use crate::combine::{Fold, FoldError, NoFold};
use crate::merge::{self, Merge, MergeError};
use crate::saved::SavedFileError;
use crate::segment::{Seal, SealedSegment, Segment, SegmentWriter};

/// Where and how to write the segment.
pub(crate) struct Destination<'a> {
    pub output: &'a Path,
    /// A file in memory to write to instead, and its size limit. A run that becomes the segment stays on disk.
    pub memory: Option<&'a (PathBuf, u64)>,
    pub seal: Seal,
    pub fan_in: usize,
    /// Applied to equal keys when runs are merged.
    pub fold: &'a dyn Fold,
    /// Whether the last arena or a run may hold several records of one key, which are then folded. So a segment has
    /// one record per key, however often the task spilled or was interrupted.
    pub may_repeat_keys: bool,
}

/// Runs and records written before the segment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sealing {
    /// Runs, without intermediate merges.
    pub runs: u64,
    /// Records in runs and intermediate merges.
    pub records: u64,
}

/// Merges and seals all runs and the last arena.
pub(crate) fn seal(
    parts: Parts,
    destination: &Destination<'_>,
) -> Result<(SealedSegment, Sealing), CollectError> {
    let Parts {
        mut runs,
        arena,
        mut runs_begun,
        shape,
    } = parts;
    let fold_arena = if destination.may_repeat_keys {
        destination.fold
    } else {
        &NoFold
    };
    if runs.is_empty() {
        let (mut writer, _grant) = shape.writer_at(destination.output, destination.memory)?;
        if let Some(mut arena) = arena {
            write_sorted(&arena.sort(), fold_arena, &mut writer)?;
        }
        return Ok((writer.finish(destination.seal)?, Sealing::default()));
    }
    if let Some(mut arena) = arena {
        let (mut writer, _grant) = shape.writer(runs_begun)?;
        runs_begun += 1;
        write_sorted(&arena.sort(), fold_arena, &mut writer)?;
        runs.push(seal_run(writer)?);
    }
    let records = runs.iter().map(|run| run.sealed.records).sum();
    let mut sealing = Sealing {
        runs: runs.len() as u64,
        records,
    };
    let fan_in = merge::fan_in(destination.fan_in, shape.segment.compression, &shape.budget);
    let size = |run: &Run| run.sealed.file_len;
    while let Some(range) = merge::next_merge(&runs.iter().map(size).collect::<Vec<_>>(), fan_in) {
        let (mut writer, _grant) = shape.writer(runs_begun)?;
        runs_begun += 1;
        merge_runs(&runs[range.clone()], destination.fold, &mut writer)?;
        let merged = seal_run(writer)?;
        sealing.records += merged.sealed.records;
        runs.splice(range, [merged]);
    }
    let sealed = match runs.as_slice() {
        [only] if !only.is_saved() && !destination.may_repeat_keys => {
            destination.seal.relocate(only.path(), destination.output)?;
            SealedSegment {
                path: destination.output.to_owned(),
                ..only.sealed.clone()
            }
        }
        _ => {
            let (mut writer, _grant) = shape.writer_at(destination.output, destination.memory)?;
            merge_runs(&runs, destination.fold, &mut writer)?;
            writer.finish(destination.seal)?
        }
    };
    Ok((sealed, sealing))
}

fn merge_runs(
    runs: &[Run],
    fold: &dyn Fold,
    writer: &mut SegmentWriter,
) -> Result<(), CollectError> {
    let blame = |run: &Run, error| {
        if run.is_saved() {
            CollectError::Saved(SavedFileError::new(error))
        } else {
            CollectError::Segment(error)
        }
    };
    let open = |run: &Run| Segment::open(run.path()).map_err(|error| blame(run, error));
    let segments = runs.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    for partition in 0..writer.shape.partitions {
        if partition > 0 {
            writer.next_partition()?;
        }
        let mut cursors = Vec::with_capacity(segments.len());
        for (run, segment) in runs.iter().zip(&segments) {
            cursors.push(
                segment
                    .cursor(partition)
                    .map_err(|error| blame(run, error))?,
            );
        }
        fold.merge(&mut Merge::new(cursors), writer)
            .map_err(|error| match error {
                FoldError::Source(MergeError { input, error }) => blame(&runs[input], error),
                other => CollectError::from(other),
            })?;
    }
    Ok(())
}

//! Consolidation of a job's small map outputs before its many reduces read them. A file that cannot be
//! written is skipped.

use std::fs;
use std::path::{Path, PathBuf};

use napreduce_data::{ConsolidationError, consolidate};
use napreduce_engine::JobId;

/// Minimum number of reduces. Each saves opening all but one of the merged segments, which pays for merging.
const PARTITIONS_MIN: u32 = 32;
/// Maximum average bytes per partition of a segment: opening it then costs more than reading it.
const ROW_BYTES_MAX: u64 = 2 << 10;
/// Segments per file while maps are running.
const SEGMENTS: usize = 64;
/// Segments per file once reduces are launched.
const SEGMENTS_MIN: usize = 8;

/// The small outputs of one job on this worker.
#[derive(Debug, Default)]
pub(super) struct Consolidation {
    /// Segments not merged yet.
    loose: Vec<PathBuf>,
    files: Vec<PathBuf>,
    begun: u32,
    is_under_way: bool,
}

/// A file to write.
#[derive(Debug)]
pub(super) struct Consolidating {
    job: JobId,
    segments: Vec<PathBuf>,
    target: PathBuf,
}

/// The result of writing a file.
#[derive(Debug)]
pub(super) struct Consolidated {
    pub(super) job: JobId,
    target: PathBuf,
    written: Result<u64, ConsolidationError>,
}

impl Consolidating {
    /// Writes the file. Blocking.
    pub(super) fn run(self) -> Consolidated {
        let Consolidating {
            job,
            segments,
            target,
        } = self;
        let written = consolidate(&segments, &target);
        Consolidated {
            job,
            target,
            written,
        }
    }
}

impl Consolidation {
    /// Adds the segment of a finished map; returns the file to write now.
    pub(super) fn on_sealed(
        &mut self,
        job: JobId,
        segment: PathBuf,
        partitions: u32,
    ) -> Option<Consolidating> {
        if partitions < PARTITIONS_MIN {
            return None;
        }
        // The reader of a missing segment detects it.
        let length = fs::metadata(&segment).ok()?.len();
        if length <= u64::from(partitions) * ROW_BYTES_MAX {
            self.loose.push(segment);
        }
        self.begin(job, SEGMENTS)
    }

    /// Handles the launch of a reduce; returns the file to write for later ones.
    pub(super) fn on_reduce(&mut self, job: JobId) -> Option<Consolidating> {
        self.begin(job, SEGMENTS_MIN)
    }

    fn begin(&mut self, job: JobId, least: usize) -> Option<Consolidating> {
        if self.is_under_way || self.loose.len() < least {
            return None;
        }
        let directory = self
            .loose
            .first()
            .and_then(|segment| segment.parent())
            .map(Path::to_owned)?;
        self.begun += 1;
        self.is_under_way = true;
        let target = directory.join(format!("consolidated-{}.segments", self.begun));
        Some(Consolidating {
            job,
            segments: std::mem::take(&mut self.loose),
            target,
        })
    }

    /// Handles a written file; returns the next one to write.
    pub(super) fn on_consolidated(&mut self, done: Consolidated) -> Option<Consolidating> {
        self.is_under_way = false;
        let Consolidated {
            job,
            target,
            written,
        } = done;
        match written {
            Ok(bytes) => {
                tracing::info!(target: "worker", %job, "merged small map outputs into {}, {bytes} bytes", target.display());
                self.files.push(target);
            }
            Err(error) => tracing::warn!(
                target: "worker",
                %job,
                "small map outputs are not merged, which costs only time: {error}"
            ),
        }
        self.begin(job, SEGMENTS)
    }

    pub(super) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Returns whether a thread is writing a file in the job's directory.
    pub(super) fn is_under_way(&self) -> bool {
        self.is_under_way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: JobId = JobId(1);

    /// Creates a map output of `bytes` bytes.
    fn sealed(folder: &Path, number: usize, bytes: usize) -> PathBuf {
        let path = folder.join(format!("{number}.segment"));
        fs::write(&path, vec![0; bytes]).expect("written");
        path
    }

    #[test]
    fn small_outputs_of_many_partitions_are_merged_in_batches() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut consolidation = Consolidation::default();
        for number in 0..SEGMENTS {
            assert!(!consolidation.is_under_way());
            let large = sealed(folder.path(), number, 32 * 2048 + 1);
            assert!(consolidation.on_sealed(JOB, large, 32).is_none());
            let of_few = sealed(folder.path(), number, 0);
            assert!(consolidation.on_sealed(JOB, of_few, 31).is_none());
            let missing = folder.path().join("missing");
            assert!(consolidation.on_sealed(JOB, missing, 32).is_none());
            let small = sealed(folder.path(), number, 32 * 2048);
            let begun = consolidation.on_sealed(JOB, small, 32);
            assert_eq!(begun.is_some(), number + 1 == SEGMENTS, "{number}");
        }
        assert!(consolidation.is_under_way());
    }

    #[test]
    fn failed_merge_leaves_outputs_unmerged() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut consolidation = Consolidation::default();
        let add = |consolidation: &mut Consolidation, count: usize| {
            for number in 0..count {
                let begun = consolidation.on_sealed(JOB, sealed(folder.path(), number, 1), 32);
                assert!(begun.is_none(), "{number}");
            }
        };
        add(&mut consolidation, SEGMENTS_MIN - 1);
        assert!(consolidation.on_reduce(JOB).is_none());
        add(&mut consolidation, 1);
        let first = consolidation.on_reduce(JOB).expect("enough");
        add(&mut consolidation, SEGMENTS);
        assert!(consolidation.on_reduce(JOB).is_none(), "one is under way");
        // They are not segments.
        let second = consolidation
            .on_consolidated(first.run())
            .expect("enough have come meanwhile");
        assert!(consolidation.files().is_empty());
        let written = Consolidated {
            job: JOB,
            target: second.target,
            written: Ok(1),
        };
        assert!(consolidation.on_consolidated(written).is_none());
        assert_eq!(
            consolidation.files(),
            [folder.path().join("consolidated-2.segments")]
        );
    }
}

//! Owns where replayed jobs come from: a workload file, a published one, or a trace, read as `nap sim` reads
//! them. What they become on one machine belongs to `scale`.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use crate::error::WorkloadReplayError;
use napreduce_engine::Span;
use napreduce_sim::{ClusterShape, SimulatedJob, SizeModel, SwimTrace, WorkloadFile, published};

/// Machines that a trace is for, where nothing is said.
const TRACE_CLUSTER: ClusterShape = ClusterShape::of_slots(10, 4, 2);

/// Jobs before scaling.
#[derive(Clone, Debug)]
pub enum ReplaySource {
    /// Drawn anew for each seed.
    Workload { name: String, file: Box<WorkloadFile> },
    /// The same for each seed.
    Trace { name: String, trace: SwimTrace, model: SizeModel },
}

impl ReplaySource {
    /// A published mix of this name, or the workload file of this path.
    ///
    /// # Errors
    /// When there is neither, or the file is malformed.
    pub fn workload(name: &str) -> Result<ReplaySource, WorkloadReplayError> {
        let file = match published(name) {
            Some(file) => file?,
            None => {
                let unreadable =
                    |source| WorkloadReplayError::Unreadable { path: PathBuf::from(name), source };
                WorkloadFile::read(name, &fs::read_to_string(name).map_err(unreadable)?)?
            }
        };
        if let Some(job) = file.jobs.iter().find(|job| job.submit.as_deref() == Some("trigger")) {
            return Err(WorkloadReplayError::Triggered { job: job.name.clone() });
        }
        Ok(ReplaySource::Workload { name: name.to_owned(), file: Box::new(file) })
    }

    /// A trace in the format of SWIM, of which the first jobs alone are taken when `jobs` says so.
    ///
    /// # Errors
    /// When it cannot be read or is malformed.
    pub fn trace(path: &Path, jobs: Option<usize>) -> Result<ReplaySource, WorkloadReplayError> {
        let name = path.display().to_string();
        let file = File::open(path)
            .map_err(|source| WorkloadReplayError::Unreadable { path: path.to_owned(), source })?;
        let mut trace = SwimTrace::read(&name, BufReader::new(file))?;
        trace.jobs.truncate(jobs.unwrap_or(usize::MAX));
        // A trace is an excerpt of a day: its first job comes at once.
        let first = trace.jobs.first().map_or(0, |job| job.submit);
        trace.jobs.iter_mut().for_each(|job| job.submit -= first);
        let model = SizeModel { reduces_max: Some(TRACE_CLUSTER.machines), ..SizeModel::default() };
        Ok(ReplaySource::Trace { name, trace, model })
    }

    /// What people call it.
    pub fn name(&self) -> &str {
        match self {
            ReplaySource::Workload { name, .. } | ReplaySource::Trace { name, .. } => name,
        }
    }

    /// Of its first run unless another is asked for.
    pub fn seed(&self) -> u64 {
        match self {
            ReplaySource::Workload { file, .. } => file.seed,
            ReplaySource::Trace { .. } => 0,
        }
    }

    /// The jobs of a seed.
    pub fn jobs(&self, seed: u64) -> Vec<SimulatedJob> {
        match self {
            ReplaySource::Workload { file, .. } => file.workload(seed).into_jobs(),
            ReplaySource::Trace { trace, model, .. } => trace.clone().workload(*model).into_jobs(),
        }
    }

    /// The cluster it is meant for.
    pub fn cluster(&self) -> Option<ClusterShape> {
        match self {
            ReplaySource::Workload { file, .. } => file.cluster,
            ReplaySource::Trace { .. } => Some(TRACE_CLUSTER),
        }
    }

    /// How often its workers speak; nothing, when it does not say.
    pub fn heartbeat(&self) -> Span {
        match self {
            ReplaySource::Workload { file, .. } => file.overheads.heartbeat,
            ReplaySource::Trace { .. } => Span(0),
        }
    }

    /// Whether any job with reduces says how many bytes its maps write for them.
    pub fn tells_output_bytes(&self) -> bool {
        match self {
            ReplaySource::Workload { file, .. } => file.tells_output_bytes(),
            ReplaySource::Trace { .. } => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_published_or_a_file() {
        let source = ReplaySource::workload("fcs-map-heavy").unwrap();
        assert_eq!((source.name(), source.seed(), source.jobs(1).len()), ("fcs-map-heavy", 1, 171));
        assert!(source.tells_output_bytes() && source.cluster().is_some());
        let error = ReplaySource::workload("no-such-mix").unwrap_err().to_string();
        assert!(error.contains("cannot read no-such-mix") && error.contains("fcs-map-heavy"), "{error}");
    }

    #[test]
    fn jobs_of_triggers_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.toml");
        let text = "[[job]]\nname = \"later\"\nsubmit = \"trigger\"\nmaps = { count = 1, seconds = 1 }\n";
        fs::write(&path, text).unwrap();
        let error = ReplaySource::workload(path.to_str().unwrap()).unwrap_err().to_string();
        assert!(error.starts_with("job later is submitted by a trigger"), "{error}");
    }

    #[test]
    fn a_trace_begins_at_once_and_may_be_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.tsv");
        fs::write(&path, "a\t100\t0\t1\t0\t0\nb\t130\t30\t1\t0\t0\nc\t190\t60\t1\t0\t0\n").unwrap();
        let source = ReplaySource::trace(&path, Some(2)).unwrap();
        let times: Vec<u64> = source.jobs(0).iter().map(|job| job.submit.0 / 1_000_000).collect();
        assert_eq!(times, [0, 30]);
        let error = ReplaySource::trace(Path::new("/nowhere"), None).unwrap_err().to_string();
        assert!(error.starts_with("cannot read /nowhere"), "{error}");
    }
}

//! How a job was submitted: its command line, program, side files and input, kept to explain, compare and repeat runs.

use napreduce_engine::JobId;
use serde::{Deserialize, Serialize};

use crate::digest::{Blob, SideFile};
use crate::splits::InputSplit;

/// The command line that submitted a job. The submitting program has replaced secrets and limited the lengths.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Invocation {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Number of arguments that did not fit.
    pub left_out: u32,
    /// Its working directory.
    pub directory: String,
    /// The first inputs, as the job names them.
    pub inputs: Vec<String>,
    pub inputs_total: u32,
    /// In bytes.
    pub split_size: u64,
    /// Values of `--conf`, in order.
    pub confs: Vec<String>,
}

/// Everything recorded of a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submitted {
    /// `None` for an embedded job, which runs the worker's own program.
    pub program: Option<Blob>,
    pub files: Vec<SideFile>,
    /// `None` if the job was not submitted by a command line.
    pub invocation: Option<Invocation>,
    pub splits: u32,
    pub input_bytes: u64,
    /// The job whose definition was submitted again; `invocation` is that of its first run.
    #[serde(default)]
    pub rerun_of: Option<JobId>,
}

impl Submitted {
    /// Returns what a coordinator knows of a submission.
    pub fn new(
        program: Option<Blob>,
        files: &[SideFile],
        invocation: Option<&Invocation>,
        splits: &[InputSplit],
        rerun_of: Option<JobId>,
    ) -> Submitted {
        Submitted {
            program,
            files: files.to_vec(),
            invocation: invocation.cloned(),
            splits: u32::try_from(splits.len()).unwrap_or(u32::MAX),
            input_bytes: splits
                .iter()
                .fold(0, |sum, split| sum.saturating_add(split.length())),
            rerun_of,
        }
    }
}

/// The scheduler of a cluster and its tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulerTables {
    pub name: String,
    /// `[scheduler.NAME]` and `[preemption]` as JSON, where they differ from the published values.
    pub tables: String,
}

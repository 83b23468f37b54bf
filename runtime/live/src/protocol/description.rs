//! The description of an attempt: all that a task process needs to know.
//!
//! Owns the plain data. Does not own the paths' layout (`output`) nor the carrying out (`task`).

use std::path::PathBuf;

use napreduce_core::AttemptId;
use serde::{Deserialize, Serialize};

use crate::body::{MapTask, ReduceTask};
use crate::shuffle::{DataNetwork, MapInput};

/// What a task process is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskDescription {
    pub(crate) attempt: AttemptId,
    /// Which definition of the program to build, and its encoded parameters.
    pub(crate) definition: String,
    pub(crate) parameters: Vec<u8>,
    /// Memory it may use, in bytes.
    pub(crate) memory: u64,
    pub(crate) work: Work,
    /// Where its part file goes once it may commit; `None` for a map whose output is a segment.
    #[serde(with = "crate::path_bytes::optional")]
    pub(crate) promote_to: Option<PathBuf>,
    /// Whether its part file is on the disk, not only in the page cache, before it asks for the commit.
    pub(crate) sync_part: bool,
}

/// The call to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Work {
    Map(MapTask),
    Reduce(ReduceWork),
}

/// A reduce, and where the outputs of the maps are that it reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReduceWork {
    /// The task process fills in `inputs` once there is one of each map task.
    pub(crate) task: ReduceTask,
    /// How many map tasks there are.
    pub(crate) maps: u32,
    /// The outputs that are there already; others follow as `MoreInputs`.
    pub(crate) inputs: Vec<MapInput>,
    /// How to fetch those that are elsewhere; `None` where all of them are local.
    pub(crate) network: Option<DataNetwork>,
}

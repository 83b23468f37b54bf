//! The description of an attempt: all that a task process needs to know.
//!
//! Owns the plain data. Does not own the paths' layout (`output`) nor the carrying out (`task`).

use std::path::PathBuf;

use napreduce_core::AttemptId;
use serde::{Deserialize, Serialize};

use crate::body::{MapTask, ReduceTask};

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
}

/// The call to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Work {
    Map(MapTask),
    Reduce(ReduceTask),
}

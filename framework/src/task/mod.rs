//! What runs inside a task process: the loop of a map over its split, the loop of a reduce over its groups.
//!
//! Owns the path from input format through user code to collector or part file. Does not own processes, retries or
//! commits (live runtime) nor sorting and merging (data plane).

pub(crate) mod errors;
mod groups;
pub(crate) mod map;
pub(crate) mod map_only;
mod reading;
pub(crate) mod reduce;
mod saving;

pub use napreduce_core::{AttemptId, FailureClass, FaultPlace, JobId, TaskId, TaskKind};
pub use napreduce_live::{TaskError, UserCounter};

pub use crate::user_code::TaskInfo;

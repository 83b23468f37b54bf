//! What can be chosen about the capacity policy, as it stands in a file.
//!
//! Owns the values, their published defaults and what is allowed. Does not own the tree that follows from them.

use serde::{Deserialize, Serialize};

/// The order of the applications of one queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApplicationOrder {
    /// By priority, then by submission.
    #[default]
    Fifo,
    /// Who has least, then by submission.
    Fair,
}

/// What comes first when applications of one queue take from each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntraQueueOrder {
    /// Nobody takes from a user who is not beyond the limit.
    #[default]
    UserLimitFirst,
    /// The priorities of applications.
    PriorityFirst,
}

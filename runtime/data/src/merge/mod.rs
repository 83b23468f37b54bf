//! Merging sorted sources: the tournament tree, and the plan of intermediate merges.

mod plan;
mod tree;

pub(crate) use plan::{fan_in, next_merge};
pub(crate) use tree::KeyCode;
pub use tree::{Merge, MergeError};

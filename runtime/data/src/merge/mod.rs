//! Merging sorted sources into one sorted stream.
//!
//! Owns the tournament over cursors and the plan of intermediate merges. Does not own groups (`reduce`) nor
//! what is folded on the way (`combine`).

mod plan;
mod tree;

pub(crate) use plan::{fan_in, next_merge};
pub(crate) use tree::KeyCode;
pub use tree::{Merge, MergeError};

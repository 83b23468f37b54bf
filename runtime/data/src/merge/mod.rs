//! Merging sorted sources into one sorted stream.
//!
//! Owns the tournament over cursors and intermediate merges. Does not own groups (`reduce`).

mod tree;

pub use tree::{Merge, MergeError};

//! The sort buffer: records in an arena, sorted through 16-byte entries.
//!
//! Owns the arena, the entries and their order. Does not own when an arena is full enough to be spilled
//! (`collect`).
//!
//! A record is encoded once, where it stays until it is copied to a run. What is sorted is one integer per
//! record, `[partition | first key bytes | their number | where the record lies]`: comparing two of them
//! decides almost always, and because records lie in the order of arrival, an unstable sort of them is
//! stable.

mod arena;
mod entry;
mod order;
mod radix;

pub(crate) use arena::{Arena, Sorted, SortedPartition};

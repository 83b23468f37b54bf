//! The sort buffer: records in an arena, sorted through 16-byte entries.
//!
//! A record is encoded once and stays in place until it is copied to a run. The sort moves one integer per
//! record, `[partition | first key bytes | their number | locator]`. One comparison of two integers is almost
//! always decisive, and because locators grow in order of arrival, an unstable sort of the entries is stable.

mod arena;
mod entry;
mod order;
mod radix;

pub(crate) use arena::{Arena, Record, Sorted, SortedPartition};

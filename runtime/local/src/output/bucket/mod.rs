//! An output in a store, which has no directories and no renames.
//!
//! Attempts send their parts as uploads, which are invisible; the commit of the job completes the granted
//! ones and drops all others.
//!
//! ```text
//! OUT/_temporary/claim.json    whose the output is, and how far the commit has come; its age is the holder's lease
//! OUT/_temporary/intent.json   what the commit does: parts with their uploads, and older objects that go
//! OUT/_temporary/checkpoint-*  what attempts have saved (`checkpoint::objects` of the task crate), until the job ends
//! OUT/part-r-00000, OUT/errors-r-00000, OUT/_SUCCESS
//! claimed (claim.json) -> intent (claim.json, intent.json) -> settled (_SUCCESS, or all of it removed)
//! ```

mod claim;
mod commit;
mod obstacles;
mod place;
#[cfg(test)]
mod tests;

pub(crate) use claim::{BucketClaim, BucketLease};
pub(super) use commit::commit;
pub(super) use obstacles::look;
pub(super) use place::Bucket;

//! An output in a store, where nothing is a directory and nothing can be renamed.
//!
//! Owns who may write it, how parts become objects, what is left when a job fails. Attempts have sent their
//! parts as uploads that nobody sees; the commit of the job completes those that were granted, and drops all
//! others. Does not own the uploads of an attempt (its task process) nor requests (`ObjectStores`, which come
//! from a feature of the program).
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

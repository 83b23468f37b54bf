//! An output in a store, which has no directories and no renames.
//!
//! Attempts send their parts as uploads, which are invisible; the commit of the job completes the granted
//! ones and drops all others.
//!
//! ```text
//! OUT/_temporary/claim.json    owner of the output and progress of the commit; its age is the lease
//! OUT/_temporary/intent.json   steps of the commit: parts with their uploads, and objects to delete
//! OUT/_temporary/checkpoint-*  checkpoints of attempts (`checkpoint::objects` of the task crate)
//! OUT/part-r-00000, OUT/errors-r-00000, OUT/_SUCCESS
//! claimed (claim.json) -> intent (claim.json, intent.json) -> settled (_SUCCESS, or everything removed)
//! ```

mod claim;
mod commit;
mod obstacles;
mod place;
#[cfg(test)]
mod tests;
mod whose;

pub(super) use claim::named_by_coordinator;
pub(super) use place::Bucket;

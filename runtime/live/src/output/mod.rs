//! The output directory: who may write it, how parts get into place, what is left when a job fails.
//!
//! Owns the layout and the commit protocol of the job; the commit of one attempt is a rename by its task process.
//! Does not own the contents of parts.
//!
//! ```text
//! claimed (claim.json) -> intent (claim.json, intent.json) -> settled (_SUCCESS, or all of it removed)
//! ```

mod check;
mod claim;
mod commit;
mod holder;
mod layout;
mod manifest;
mod obstacles;
mod places;
mod record;
mod removal;
mod reservation;
mod storage;
#[cfg(test)]
mod tests;
mod trouble;

pub use check::check_output;
pub(crate) use claim::{ClaimMark, ClaimRequest, Lease, OutputClaim, Resumed};
pub(crate) use commit::commit;
pub(crate) use layout::JobPaths;
pub(crate) use manifest::{CommittedPart, Manifest};
pub(crate) use places::{Surroundings, check_place};
pub(crate) use record::Owner;
pub use reservation::OutputReservation;
pub(crate) use storage::Disk;
#[cfg(test)]
pub(crate) use storage::script::DiskScript;
pub(crate) use trouble::Trouble;

//! The output directory: who may write it, how parts get into place, what is left when a job fails.
//!
//! Owns the layout and the commit protocol of the job; the commit of one attempt is a rename by its task process.
//! Does not own the contents of parts.

mod check;
mod claim;
mod commit;
mod layout;
mod removal;
mod reservation;
#[cfg(test)]
mod tests;

pub use check::check_output;
pub(crate) use claim::OutputClaim;
pub(crate) use commit::{CommitTry, CommittedPart, Manifest, commit_job};
pub(crate) use layout::JobPaths;
pub use reservation::OutputReservation;

//! The output directory: its claim, its layout and the commit protocol of a job. The commit of one attempt is
//! a rename by its task process.
//!
//! ```text
//! claimed (claim.json) -> intent (claim.json, intent.json) -> settled (_SUCCESS, or everything removed)
//! ```

mod backend;
mod bucket;
mod choice;
mod claim;
mod commit;
mod guests;
mod holder;
mod intent;
mod layout;
mod lease;
mod manifest;
mod obstacles;
mod places;
mod record;
mod removal;
mod request;
mod reservation;
mod storage;
#[cfg(test)]
mod tests;
mod trouble;
mod whose;

pub use backend::{OutputClaim, Resumed};
pub use choice::{check_output, take_output};
pub(crate) use choice::{renew_lease, resume_output};
pub use guests::GuestOutput;
pub(crate) use layout::JobPaths;
pub(crate) use lease::RENEWAL;
#[cfg(test)]
pub(crate) use manifest::CommittedPart;
pub(crate) use manifest::Manifest;
pub use manifest::named_output_files;
pub use places::check_reads;
pub(crate) use places::{Protected, check_place, files_read};
pub use record::Owner;
pub use request::{ClaimMark, ClaimRequest};
pub use reservation::OutputReservation;
pub use storage::Disk;
#[cfg(any(test, feature = "testing"))]
pub use storage::script::DiskScript;
pub(crate) use trouble::Trouble;

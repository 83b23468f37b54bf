//! FCS, the fair completion scheduler for reduces: small jobs preempt the reduces of large jobs, which are
//! restored later. Maps are assigned by another policy. See `docs/schedulers/fcs.md`.

mod claims;
mod configuration;
pub mod estimates;
mod jobs;
pub mod launch;
mod offers;
mod policy;

pub use configuration::{FcsConfiguration, FcsError};
pub use policy::Fcs;

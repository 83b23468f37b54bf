//! FCS, the fair completion scheduler: reduces of large jobs make room for those of small ones, and go on
//! later.
//!
//! Owns reduce slots alone; maps belong to another policy. Does not own how a reduce saves its work.

mod claims;
mod configuration;
pub mod estimates;
mod jobs;
pub mod launch;
mod offers;
mod policy;
mod table;

pub use configuration::{FcsConfiguration, FcsError};
pub use policy::Fcs;

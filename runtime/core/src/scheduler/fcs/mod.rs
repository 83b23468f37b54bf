//! FCS, the fair completion scheduler: reduces of large jobs make room for those of small ones, and go on later.
//!
//! Owns reduce slots alone; maps belong to another policy. Does not own how a reduce saves its work.

pub mod estimates;
pub mod launch;
pub mod preempt;

//! HFSP, the Hadoop fair sojourn protocol: jobs one after another, in the order in which they would be done
//! if they shared the cluster fairly.
//!
//! Owns the virtual cluster that this order comes from, the estimates of sizes, and the choice of victims.

mod assignment;
mod configuration;
mod lane;
mod listing;
pub mod misjudgement;
mod policy;
mod preemption;
pub mod ranking;
pub mod shares;
pub mod size;
mod table;
mod training;
pub mod victims;
mod virtual_cluster;
mod virtual_job;

pub use configuration::{HfspConfiguration, HfspError, KnownTime, KnownTimes, Late};
pub use policy::Hfsp;
pub use virtual_cluster::{Projection, VirtualCluster};
pub use virtual_job::ENDLESS;

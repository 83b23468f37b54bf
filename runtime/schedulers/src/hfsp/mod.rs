//! HFSP, the Hadoop fair sojourn protocol: serves jobs in the order in which they would finish under fair
//! sharing of the cluster. A virtual cluster provides the order; sizes are estimated from samples. See
//! `docs/schedulers/hfsp.md`.

mod assignment;
mod configuration;
pub mod hysteresis;
mod index;
mod lane;
mod policy;
mod preemption;
pub mod ranking;
pub mod shares;
pub mod size;
pub mod size_error;
mod training;
mod virtual_cluster;
mod virtual_job;

pub use configuration::{HfspConfiguration, HfspError, KnownTime, KnownTimes, LateOrder};
pub use policy::Hfsp;
pub use virtual_cluster::{Projection, VirtualCluster};
pub use virtual_job::ENDLESS;

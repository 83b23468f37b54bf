//! Capacity scheduling: a tree of queues with guaranteed and maximum capacities, and a preemption monitor
//! that restores guarantees. Follows YARN's capacity scheduler; see `docs/schedulers/capacity.md`.

mod assignment;
mod beneficiaries;
mod configuration;
mod error;
mod marks;
pub mod monitor;
mod moves;
mod order;
mod policy;
mod queues;
mod snapshot;
mod usage;
mod watch;

pub use configuration::{
    ApplicationOrder, CapacityConfiguration, IntraQueueOrder, Mode, MonitorConfiguration,
    QueueConfiguration,
};
pub use error::CapacityError;
pub use order::{Need, QueueStanding};
pub use policy::{Capacity, CapacityMonitor};
pub use queues::{Queue, Queues};

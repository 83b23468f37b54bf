//! Capacity: a tree of queues, each with a guaranteed share of the slots and a maximum, and a monitor that
//! takes slots back for queues that have less than they are guaranteed.
//!
//! Owns the policy and its parts. Does not own how a slot is taken: a victim is named, the engine does the
//! rest.

mod assignment;
mod beneficiaries;
mod books;
mod configuration;
mod error;
mod marks;
pub mod monitor;
mod order;
mod policy;
mod queues;
mod snapshot;
mod table;
mod watch;

pub use configuration::{
    ApplicationOrder, CapacityConfiguration, IntraQueueOrder, Mode, MonitorConfiguration, QueueConfiguration,
};
pub use error::CapacityError;
pub use order::{Need, QueueStanding};
pub use policy::{Capacity, CapacityMonitor};
pub use queues::{Queue, Queues};

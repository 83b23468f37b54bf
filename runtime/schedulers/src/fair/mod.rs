//! Fair scheduling: every pool, and every job in a pool, gets its weighted share of the slots, and starved
//! jobs preempt others. See `docs/schedulers/fair.md`.
//!
//! Shares, serving order, starvation and victim search are pure functions over plain numbers, in separate
//! modules.

mod configuration;
mod order;
mod policy;
mod pool;
mod preemption;
mod shares;
mod starvation;
mod tree;
mod update;
mod victims;
mod weights;

pub use configuration::{
    FairConfiguration, FairConfigurationError, Placement, PoolConfiguration, PoolOrder, Timeout,
    UnknownPools,
};
pub use order::{ChildStanding, Name, Weight};
pub use policy::Fair;
pub use shares::{Claim, UNBOUNDED, shares};
pub use starvation::{JobNeed, PoolNeed, StarvationPatience, starvation};
pub use update::{
    JobSnapshot, PoolSnapshot, Starved, is_utilised, recheck_after, set_shares, starved,
};
pub use victims::{Container, Holder, Host, Room, Search};

//! Fair: every pool, and every job in a pool, gets its weighted part of the slots.
//!
//! Owns the policy: shares, the order in which free slots are given, and preemption on behalf of jobs that
//! starve. The pure decisions stand in files of their own, over plain numbers; see `docs/schedulers/fair.md`.

mod configuration;
mod order;
mod policy;
mod pool;
mod preempting;
mod shares;
mod starvation;
mod table;
mod tree;
mod update;
mod victims;
mod weights;

pub use configuration::{
    FairConfiguration, FairConfigurationError, Placement, PoolConfiguration, PoolOrder, Timeout, UnknownPools,
};
pub use order::{ChildStanding, Name, Weight};
pub use policy::Fair;
pub use shares::{Claim, UNBOUNDED, shares};
pub use starvation::{JobNeed, PoolNeed, StarvationPatience, starvation};
pub use update::{JobPicture, PoolPicture, Starved, is_utilised, recheck_after, set_shares, starved};
pub use victims::{Container, Holder, Host, Room, Search};

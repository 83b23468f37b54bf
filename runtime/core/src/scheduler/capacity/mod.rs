//! Capacity: a tree of queues, each with a guaranteed share of the slots and a maximum, and a monitor that takes slots
//! back for queues that have less than they are guaranteed.
//!
//! Owns the policy and its parts. Does not own how a slot is taken: a victim is named, the engine does the rest.

mod configuration;
pub mod monitor;
mod order;

pub use configuration::{ApplicationOrder, IntraQueueOrder};
pub use order::{Need, Standing};

//! Fair's decisions against slow and simple ones, on generated instances.
//!
//! Owns the list of what is compared. The policy as a whole is shown by scenarios under the engine.

mod configurations;
mod order;
mod shares;
mod starving;

//! Fair's decisions against slow and simple ones, on generated instances, and the policy as a whole in
//! scenarios.
//!
//! Owns the list of what is compared and shown.

mod configurations;
mod order;
mod scenarios;
mod shares;
mod starving;

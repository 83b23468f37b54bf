//! The capacity policy on an engine: maxima, growth, reclaiming, users, and what is wrong with
//! configurations.
//!
//! Owns whole scenarios. The monitor's arithmetic is checked by the published cases, beside the simulator.

mod assignment;
mod caps;
mod cluster;
mod configurations;
mod lazy;
mod monitor;
mod reclaim;
mod reservations;
mod running;
mod selectors;
mod users;

//! The capacity policy on an engine. The arithmetic of the monitor is checked by the published cases of the
//! simulator.

mod assignment;
mod caps;
mod cluster;
mod configurations;
mod guarantees;
mod lazy;
mod monitor;
mod reclaim;
mod reservations;
mod running;
mod selectors;
mod users;

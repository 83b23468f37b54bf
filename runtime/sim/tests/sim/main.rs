//! The simulator, and every policy in simulated time: by hand, by the published cases, and by what must always hold.

#![allow(clippy::unwrap_used)] // every function here is part of a test

mod capacity;
mod conformance;
mod oracles;
mod simulation;
mod workloads;

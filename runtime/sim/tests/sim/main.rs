//! The simulator, and every policy in simulated time: hand-computed cases, published cases and invariants.

#![allow(clippy::unwrap_used)] // every function here is part of a test

mod capacity;
mod conformance;
mod guarantees;
mod oracles;
mod simulation;
mod workloads;

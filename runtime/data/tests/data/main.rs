//! The data plane from outside: collecting, sorting, saving, merging, and damage.
//!
//! `memory`, beside this folder, is a process of its own: it measures the memory of the whole process.

#![allow(clippy::unwrap_used)] // every function here is part of a test

mod combining;
mod consolidating;
mod damage;
mod failures;
mod fetching;
mod many_inputs;
mod partitioning;
mod reducing;
mod saved_damage;
mod saving_collections;
mod saving_files;
mod saving_reduce_inputs;
mod seeking;
mod segment_files;
mod sorting;
mod spilling;
mod support;
mod unsafe_code;

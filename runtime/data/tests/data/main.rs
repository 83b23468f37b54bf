//! Tests of the data plane's public interface. `memory` is a program of its own: it measures the whole
//! process.

#![allow(clippy::unwrap_used)] // every function here is part of a test

mod combining;
mod consolidating;
mod damage;
mod digests;
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

//! The tests of the embedded mode, unchanged, on a cluster of three workers: every segment is fetched over
//! the network.
//!
//! Owns which tests these are: inputs are read as they are without a network (`on_cluster`). Does not own a test, nor the
//! cluster (`shared_cluster`, which knows this one by its name, so that it is a process of its own).

#[path = "../system/failures.rs"]
mod failures;
#[path = "../system/hard_records.rs"]
mod hard_records;
#[path = "../system/outputs.rs"]
mod outputs;

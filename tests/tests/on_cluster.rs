//! The tests of the embedded mode, unchanged, on a cluster of three workers: segments of the same
//! machine are mapped.
//!
//! Owns which tests these are. Does not own a test, nor the cluster (`shared_cluster`, which knows this one
//! by its name).

#[path = "failures.rs"]
mod failures;
#[path = "hard_inputs.rs"]
mod hard_inputs;
#[path = "hard_records.rs"]
mod hard_records;
#[path = "outputs.rs"]
mod outputs;

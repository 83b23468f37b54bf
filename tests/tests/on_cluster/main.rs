//! Tests on a cluster of three workers that this process shares: those of the embedded mode, unchanged, and those of the
//! commands about a cluster. Segments of the same machine are mapped.
//!
//! Owns which tests these are. Does not own a test, nor the cluster (`shared_cluster`, which knows this one
//! by its name, so that it is a process of its own).

mod cluster_commands;
#[path = "../system/failures.rs"]
mod failures;
#[path = "../system/hard_inputs.rs"]
mod hard_inputs;
#[path = "../system/hard_records.rs"]
mod hard_records;
#[path = "../system/outputs.rs"]
mod outputs;
mod preemption_commands;

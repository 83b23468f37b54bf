//! Tests on a cluster of three workers that this process shares: the jobs of the embedded tests, and the
//! commands for a cluster. Reduces map the segments of their machine.
//!
//! `shared_cluster` selects the cluster by the name of this program. Unusual input files are tested only in
//! `system`, since tasks read them the same way in both modes.

mod cluster_commands;
#[path = "../system/failures.rs"]
mod failures;
#[path = "../system/hard_records.rs"]
mod hard_records;
#[path = "../system/outputs.rs"]
mod outputs;
mod preemption_commands;
#[path = "../system/retries.rs"]
mod retries;
mod top;

//! Tests on a cluster of three workers that this process shares: jobs of the embedded mode, and the commands
//! about a cluster. Reduces map the segments of their machine.
//!
//! `shared_cluster` starts the cluster by the name of this program. Odd input files are read in `system` alone: a
//! task process reads them the same way in both modes.

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

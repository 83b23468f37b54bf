//! The jobs of the embedded tests on a cluster of three workers that this process shares, with every segment
//! fetched over the network: outputs, unusual records, and retries. Tests without a shuffle are in `system`
//! and `on_cluster`.
//!
//! `shared_cluster` selects the cluster by the name of this program.

#[path = "../system/hard_records.rs"]
mod hard_records;
#[path = "../system/outputs.rs"]
mod outputs;
#[path = "../system/retries.rs"]
mod retries;

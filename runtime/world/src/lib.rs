//! A whole cluster in one process and in simulated time: the daemons of coordinator and workers and their clients as
//! they are, on a paused clock, with a simulated network between them and simulated machines under them. Everything
//! random comes from one seed, so every run can be repeated and stepped through.
//!
//! ```text
//! run ---> hosts: one daemon each (napreduce-cluster) <--- SimNet ---> clients: submit, follow, check the output
//!  |         |                                                    ---> operator: suspend, resume, kill, ...
//!  |         +--> machine of a worker: processes and their tasks
//!  +-> faults: of the network, of hosts, of the coordinator's disk
//! ```
//!
//! The cluster directory, with the coordinator's journal and uploads, is on a simulated disk of the coordinator's host, which
//! loses what was not synced when its host loses power. Workers and clients see it as on a file server. All other files
//! are real ones, below `/dev/shm` if it exists. Oracles log a violation as soon as they see it: [`Log::violation`].

mod chance;
mod client;
mod daemon_log;
pub mod entropy;
mod facts;
mod faults;
mod host;
mod log;
mod machine;
mod observer;
mod operator;
mod oracles;
mod output;
mod plan;
mod reactions;
mod run;
pub mod shrinking;
mod workload;

pub use log::{AfterViolation, Echo, Log};
pub use napreduce_local::world::Situation;
pub use plan::{GivenJob, Plan};
pub use run::{RunError, RunReport, RunSettings, remove_run_directories, run, run_and_look};

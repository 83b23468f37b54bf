//! A whole cluster in one process and in simulated time: the loops of coordinator and workers as they are, on a paused
//! clock, with simulated machines under them. Everything random comes from one seed, so every run can be repeated and
//! stepped through.
//!
//! ```text
//! run ---> coordinator (napreduce-local) <--- channels with latency ---> workers (napreduce-local)
//!  |            ^ commands                                                   | Processes, ControlChannel
//!  |         operator                                                        v
//!  +-> clients: submit, follow, check the output                         machine: processes and their tasks
//! ```
//!
//! Oracles log a violation as soon as they see it: [`Log::violation`].

mod chance;
mod coordinator;
pub mod entropy;
mod facts;
mod log;
mod machine;
mod run;
mod workload;

pub use log::{Echo, Log};
pub use run::{RunError, RunReport, RunSettings, run};

//! How a reduce comes to its inputs: by path on the same host, by a connection to the worker that
//! holds it elsewhere.
//!
//! Owns the waiting for map outputs in the task process, and the fetches that it makes. Does not own the
//! segment files (`napreduce-data`), authentication and encryption (`napreduce-protocol`), who serves
//! segments (the worker), nor which outputs a reduce reads (the engine).

mod fetch;
mod inputs;
mod known;

pub use inputs::{FetchInputs, FetchedInputs, InputEvent};

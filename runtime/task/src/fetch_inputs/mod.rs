//! How a reduce comes to its inputs: by path on the same host, by a connection to the worker that
//! holds it elsewhere.
//!
//! Owns the waiting for map outputs in the task process, and the fetches that it makes. Does not own the
//! segment files (`napreduce-data`), authentication and encryption (`napreduce-protocol`), who serves
//! segments (the worker), nor which outputs a reduce reads (the engine).

#[cfg(feature = "cluster")]
mod fetch;
mod inputs;
mod known;

use self::inputs::StartFetches;

/// Starts fetching from other workers. Without the feature `cluster` a task has no inputs elsewhere.
#[cfg(feature = "cluster")]
const START_FETCHES: Option<StartFetches> = Some(|order| Ok(Box::new(fetch::Fetches::start(order)?)));
#[cfg(not(feature = "cluster"))]
const START_FETCHES: Option<StartFetches> = None;

pub use inputs::{FetchInputs, FetchedInputs, InputEvent};

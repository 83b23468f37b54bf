//! The inputs of a reduce: read by path on the same host, fetched from the worker otherwise.

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

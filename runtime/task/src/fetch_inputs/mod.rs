//! The inputs of a reduce: read by path on the same host, fetched from the worker otherwise.

mod checkpoint_inputs;
mod inputs;

pub use inputs::{Fetch, FetchInputs, FetchSettings, FetchedInputs, InputEvent, StartFetch};

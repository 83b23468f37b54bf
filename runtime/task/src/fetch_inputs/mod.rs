//! The inputs of a reduce: read by path on the same host, fetched from the worker otherwise.

mod inputs;
mod known;

pub use inputs::{Fetch, FetchInputs, FetchOrder, FetchedInputs, InputEvent, StartFetch};

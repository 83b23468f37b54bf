//! The coordinator: the loop around the engine.
//!
//! Owns the clock, the carrying out of effects, and of each job what the engine does not care about: paths, counters,
//! parts. Does not own a decision (the engine) nor a process (the workers).

#[allow(dead_code)] // Until the listener hands connections over.
mod clients;
mod daemon;
mod job;
#[allow(dead_code)] // Until the loop answers them.
mod requests;

pub(crate) use daemon::{Coordinator, Request};
pub(crate) use job::Listener;
#[allow(unused_imports)] // As above.
pub(crate) use requests::{ClientRequest, Following, Refusal, Reply};

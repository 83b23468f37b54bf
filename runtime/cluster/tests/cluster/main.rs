//! A worker's daemon as its own process, driven over real connections by a coordinator that follows a script.
//!
//! Owns one behaviour of it in each file below; `script` has the vocabulary. Does not own the rules
//! of the engine.
#![allow(clippy::unwrap_used)] // A test helper fails the test.

mod connections;
mod ends;
mod hangs;
mod jobs;
mod leaving;
mod line;
mod processes;
mod programs;
mod script;
mod suspends;

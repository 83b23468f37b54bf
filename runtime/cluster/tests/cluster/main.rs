//! Tests of a worker daemon as a real process. The test is its coordinator, over real connections; `script`
//! has the functions for it. `simulated` runs the daemons in simulated time instead.
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
mod simulated;
mod suspends;

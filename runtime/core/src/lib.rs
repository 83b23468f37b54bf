//! The brain of napreduce: pure state machines, the engine and its schedulers.
//!
//! Owns every rule about jobs, tasks, attempts, workers and slots. Does not own clocks, sockets, files, threads or
//! unseeded randomness: time and events are arguments, effects are results, and the live coordinator and the simulator
//! are two loops around the same `Engine`.

mod effect;
mod event;
mod ids;
mod job;
mod time;

pub use effect::{Effect, Order, Record, Start};
pub use event::{Event, FailureClass, Report};
pub use ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
pub use job::{JobOutcome, JobSpec, MapSpec, Slots};
pub use time::{Span, Time};

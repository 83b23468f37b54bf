//! Every batch of events with what the engine made of it, for tests and replays.

use std::sync::{Arc, Mutex};

use napreduce_engine::{Effect, Event, Time};

/// One event of a coordinator and what its engine made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedBatch {
    /// When, in the engine's time.
    pub at: Time,
    /// What happened, as the engine was told it at once.
    pub events: Vec<Event>,
    /// What followed.
    pub effects: Vec<Effect>,
}

/// Where events are kept with what followed.
pub type Recording = Arc<Mutex<Vec<ReplayedBatch>>>;

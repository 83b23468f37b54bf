//! Recordings of event batches and their effects, for tests and replays.

use std::sync::{Arc, Mutex};

use napreduce_engine::{Effect, Event, Time};

/// A batch of events and its effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedBatch {
    pub at: Time,
    pub events: Vec<Event>,
    pub effects: Vec<Effect>,
}

/// The recorded batches, shared with the coordinator that records.
pub type Recording = Arc<Mutex<Vec<ReplayedBatch>>>;

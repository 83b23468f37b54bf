//! A handle of an attempt for code that waits for an external party.

use std::io;
use std::sync::Arc;

use napreduce_protocol::{Counters, TaskError};

use super::bell::Bell;
use super::gate::{Gate, InFlight, SuspendHooks};
use super::progress::TaskProgress;

/// A handle to the gate of an attempt, for code that waits inside a step and can be suspended there.
#[derive(Debug, Clone)]
pub struct Presence {
    gate: Arc<Gate>,
    progress: Arc<TaskProgress>,
    counters: Arc<Counters>,
}

impl Presence {
    pub(super) fn new(
        gate: &Arc<Gate>,
        progress: &Arc<TaskProgress>,
        counters: &Arc<Counters>,
    ) -> Presence {
        Presence {
            gate: Arc::clone(gate),
            progress: Arc::clone(progress),
            counters: Arc::clone(counters),
        }
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns whether a suspension or the end of the attempt is requested.
    pub fn is_stopping(&self) -> bool {
        self.gate.is_stopping()
    }

    /// As [`TaskContext::begin_in_flight`](super::TaskContext::begin_in_flight).
    pub(crate) fn begin_in_flight(&self) -> InFlight {
        self.gate.begin_in_flight()
    }

    /// Waits at the gate while a suspension is requested. A checkpoint request is left to the next boundary.
    ///
    /// # Errors
    /// Returns the error of a hook, or an error if the attempt is killed.
    pub fn stand_still(&self, hooks: &mut dyn SuspendHooks) -> Result<(), TaskError> {
        if !self.gate.is_stopping() {
            return Ok(());
        }
        self.gate.pass(hooks, false).map(drop)
    }

    /// Returns the bell that rings on a change of the requests.
    pub fn bell(&self) -> io::Result<&Bell> {
        self.gate.bell()
    }

    /// Records the total input given to an external program; from then on the attempt's progress is the input
    /// that the program has answered.
    pub fn give(&self, units: u64) {
        self.progress.give(units);
    }

    /// Records the total input that the program has answered.
    pub fn answer(&self, units: u64) {
        self.progress.answer(units);
    }

    /// Records that the program has ended or another one begins.
    pub(crate) fn take_back(&self) {
        self.progress.take_back();
    }

    /// Reports liveness.
    pub fn is_well(&self) {
        self.progress.still_waiting();
    }
}

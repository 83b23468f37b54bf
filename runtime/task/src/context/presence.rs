//! A handle of an attempt for code that waits for an external party.

use std::io;
use std::sync::Arc;

use napreduce_protocol::{Counters, TaskError};

use super::bell::Bell;
use super::gate::{Gate, SuspendHooks};
use super::progress::TaskProgress;

/// A way to the gate of an attempt for code that waits inside one of its steps: it can stand still
/// there as well.
#[derive(Debug, Clone)]
pub struct Presence {
    gate: Arc<Gate>,
    progress: Arc<TaskProgress>,
    counters: Arc<Counters>,
}

impl Presence {
    pub(super) fn new(gate: &Arc<Gate>, progress: &Arc<TaskProgress>, counters: &Arc<Counters>) -> Presence {
        Presence { gate: Arc::clone(gate), progress: Arc::clone(progress), counters: Arc::clone(counters) }
    }

    /// The counters of the attempt.
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether the attempt is to stand still.
    pub fn is_suspending(&self) -> bool {
        self.gate.is_suspending()
    }

    /// Stands still if that is asked for. Whether a checkpoint is asked for as well is for the next boundary
    /// of the work.
    pub fn stand_still(&self, hooks: &mut dyn SuspendHooks) -> Result<(), TaskError> {
        if !self.gate.is_suspending() {
            return Ok(());
        }
        self.gate.pass(hooks).map(drop)
    }

    /// What rings when something is asked for, or no more.
    pub fn bell(&self) -> io::Result<&Bell> {
        self.gate.bell()
    }

    /// A program outside this process was given so much, in all, of what the attempt has read so far. The
    /// attempt's progress is what the program has answered for from then on.
    pub fn give(&self, units: u64) {
        self.progress.give(units);
    }

    /// That program has answered for so much, in all, of what it was given.
    pub fn answer(&self, units: u64) {
        self.progress.answer(units);
    }

    /// That program has ended, or another one begins.
    pub(crate) fn take_back(&self) {
        self.progress.take_back();
    }

    /// Says that the task is well.
    pub fn is_well(&self) {
        self.progress.still_waiting();
    }
}

//! The inputs of one reduce attempt, from the first one named until there is one of each map task.
//!
//! Owns which inputs are here and which are awaited. Where all of them are local and complete, as in embedded mode,
//! nothing is started and nothing waits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use napreduce_core::AttemptId;

use super::{MapInput, Place};
use crate::counters::Counter;
use crate::task::{TaskContext, TaskError};

/// How often a task that waits shows that it is well, and looks whether it is still wanted.
const WAITING_TICK: Duration = Duration::from_millis(200);

/// What a gathering waits for.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// The worker names more map outputs.
    Named(Vec<MapInput>),
}

/// A reduce attempt that needs its inputs.
pub(crate) struct Gathering<'a> {
    /// How many map tasks there are.
    pub(crate) maps: u32,
    pub(crate) context: &'a TaskContext,
    pub(crate) arrivals: &'a Receiver<Arrival>,
}

impl Gathering<'_> {
    /// Waits until there is an input of each map task; the inputs in the order of their tasks.
    pub(crate) fn gather(self, named: Vec<MapInput>) -> Result<Vec<(AttemptId, PathBuf)>, TaskError> {
        let mut inputs = BTreeMap::new();
        take_in(&mut inputs, named)?;
        let began = Instant::now();
        while inputs.len() < self.maps as usize {
            match self.arrivals.recv_timeout(WAITING_TICK) {
                Ok(Arrival::Named(named)) => take_in(&mut inputs, named)?,
                Err(RecvTimeoutError::Timeout) => self.context.progress().still_waiting(),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(TaskError::retryable("the worker closed the control channel"));
                }
            }
            if self.context.interrupted() {
                return Err(TaskError::retryable("asked to stop while waiting for map outputs"));
            }
        }
        let waited = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.context.counters().add(Counter::ShuffleFetchMillis, waited);
        Ok(inputs.into_values().collect())
    }
}

fn take_in(inputs: &mut BTreeMap<u32, (AttemptId, PathBuf)>, named: Vec<MapInput>) -> Result<(), TaskError> {
    for MapInput { attempt, place } in named {
        match place {
            Place::Local(path) => drop(inputs.insert(attempt.task.index, (attempt, path))),
            Place::Remote(address) => {
                return Err(TaskError::fatal(format!(
                    "the output of {attempt} is at {address}, and this task was given no way to reach other hosts"
                )));
            }
        }
    }
    Ok(())
}

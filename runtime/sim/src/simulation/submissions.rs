//! The jobs of the workload that were not submitted yet.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::sync::Arc;

use napreduce_engine::Time;

use crate::job::SimulatedJob;
use crate::run::SimulationError;
use crate::workload::Workload;

/// The jobs to come.
pub(super) struct Submissions {
    /// Jobs with a submit time, in that order.
    timed: Peekable<Box<dyn Iterator<Item = SimulatedJob>>>,
    /// The submit time of the last one taken.
    last: Time,
    /// Jobs that wait for a trigger of the policy, by name.
    triggered: BTreeMap<Arc<str>, SimulatedJob>,
}

impl Submissions {
    pub fn new(workload: Workload) -> Submissions {
        Submissions {
            timed: workload.timed.peekable(),
            last: Time::default(),
            triggered: workload.triggered,
        }
    }

    /// Returns the next submit time, if there is any.
    pub fn next(&mut self) -> Option<Time> {
        let first = self.timed.peek()?;
        Some(first.submit)
    }

    /// Removes and returns the next job that is submitted by `now`. Fails if it should have come before the
    /// previous one.
    pub fn take_due(&mut self, now: Time) -> Result<Option<SimulatedJob>, SimulationError> {
        let Some(job) = self.timed.next_if(|job| job.submit <= now) else {
            return Ok(None);
        };
        if job.submit < self.last {
            return Err(SimulationError::OutOfOrder {
                at: job.submit,
                after: self.last,
            });
        }
        self.last = job.submit;
        Ok(Some(job))
    }

    /// Removes and returns the job that a trigger names.
    pub fn take_triggered(&mut self, name: String) -> Result<SimulatedJob, SimulationError> {
        self.triggered
            .remove(&*name)
            .ok_or(SimulationError::NoSuchJob { name })
    }

    /// Whether jobs wait for a trigger.
    pub fn await_triggers(&self) -> bool {
        !self.triggered.is_empty()
    }

    /// Returns the names of the jobs that wait for a trigger.
    pub fn untriggered(&self) -> impl Iterator<Item = String> + '_ {
        self.triggered.keys().map(|name| name.to_string())
    }
}

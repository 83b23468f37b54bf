//! The setup and cleanup tasks of a job in Hadoop 1. They precede all other tasks: each is ordered in the
//! reply to the next heartbeat, starts like an attempt, and is reported with a heartbeat. Their slots are not
//! modelled, since one of some hundred slots is free soon enough.

use std::collections::BTreeMap;

use napreduce_engine::{Span, Time};

use super::Simulation;
use super::clock::{TimedEvent, next_multiple};
use crate::job::SimulatedJob;
use crate::run::{JobResult, SimulationError};

/// Jobs in setup or cleanup.
#[derive(Debug, Default)]
pub(super) struct JobTasks {
    set_up: BTreeMap<u64, (SimulatedJob, Time)>,
    clean_up: BTreeMap<u64, JobResult>,
    last: u64,
}

impl JobTasks {
    pub fn is_empty(&self) -> bool {
        self.set_up.is_empty() && self.clean_up.is_empty()
    }

    /// Returns the arrival times of these jobs.
    pub fn since(&self) -> impl Iterator<Item = Time> + '_ {
        let came = self.set_up.values().map(|(_, came)| *came);
        came.chain(self.clean_up.values().map(|result| result.submitted))
    }
}

impl Simulation {
    /// Runs the setup task of a job before the job.
    pub(super) fn set_up(&mut self, plan: SimulatedJob) {
        let number = self.job_task();
        self.job_tasks
            .set_up
            .insert(number, (plan, self.clock.now()));
    }

    /// Runs the cleanup task of a job; the job ends with it.
    pub(super) fn clean_up(&mut self, result: JobResult) {
        let number = self.job_task();
        self.job_tasks.clean_up.insert(number, result);
    }

    pub(super) fn job_task_ends(&mut self, number: u64) -> Result<(), SimulationError> {
        if let Some((plan, came)) = self.job_tasks.set_up.remove(&number) {
            return self.dispatch(plan, came);
        }
        if let Some(result) = self.job_tasks.clean_up.remove(&number) {
            self.finish_job(result);
        }
        Ok(())
    }

    /// Starts a setup or cleanup task.
    fn job_task(&mut self) -> u64 {
        self.job_tasks.last += 1;
        let number = self.job_tasks.last;
        let overheads = self.settings.overheads;
        let beat = |time: Time| match overheads.heartbeat {
            Span(0) => time,
            period => next_multiple(time, period),
        };
        let heard = beat(beat(self.clock.now()) + overheads.order_latency + overheads.launch);
        self.clock
            .schedule_at(heard, TimedEvent::JobTaskEnds { number });
        number
    }
}
